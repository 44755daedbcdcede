/** What a model API takes. Anything beyond is resized, or left out and named. */
export interface ImageLimits {
  readonly mediaTypes: readonly string[]
  /** Of one image before base64, which adds a third. */
  readonly maxBytes: number
  /** Pixels of the longer side; larger pictures cost tokens and are scaled down by the provider anyway. */
  readonly maxSide: number
  readonly maxImages: number
}

const COMMON = ['image/png', 'image/jpeg', 'image/gif', 'image/webp']
const MEGABYTE = 1_000_000

/** By the names of `ModelApi`. */
const LIMITS: Readonly<Record<string, ImageLimits>> = {
  // 5 MB of base64; more than 20 images may not exceed 2000 pixels.
  'anthropic-messages': { mediaTypes: COMMON, maxBytes: 3.75 * MEGABYTE, maxSide: 2000, maxImages: 20 },
  'openai-responses': { mediaTypes: COMMON, maxBytes: 15 * MEGABYTE, maxSide: 2048, maxImages: 20 },
  'openai-completions': { mediaTypes: COMMON, maxBytes: 15 * MEGABYTE, maxSide: 2048, maxImages: 20 },
  // 20 MB for the whole request.
  'google-generative-ai': {
    mediaTypes: ['image/png', 'image/jpeg', 'image/webp', 'image/heic', 'image/heif'],
    maxBytes: 5 * MEGABYTE,
    maxSide: 3072,
    maxImages: 16,
  },
  'mistral-conversations': { mediaTypes: COMMON, maxBytes: 7 * MEGABYTE, maxSide: 1540, maxImages: 8 },
}

/** The strictest of all, for an API without a description. */
const CAUTIOUS: ImageLimits = {
  mediaTypes: ['image/png', 'image/jpeg'],
  maxBytes: 3.75 * MEGABYTE,
  maxSide: 1540,
  maxImages: 8,
}

export function imageLimitsOf(api: string): ImageLimits {
  return LIMITS[api] ?? CAUTIOUS
}
