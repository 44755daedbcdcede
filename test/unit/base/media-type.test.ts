import { describe, expect, it } from 'vitest'
import { sniffMediaType } from '../../../src/base/media-type.ts'

const bytes = (text: string): Uint8Array => Buffer.from(text, 'latin1')

describe('sniffing what bytes are', () => {
  it.each([
    ['\x89PNG\r\n\x1a\n....', 'text/html', 'image/png'],
    ['\xff\xd8\xff\xe0', undefined, 'image/jpeg'],
    ['GIF89a...', 'image/png', 'image/gif'],
    ['RIFF\0\0\0\0WEBPVP8 ', undefined, 'image/webp'],
    ['RIFF\0\0\0\0WAVEfmt ', undefined, 'audio/wav'],
    ['\0\0\0\x18ftypheic\0\0\0\0', undefined, 'image/heic'],
    ['\0\0\0\x18ftypavif\0\0\0\0', undefined, 'image/avif'],
    ['\0\0\0\x18ftypisom\0\0\0\0', undefined, 'video/mp4'],
    [`BM${'\0'.repeat(30)}`, undefined, 'image/bmp'],
    ['BMW is a car maker, not a bitmap at all', undefined, 'text/plain'],
    ['%PDF-1.7', 'image/png', 'application/pdf'],
    ['<!DOCTYPE html><p>', 'image/png', 'text/html'],
    ['\n  <HTML>', 'text/plain', 'text/html'],
    ['<svg xmlns=', 'image/png', 'image/svg+xml'],
    ['<?xml version="1.0"?><svg>', undefined, 'image/svg+xml'],
    ['{"a":1}', 'application/json; charset=utf-8', 'application/json'],
    ['plain', 'image/png', 'text/plain'],
    ['plain', undefined, 'text/plain'],
    ['a\0b', 'text/plain', 'application/octet-stream'],
    ['a\0b', 'application/x-thing', 'application/x-thing'],
    ['', undefined, 'text/plain'],
  ])('takes %j declared as %s for %s', (content, declared, expected) => {
    expect(sniffMediaType(bytes(content), declared)).toBe(expected)
  })
})
