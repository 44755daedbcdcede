import sharp from 'sharp'
import { describe, expect, it } from 'vitest'
import { imageSizeOf } from '../../../src/base/images.ts'
import { imageFactsOf } from '../../../src/history/image-facts.ts'

const picture = (side: number, format: 'png' | 'jpeg' | 'webp' | 'gif' | 'tiff'): Promise<Buffer> =>
  sharp({ create: { width: side, height: Math.ceil(side / 2), channels: 3, background: '#36c' } })
    .toFormat(format)
    .toBuffer()

describe('imageSizeOf', () => {
  it.each(['png', 'jpeg', 'webp', 'gif'] as const)('reads the size from the header of a %s', async (format) => {
    expect(imageSizeOf(await picture(123, format), `image/${format}`)).toEqual({ width: 123, height: 62 })
    expect(imageSizeOf(new Uint8Array(3), `image/${format}`)).toBeUndefined()
  })

  it('knows every flavour of a format, and says nothing when the header is broken', async () => {
    const wide = sharp({ create: { width: 300, height: 20, channels: 4, background: '#36c8' } })
    const size = { width: 300, height: 20 }
    expect(imageSizeOf(await wide.clone().webp({ lossless: true }).toBuffer(), 'image/webp')).toEqual(size)
    expect(imageSizeOf(await wide.clone().webp({ quality: 50 }).toBuffer(), 'image/webp')).toEqual(size)
    const opaque = wide.clone().flatten({ background: '#fff' })
    expect(imageSizeOf(await opaque.clone().webp({ quality: 50 }).toBuffer(), 'image/webp')).toEqual(size)
    expect(imageSizeOf(await opaque.clone().jpeg({ progressive: true }).toBuffer(), 'image/jpeg')).toEqual(size)
    const bitmap = Buffer.alloc(30)
    bitmap.writeInt32LE(300, 18)
    bitmap.writeInt32LE(-20, 22)
    expect(imageSizeOf(bitmap, 'image/bmp')).toEqual(size)
    expect(imageSizeOf(Buffer.from([0xff, 0xd8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), 'image/jpeg')).toBeUndefined()
    expect(imageSizeOf(Buffer.alloc(40), 'image/webp')).toBeUndefined()
    expect(imageSizeOf(Buffer.alloc(40), 'image/heic')).toBeUndefined()
  })
})

describe('imageFactsOf, which the history asks about stored base64', () => {
  it.each(['png', 'jpeg', 'webp', 'gif'] as const)('tells what a %s is by its bytes', async (format) => {
    const data = (await picture(60, format)).toString('base64')
    expect(imageFactsOf(data)).toEqual({ mimeType: `image/${format}`, width: 60, height: 30 })
    expect(imageFactsOf(data.slice(0, 8))).toBeUndefined()
  })

  it('finds the size of a JPEG behind a long profile', async () => {
    const jpeg = await picture(60, 'jpeg')
    const profile = Buffer.alloc(60_004)
    profile.writeUInt16BE(0xffe2, 0)
    profile.writeUInt16BE(60_002, 2)
    const long = Buffer.concat([jpeg.subarray(0, 2), profile, jpeg.subarray(2)]).toString('base64')
    expect(imageFactsOf(long)).toEqual({ mimeType: 'image/jpeg', width: 60, height: 30 })
  })

  it('knows nothing of formats that no model takes', async () => {
    expect(imageFactsOf((await picture(60, 'tiff')).toString('base64'))).toBeUndefined()
    expect(imageFactsOf('')).toBeUndefined()
  })
})
