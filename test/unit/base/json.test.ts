import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseJson } from '../../../src/base/json.ts'

describe('JSON of anybody', () => {
  it('is parsed as JSON.parse does, or is undefined', () => {
    const spaced = fc.tuple(fc.constantFrom('', ' ', '\r\n\t', '\u00a0'), fc.json(), fc.constantFrom('', ' \n'))
    fc.assert(
      fc.property(spaced, ([before, json, after]) => {
        const text = `${before}${json}${after}`
        expect(parseJson(text)).toEqual(before === '\u00a0' ? undefined : JSON.parse(text))
      }),
      { seed: 5, numRuns: 500 },
    )
  })

  it.each(['', ' ', '{', '}', '[', '"', '{"a":', '"a": [', ']', '{}}', 'nul', '\u00a0{}'])('%j is none', (text) => {
    expect(parseJson(text)).toBeUndefined()
  })
})
