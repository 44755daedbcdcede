export interface ImageInfo {
  readonly mimeType: string
  /** Absent for formats whose header does not give them cheaply. */
  readonly width?: number
  readonly height?: number
}

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/
/** Enough of an image for every header read here except late JPEG frames, which `jpegSize` looks for separately. */
const HEADER_CHARS = 64

export function isBase64(data: string): boolean {
  return data.length > 0 && data.length % 4 === 0 && BASE64.test(data)
}

export function decodedBytes(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0
  return (base64.length / 4) * 3 - padding
}

/** Undefined for bytes no provider recognises as an image. */
export function imageInfo(base64: string): ImageInfo | undefined {
  const head = Buffer.from(base64.slice(0, HEADER_CHARS), 'base64')
  if (startsWith(head, [0x89, 0x50, 0x4e, 0x47])) {
    return head.length >= 24
      ? { mimeType: 'image/png', width: head.readUInt32BE(16), height: head.readUInt32BE(20) }
      : { mimeType: 'image/png' }
  }
  if (startsWith(head, [0xff, 0xd8, 0xff]))
    return { mimeType: 'image/jpeg', ...jpegSize(Buffer.from(base64, 'base64')) }
  const tag = head.toString('latin1')
  if (tag.startsWith('GIF87a') || tag.startsWith('GIF89a')) {
    return head.length >= 10
      ? { mimeType: 'image/gif', width: head.readUInt16LE(6), height: head.readUInt16LE(8) }
      : { mimeType: 'image/gif' }
  }
  if (tag.startsWith('RIFF') && tag.slice(8, 12) === 'WEBP') return { mimeType: 'image/webp', ...webpSize(head) }
  if (tag.slice(4, 8) === 'ftyp' && /^(heic|heix|mif1|heif|hevc)/.test(tag.slice(8, 12)))
    return { mimeType: 'image/heic' }
  return undefined
}

function startsWith(bytes: Buffer, magic: readonly number[]): boolean {
  return magic.every((byte, index) => bytes[index] === byte)
}

/** The size stands in the first start-of-frame segment. */
function jpegSize(bytes: Buffer): { width?: number; height?: number } {
  let at = 2
  while (at + 9 < bytes.length && bytes[at] === 0xff) {
    const marker = bytes.readUInt8(at + 1)
    const isFrame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc
    if (isFrame) return { height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) }
    at += 2 + bytes.readUInt16BE(at + 2)
  }
  return {}
}

function webpSize(head: Buffer): { width?: number; height?: number } {
  const kind = head.toString('latin1', 12, 16)
  if (head.length < 30) return {}
  if (kind === 'VP8X') return { width: head.readUIntLE(24, 3) + 1, height: head.readUIntLE(27, 3) + 1 }
  if (kind === 'VP8 ') return { width: head.readUInt16LE(26) & 0x3fff, height: head.readUInt16LE(28) & 0x3fff }
  return {}
}
