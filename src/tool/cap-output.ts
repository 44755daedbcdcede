import { cutMiddle, shareOut } from '../base/text.ts'
import type { TextBlock, UserBlock } from '../core/message.ts'

const MIN_BLOCK_CHARS = 200

export interface OutputLimits {
  /** Of all text blocks together, counted in UTF-16 units. */
  readonly maxChars: number
  readonly maxImages: number
  /** Of one image, as base64. */
  readonly maxImageChars: number
}

/**
 * What no result may exceed, because it is held in memory and stored as one text; what the model sees of it is decided
 * later. Keeps beginning and end and says how much is missing; each block keeps its share of the room.
 */
export function capOutput(content: readonly UserBlock[], limits: OutputLimits): readonly UserBlock[] {
  const images = capImages(content, limits)
  const lengths = images.map((block) => (block.type === 'text' ? block.text.length : 0))
  const shares = shareOut(lengths, limits.maxChars, MIN_BLOCK_CHARS)
  if (shares === lengths) return images
  return images.flatMap((block, at): UserBlock[] => {
    if (block.type !== 'text') return [block]
    const text = capText(block.text, shares[at] ?? 0)
    return text === '' ? [] : [{ ...block, text }]
  })
}

/** Never longer than `maxChars`, never cut inside a surrogate pair. */
export function capText(text: string, maxChars: number): string {
  return cutMiddle(text, maxChars, (omitted) => `[… ${omitted} characters left out …]`)
}

function capImages(content: readonly UserBlock[], limits: OutputLimits): readonly UserBlock[] {
  let images = 0
  return content.map((block) => {
    if (block.type !== 'image') return block
    if (++images > limits.maxImages) return note(`[image left out: a result may have ${limits.maxImages}]`)
    if (block.data.length > limits.maxImageChars)
      return note(`[image left out: ${block.data.length} base64 characters]`)
    return block
  })
}

function note(text: string): TextBlock {
  return { type: 'text', text }
}
