import { describe, expect, it } from 'vitest'
import { decodeUtf8 } from '../../../src/base/text.ts'

describe('decodeUtf8', () => {
  it.each([
    ['nothing', ''],
    ['ASCII', 'plain text, \0 and \n'],
    ['several scripts', 'é строка 文件 🙂 \u2028 \ufeff'],
    ['a byte order mark at the start', '\ufeffx'],
    ['many characters', 'ü🙂文'.repeat(20_000)],
  ])('gives what toString gives for %s', (_, text) => {
    expect(decodeUtf8(Buffer.from(text))).toBe(text)
  })

  it.each([
    ['a lone continuation byte', [0x61, 0x80]],
    ['a character cut in the middle', [0x61, 0xe6, 0x96]],
    ['an encoded surrogate', [0xed, 0xa0, 0x80]],
    ['an overlong form', [0xc0, 0xaf]],
  ])('is undefined for %s', (_, bytes) => {
    expect(decodeUtf8(Buffer.from(bytes))).toBeUndefined()
  })
})
