export interface ImageSize {
  readonly width: number
  readonly height: number
}

/** Read from the header, without decoding a pixel. Undefined when the header does not tell. Never throws. */
export function imageSizeOf(bytes: Uint8Array, mediaType: string): ImageSize | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  try {
    switch (mediaType) {
      case 'image/png':
        return { width: view.getUint32(16), height: view.getUint32(20) }
      case 'image/gif':
        return { width: view.getUint16(6, true), height: view.getUint16(8, true) }
      case 'image/bmp':
        return { width: Math.abs(view.getInt32(18, true)), height: Math.abs(view.getInt32(22, true)) }
      case 'image/jpeg':
        return jpegSize(view)
      case 'image/webp':
        return webpSize(view)
      default:
        return undefined
    }
  } catch {
    // A header that ends too early.
    return undefined
  }
}

/** Walks from marker to marker to the frame header (SOF0–SOF15 without DHT, JPG and DAC). */
function jpegSize(view: DataView): ImageSize | undefined {
  for (let at = 2; at + 9 < view.byteLength;) {
    if (view.getUint8(at) !== 0xff) return undefined
    const marker = view.getUint8(at + 1)
    if (marker === 0xff) {
      at++
      continue
    }
    const isFrame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc
    if (isFrame) return { width: view.getUint16(at + 7), height: view.getUint16(at + 5) }
    at += 2 + Math.max(2, view.getUint16(at + 2))
  }
  return undefined
}

function webpSize(view: DataView): ImageSize | undefined {
  const kind = view.getUint32(12)
  if (kind === 0x56503820)
    return { width: view.getUint16(26, true) & 0x3fff, height: view.getUint16(28, true) & 0x3fff }
  if (kind === 0x5650384c) {
    const bits = view.getUint32(21, true)
    return { width: (bits & 0x3fff) + 1, height: ((bits >> 14) & 0x3fff) + 1 }
  }
  if (kind !== 0x56503858) return undefined
  const uint24 = (at: number): number => view.getUint16(at, true) | (view.getUint8(at + 2) << 16)
  return { width: uint24(24) + 1, height: uint24(27) + 1 }
}

/** Makes a picture smaller. Decoding pictures is the platform's business: it needs native code. */
export interface ImageResizer {
  /** Undefined when it cannot be done: no decoder is installed, the picture is broken, a bomb, or will not fit. */
  resize(bytes: Uint8Array, target: ResizeTarget, signal: AbortSignal): Promise<ResizedImage | undefined>
}

export interface ResizeTarget {
  readonly maxSide: number
  readonly maxBytes: number
}

export interface ResizedImage {
  readonly bytes: Uint8Array
  /** `image/jpeg` or `image/png`. */
  readonly mediaType: string
}
