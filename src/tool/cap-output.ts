import type { TextBlock, UserBlock } from '../core/message.ts'

/** The tail of an output is where errors are: it gets this share of the room. */
const TAIL_SHARE = 0.3
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
  if (text.length <= maxChars) return text
  const marker = `\n[… ${text.length - maxChars} or more characters left out …]\n`
  const room = maxChars - marker.length
  if (room <= 0) return text.slice(0, cutBefore(text, maxChars))
  const tail = Math.floor(room * TAIL_SHARE)
  return text.slice(0, cutBefore(text, room - tail)) + marker + text.slice(cutAfter(text, text.length - tail))
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

/** The last cut at or before `at` that leaves no half of a pair on its left. */
function cutBefore(text: string, at: number): number {
  return isLowSurrogate(text.charCodeAt(at)) && isHighSurrogate(text.charCodeAt(at - 1)) ? at - 1 : at
}

/** The first cut at or after `at` that leaves no half of a pair on its right. */
function cutAfter(text: string, at: number): number {
  return isLowSurrogate(text.charCodeAt(at)) && isHighSurrogate(text.charCodeAt(at - 1)) ? at + 1 : at
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff
}
