import { describe, expect, it } from 'vitest'
import { GrowingText } from '../../../src/base/text.ts'

describe('GrowingText', () => {
  it('says what was appended, in order, whenever it is asked', () => {
    const text = new GrowingText('begin ')
    let expected = 'begin '
    for (let count = 0; count < 200; count++) {
      const word = `word${count} 😀`
      text.append(word)
      expected += word
      expect(text.length).toBe(expected.length)
      if (count % 7 === 0) expect(text.toString()).toBe(expected)
    }
    expect(text.toString()).toBe(expected)
    expect(text.toString()).toBe(expected)
  })

  it('keeps a character whose halves come one by one', () => {
    const [high = '', low = ''] = '😀'.split('')
    const text = new GrowingText()
    for (let count = 0; count < 31; count++) text.append('x')
    text.append(high)
    text.append(low)
    expect(text.toString()).toBe(`${'x'.repeat(31)}😀`)
  })
})
