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

/** For programs without a decoder: pictures that fit are used as they are, others are left out. */
export const noResizer: ImageResizer = { resize: () => Promise.resolve(undefined) }
