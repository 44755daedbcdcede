import { imageSizeOf, type ImageSize } from '../base/images.ts'
import { mediaTypeOf } from '../base/media-type.ts'

/** What the bytes of an image say about themselves; the declared type is often wrong and providers check. */
export interface ImageFacts extends ImageSize {
  readonly mimeType: string
}

/** Base64 without white space, in full groups of four: anything else is refused on the wire. */
export function canonicalBase64(data: string): string | undefined {
  const compact = /\s/.test(data) ? data.replaceAll(/\s+/g, '') : data
  if (compact === '' || compact.length % 4 !== 0) return undefined
  return /^[A-Za-z0-9+/]+={0,2}$/.test(compact) ? compact : undefined
}

/** The formats that a model may be sent; which of them a model takes is in its limits. */
const SENT_TYPES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']
/** Enough for the type, and for the size of every format but JPEG. */
const HEADER_BASE64_CHARS = 64
/** Where a JPEG's frame header may stand: behind profiles and thumbnails, but not further than this. */
const JPEG_SEARCH_BASE64_CHARS = 256 * 1024

/** Undefined for anything but a PNG, JPEG, GIF or WebP whose header tells its size. */
export function imageFactsOf(base64: string): ImageFacts | undefined {
  const head = Buffer.from(base64.slice(0, HEADER_BASE64_CHARS), 'base64')
  const mimeType = mediaTypeOf(head)
  if (mimeType === undefined || !SENT_TYPES.includes(mimeType)) return undefined
  const isJpeg = mimeType === 'image/jpeg'
  const size = imageSizeOf(isJpeg ? Buffer.from(base64.slice(0, JPEG_SEARCH_BASE64_CHARS), 'base64') : head, mimeType)
  return size === undefined ? undefined : { mimeType, ...size }
}
