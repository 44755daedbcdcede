import * as fc from 'fast-check'
import { describe, it } from 'vitest'
import { capOutput, capText } from '../../src/tool/cap-output.ts'

const RUNS = { seed: 20261115, numRuns: 1000 }
const text = fc.string({ unit: fc.constantFrom('a', '\n', '汉', '😀', 'é'), maxLength: 400 })
const LONE_SURROGATE = /\p{Surrogate}/u

describe('outputs that are cut to size', () => {
  it('never exceed the size, never split a character, and keep beginning and end', () => {
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 300 }), (whole, maxChars) => {
        const capped = capText(whole, maxChars)
        if (whole.length <= maxChars) return capped === whole
        const [head = '', tail = ''] = capped.split(/\n\[… \d+ characters left out …\]\n/)
        return (
          capped.length <= maxChars && !LONE_SURROGATE.test(capped) && whole.startsWith(head) && whole.endsWith(tail)
        )
      }),
      RUNS,
    )
  })

  it('keep to one size for all their blocks together, and keep the order of the blocks', () => {
    const blocks = fc.array(text, { maxLength: 8 })
    fc.assert(
      fc.property(blocks, fc.integer({ min: 1, max: 1000 }), (texts, maxChars) => {
        const content = texts.map((block) => ({ type: 'text' as const, text: block }))
        const capped = capOutput(content, { maxChars, maxImages: 1, maxImageChars: 1 })
        const total = capped.reduce((sum, block) => sum + (block.type === 'text' ? block.text.length : 0), 0)
        return total <= maxChars && capped.length <= content.length
      }),
      RUNS,
    )
  })
})
