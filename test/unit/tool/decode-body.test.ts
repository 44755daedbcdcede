import { describe, expect, it } from 'vitest'
import { decodeBody } from '../../../src/tool/fetch/fetch-tool.ts'

describe('the character set of a page', () => {
  const utf16le = Buffer.from('\ufeff你好', 'utf16le')

  it.each([
    ['a byte order mark before everything else', Buffer.from('\ufeff你好'), 'text/html; charset=gbk'],
    ['a byte order mark of UTF-16', utf16le, ''],
    ['one of big-endian UTF-16', Buffer.from(utf16le).swap16(), ''],
    ['the header', Buffer.from([0xa7, 0x41, 0xa6, 0x6e]), 'text/html; charset="big5"'],
    [
      'the XML declaration',
      Buffer.concat([Buffer.from('<?xml version="1.0" encoding="gb18030"?>'), Buffer.from([0xc4, 0xe3, 0xba, 0xc3])]),
      '',
    ],
    ['nothing, which means UTF-8', Buffer.from('你好'), 'text/html'],
    ['a name nobody knows, which means UTF-8', Buffer.from('你好'), 'text/html; charset=klingon'],
  ])('is found by %s', (_, bytes, contentType) => {
    expect(decodeBody(bytes, contentType)).toMatch(/你好$/)
  })
})
