import type { Sharp } from 'sharp'
import type { ImageResizer, ResizedImage, ResizeTarget } from '../base/images.ts'

const MAX_INPUT_PIXELS = 100_000_000
const SIDES = [1800, 1600, 1400, 1200, 1000, 800]
const QUALITIES = [85, 75, 65, 55, 45, 35]

/** The decoder is an optional dependency, loaded when the first picture needs it. */
export function createSharpResizer(): ImageResizer {
  let loading: Promise<((bytes: Uint8Array) => Sharp) | undefined> | undefined
  return {
    async resize(bytes, target, signal) {
      loading ??= loadSharp()
      const open = await loading
      if (open === undefined) return undefined
      try {
        return await firstThatFits(() => open(bytes), target, signal)
      } catch {
        signal.throwIfAborted()
        return undefined
      }
    },
  }
}

async function loadSharp(): Promise<((bytes: Uint8Array) => Sharp) | undefined> {
  try {
    const { default: sharp } = await import('sharp')
    return (bytes) => sharp(bytes, { limitInputPixels: MAX_INPUT_PIXELS, failOn: 'error' })
  } catch {
    return undefined
  }
}

/** Large and fine before small and coarse. A picture with transparency is tried as PNG first: text on it stays sharp. */
async function firstThatFits(
  open: () => Sharp,
  target: ResizeTarget,
  signal: AbortSignal,
): Promise<ResizedImage | undefined> {
  const { hasAlpha } = await open().metadata()
  for (const side of [target.maxSide, ...SIDES.filter((smaller) => smaller < target.maxSide)]) {
    signal.throwIfAborted()
    const scaled = (): Sharp =>
      open().rotate().resize({ width: side, height: side, fit: 'inside', withoutEnlargement: true })
    if (hasAlpha) {
      const bytes = await scaled().png({ compressionLevel: 9 }).toBuffer()
      if (bytes.length <= target.maxBytes) return { bytes, mediaType: 'image/png' }
    }
    for (const quality of QUALITIES) {
      signal.throwIfAborted()
      const bytes = await scaled().flatten({ background: '#ffffff' }).jpeg({ quality }).toBuffer()
      if (bytes.length <= target.maxBytes) return { bytes, mediaType: 'image/jpeg' }
    }
  }
  return undefined
}
