import { cutMiddle } from '../core/cut-text.ts'
import type { TextBlock, UserBlock } from '../core/message.ts'

const MIN_BLOCK_CHARS = 200

export interface OutputLimits {
  /** Of all text blocks together, counted in UTF-16 units. */
  readonly maxChars: number
  readonly maxImages: number
  /** Of one image, as base64. */
  readonly maxImageChars: number
}

/** Keeps beginning and end of what is too long and says how much is missing. Each block keeps its share of the room. */
export function capOutput(content: readonly UserBlock[], limits: OutputLimits): readonly UserBlock[] {
  const images = capImages(content, limits)
  const total = images.reduce((sum, block) => sum + (block.type === 'text' ? block.text.length : 0), 0)
  if (total <= limits.maxChars) return images
  let room = limits.maxChars
  const capped: UserBlock[] = []
  for (const block of images) {
    if (block.type !== 'text') {
      capped.push(block)
      continue
    }
    if (room <= 0) continue
    const share = Math.max(MIN_BLOCK_CHARS, Math.floor((block.text.length / total) * limits.maxChars))
    const text = capText(block.text, Math.min(share, room))
    room -= text.length
    capped.push({ ...block, text } satisfies TextBlock)
  }
  return capped
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
