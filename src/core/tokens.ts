import { assertNever } from '../base/assert-never.ts'
import type { AssistantBlock, ImageBlock, PreparedMessage, UserBlock } from './message.ts'

/** What role, separators and a block cost around the text of a message. */
export const MESSAGE_OVERHEAD_TOKENS = 4
/** The most an image costs with the providers that tell (about 1568 at the largest side). */
export const IMAGE_TOKENS = 1600

/** Character classes of the ASCII range. */
const SPACE = 0
const LINE_END = 1
const LOWER = 2
const UPPER = 3
const DIGIT = 4
const MARK = 5

const CLASS_OF_ASCII = Uint8Array.from({ length: 128 }, (_, code) => {
  if (code === 10 || code === 13) return LINE_END
  if (code <= 32) return SPACE
  if (code >= 97 && code <= 122) return LOWER
  if (code >= 65 && code <= 90) return UPPER
  if (code >= 48 && code <= 57) return DIGIT
  return MARK
})

/**
 * Tokens of a text, without a vocabulary: words by length, digits by three, marks by themselves, Chinese, Japanese and
 * Korean near one per character. One pass, no allocation, the same answer on every machine: every budget uses it.
 * Compared with o200k on prose, code, JSON and Chinese it stays within the band that `test/unit/core/tokens.test.ts` holds.
 */
export function estimateTokens(text: string): number {
  let tokens = 0
  let run = 0
  let previous = SPACE
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code >= 128) {
      tokens += tokensOfRun(previous, run) + tokensOfWideUnit(code)
      run = 0
      previous = SPACE
      continue
    }
    const kind = CLASS_OF_ASCII[code] ?? MARK
    const sameRun = kind === previous || (kind === LOWER && previous === UPPER && run === 1)
    if (sameRun) {
      run++
    } else {
      tokens += tokensOfRun(previous, run)
      run = 1
    }
    previous = kind
  }
  return Math.ceil(tokens + tokensOfRun(previous, run))
}

function tokensOfRun(kind: number, length: number): number {
  if (length === 0) return 0
  switch (kind) {
    case LOWER:
    case UPPER:
      return length <= 6 ? 0.9 : 0.9 + (length - 6) / 4
    case DIGIT:
      return Math.ceil(length / 3)
    case MARK:
      return 0.4 + 0.4 * length
    case LINE_END:
      return 0.6
    default:
      // A single space belongs to the word behind it.
      return length === 1 ? 0 : 0.5 + length / 100
  }
}

function tokensOfWideUnit(code: number): number {
  // Half of a surrogate pair: an emoji costs about two.
  if (code >= 0xd800 && code <= 0xdfff) return 1
  // Greek and Cyrillic have words of their own in every vocabulary.
  if (code >= 0x370 && code <= 0x52f) return 0.4
  if (code >= 0x2e80 && code <= 0xd7a3) return 0.95
  if (code >= 0xf900 && code <= 0xffef) return 0.95
  if (code >= 0x0e00 && code <= 0x1fff) return 0.9
  return 0.55
}

/** More than any text has; marks, digits and Chinese come near one. */
const MAX_TOKENS_PER_CHAR = 1.4

/** Never less than `estimateTokens` of a text this long, and no look at it. */
export function maxTokensOfChars(chars: number): number {
  return Math.ceil(chars * MAX_TOKENS_PER_CHAR)
}

type Block = UserBlock | AssistantBlock

const knownSizes = new WeakMap<Block, number>()

export function estimateMessageTokens(message: PreparedMessage): number {
  let tokens = MESSAGE_OVERHEAD_TOKENS
  if (typeof message.content === 'string') return tokens + estimateTokens(message.content)
  for (const block of message.content) tokens += estimateBlockTokens(block)
  return tokens
}

/** Below this, counting is faster than looking up what was counted before. */
const SHORT_TEXT_CHARS = 24

/** Remembered per block object: blocks never change, and the history is measured before every request. */
export function estimateBlockTokens(block: Block): number {
  if (block.type === 'image') return IMAGE_TOKENS
  if (block.type === 'text' && block.text.length < SHORT_TEXT_CHARS) return estimateTokens(block.text)
  const known = knownSizes.get(block)
  if (known !== undefined) return known
  const tokens = sizeOf(block)
  knownSizes.set(block, tokens)
  return tokens
}

function sizeOf(block: Exclude<Block, ImageBlock>): number {
  switch (block.type) {
    case 'text':
      return estimateTokens(block.text)
    case 'thinking':
      return estimateTokens(block.thinking) + signatureTokens(block.thinkingSignature)
    case 'toolCall':
      return (
        MESSAGE_OVERHEAD_TOKENS +
        estimateTokens(block.name) +
        estimateTokens(JSON.stringify(block.arguments)) +
        signatureTokens(block.thoughtSignature)
      )
    default:
      return assertNever(block)
  }
}

const signatureTokens = (signature = ''): number => Math.ceil(signature.length / 4)
