import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { findImageReferences, PICTURE_ENDING } from '../../../src/media/image-references.ts'

const paths = (text: string): readonly string[] => findImageReferences(text).map((reference) => reference.path)

describe('pictures named in a text', () => {
  it.each([
    ['see /tmp/a.png', ['/tmp/a.png']],
    ['/tmp/a.PNG', ['/tmp/a.PNG']],
    ['./a.jpg ../b.jpeg ~/c.gif', ['./a.jpg', '../b.jpeg', '~/c.gif']],
    [
      '/a.webp, /b.bmp; /c.tiff! /d.tif? /e.heic. /f.heif',
      ['/a.webp', '/b.bmp', '/c.tiff', '/d.tif', '/e.heic', '/f.heif'],
    ],
    ['(/tmp/a.png) [/tmp/b.png] <{/tmp/c.png}>', ['/tmp/a.png', '/tmp/b.png', '/tmp/c.png']],
    ['![alt](./pic.png)', ['./pic.png']],
    ['"/tmp/my cat.png" and \'./b c.png\' and `~/d e.png`', ['/tmp/my cat.png', './b c.png', '~/d e.png']],
    ['看看/tmp/a.png这张图', ['/tmp/a.png']],
    ['这张图/tmp/a.png和/tmp/b.jpg，哪张好？', ['/tmp/a.png', '/tmp/b.jpg']],
    ['图片：/tmp/图片.png。', ['/tmp/图片.png']],
    ['（/tmp/a.png）「/tmp/b.png」', ['/tmp/a.png', '/tmp/b.png']],
    ['写真は/tmp/a.pngです', ['/tmp/a.png']],
    ['C:\\Users\\ann\\cat.png and d:/x/y.jpg', ['C:\\Users\\ann\\cat.png', 'd:/x/y.jpg']],
    ['截图C:\\pics\\猫.png好看', ['C:\\pics\\猫.png']],
    ['file:///tmp/my%20cat.png', ['/tmp/my cat.png']],
    ['file://localhost/tmp/a.png', ['/tmp/a.png']],
    ['file:///C:/pics/a.png', ['C:/pics/a.png']],
    ['[media attached: /tmp/my cat.png (image/png) | https://x.y/z]', ['/tmp/my cat.png']],
    ['[media attached 1/2: /tmp/a.jpg (image/jpeg)]', ['/tmp/a.jpg']],
    ['[media attached: 2 files]\n[media attached 2/2: file:///tmp/b.png]', ['/tmp/b.png']],
    ['[Image: source: /tmp/c.gif]', ['/tmp/c.gif']],
    ['[media attached: uploads/cat.png]', ['./uploads/cat.png']],
    ['MEDIA:/tmp/x.png', ['/tmp/x.png']],
    ['/tmp/a.png /tmp/a.png "/tmp/a.png"', ['/tmp/a.png']],
    ['/tmp/x.png.bak.png', ['/tmp/x.png.bak.png']],
    ['/tmp/v1.2/a.png', ['/tmp/v1.2/a.png']],
  ])('finds those of %j', (text, expected) => {
    expect(paths(text)).toEqual(expected)
  })

  it.each([
    'https://example.com/a.png',
    'http://example.com/?file=/tmp/a.png',
    'see https://example.com/tmp/a.png!',
    '/a/b.pngx',
    '/a/b.png.txt',
    '/a/b.png_old',
    '/a/b.png/readme',
    '/a/b.png-old',
    'a.png',
    'dir/a.png',
    'x/tmp/a.png',
    '//server/share/a.png',
    '\\\\server\\share\\a.png',
    'file://server/share/a.png',
    'file:///tmp/a%2Fb.png',
    'file:///tmp/a%00.png',
    '/tmp/a.pdf',
    '/tmp/png',
    '/tmp/a b.png',
    'and/or 1/2 .png',
    '[media attached: https://example.com/a.png]',
    '[media attached: 3 files]',
  ])('finds none in %j', (text) => {
    expect(paths(text)).toEqual([])
  })

  it('stops at a number of references', () => {
    const text = Array.from({ length: 100 }, (_, i) => `/tmp/${i}.png`).join(' ')
    expect(findImageReferences(text)).toHaveLength(20)
    expect(findImageReferences(text, 3)).toHaveLength(3)
  })

  it('takes any text, however hostile, and names only what is in it', () => {
    const piece = fc.constantFrom(
      '/',
      '.png',
      '"',
      "'",
      '`',
      '[media attached: ',
      ']',
      '汉',
      ' ',
      'file://',
      'C:\\',
      '~/',
      './',
      'http://',
      'a',
      '%20',
      '\n',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
        const text = pieces.join('')
        const found = findImageReferences(text)
        expect(found.length === 0 || PICTURE_ENDING.test(text)).toBe(true)
        return found.every(({ raw, path }) => text.includes(raw) && path.endsWith('.png'))
      }),
      { seed: 20261115, numRuns: 2000 },
    )
    for (const repeated of [
      '/汉.pngx',
      '[media attached: .pngx',
      "'/.pngx",
      '/',
      '汉/',
      '"/',
      '[media attached: ',
      'file:///',
      '~/a',
      'C:\\',
      './',
      "'./a b",
    ]) {
      expect(findImageReferences(repeated.repeat(200_000 / repeated.length))).toEqual([])
    }
  })
})
