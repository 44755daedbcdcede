/** What the bytes of an image say about themselves; the declared type is often wrong and providers check. */
export interface ImageFacts {
  readonly mimeType: 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp'
  readonly width: number
  readonly height: number
}

/** Base64 without white space, in full groups of four: anything else is refused on the wire. */
export function canonicalBase64(data: string): string | undefined {
  const compact = /\s/.test(data) ? data.replaceAll(/\s+/g, '') : data
  if (compact === '' || compact.length % 4 !== 0) return undefined
  return /^[A-Za-z0-9+/]+={0,2}$/.test(compact) ? compact : undefined
}

/** Enough for every header below; a JPEG with a longer preamble has its size looked up further on. */
const HEADER_BASE64_CHARS = 64

export function imageFactsOf(base64: string): ImageFacts | undefined {
  const head = Buffer.from(base64.slice(0, HEADER_BASE64_CHARS), 'base64')
  if (head.length < 12) return undefined
  if (head.readUInt32BE(0) === 0x89504e47)
    return sized('image/png', head, (b) => [b.readUInt32BE(16), b.readUInt32BE(20)])
  if (head.toString('latin1', 0, 4) === 'GIF8')
    return sized('image/gif', head, (b) => [b.readUInt16LE(6), b.readUInt16LE(8)])
  if (head.toString('latin1', 0, 4) === 'RIFF' && head.toString('latin1', 8, 12) === 'WEBP') return webpFacts(head)
  if (head.readUInt16BE(0) === 0xffd8) return jpegFacts(base64)
  return undefined
}

function sized(
  mimeType: ImageFacts['mimeType'],
  bytes: Buffer,
  read: (bytes: Buffer) => [number, number],
): ImageFacts | undefined {
  try {
    const [width, height] = read(bytes)
    return { mimeType, width, height }
  } catch {
    // The file ends inside its own header.
    return undefined
  }
}

function webpFacts(bytes: Buffer): ImageFacts | undefined {
  return sized('image/webp', bytes, (b) => {
    switch (b.toString('latin1', 12, 16)) {
      case 'VP8X':
        return [b.readUIntLE(24, 3) + 1, b.readUIntLE(27, 3) + 1]
      case 'VP8L': {
        const bits = b.readUInt32LE(21)
        return [(bits & 0x3fff) + 1, ((bits >>> 14) & 0x3fff) + 1]
      }
      default:
        return [b.readUInt16LE(26) & 0x3fff, b.readUInt16LE(28) & 0x3fff]
    }
  })
}

/** Where a JPEG's frame header may stand: behind profiles and thumbnails, but not further than this. */
const JPEG_SEARCH_BASE64_CHARS = 256 * 1024

function jpegFacts(base64: string): ImageFacts | undefined {
  const bytes = Buffer.from(base64.slice(0, JPEG_SEARCH_BASE64_CHARS), 'base64')
  return sized('image/jpeg', bytes, (b) => {
    let at = 2
    for (;;) {
      const marker = b.readUInt16BE(at)
      const isFrame = marker >= 0xffc0 && marker <= 0xffcf && ![0xffc4, 0xffc8, 0xffcc].includes(marker)
      if (isFrame) return [b.readUInt16BE(at + 7), b.readUInt16BE(at + 5)]
      if (marker < 0xff00) throw new RangeError('not a segment')
      at += 2 + Math.max(2, b.readUInt16BE(at + 2))
    }
  })
}
