import { cutMiddle, shareOut, takeHead, takeTail } from '../base/text.ts'
import type { ToolResultMessage, UserBlock } from '../core/message.ts'
import { estimateBlockTokens } from '../core/tokens.ts'
import { MIN_KEEP_CHARS, type PruningSettings } from './budget.ts'
import type { Item } from './item.ts'
import { softTrimNote, SYNTHETIC_RESULT_TEXT, truncationNotice } from './texts.ts'

/** Characters of text in a tool result; its images have their own budget. */
export function textLength({ content }: ToolResultMessage): number {
  return content.reduce((sum, block) => sum + (block.type === 'text' ? block.text.length : 0), 0)
}

export function textTokens({ content }: ToolResultMessage): number {
  return content.reduce((sum, block) => sum + (block.type === 'text' ? estimateBlockTokens(block) : 0), 0)
}

/**
 * At most `maxChars` of text over all blocks together, which always holds; each block keeps `MIN_KEEP_CHARS` where that
 * is possible and its share of the rest.
 */
export function truncateResult(message: ToolResultMessage, maxChars: number): ToolResultMessage {
  const lengths = message.content.map((block) => (block.type === 'text' ? block.text.length : 0))
  const shares = shareOut(lengths, maxChars, MIN_KEEP_CHARS)
  const content = message.content.flatMap((block, at): UserBlock[] => {
    if (block.type !== 'text') return [block]
    const text = cutMiddle(block.text, shares[at] ?? 0, (omitted) => truncationNotice(omitted, message.toolCallId))
    return text.trim() === '' ? [] : [text === block.text ? block : { ...block, text }]
  })
  return {
    ...message,
    content: content.length > 0 ? content : [{ type: 'text', text: takeHead('(cut)', maxChars) || '…' }],
  }
}

/** Head and tail of the whole text in one block. Undefined when there is too little to gain. */
export function trimResult(
  message: ToolResultMessage,
  settings: PruningSettings['softTrim'],
): ToolResultMessage | undefined {
  if (message.content.some((block) => block.type === 'image')) return undefined
  const text = joinedText(message)
  if (text === SYNTHETIC_RESULT_TEXT) return undefined
  if (text.length <= settings.maxChars || text.length <= settings.headChars + settings.tailChars) return undefined
  const head = takeHead(text, settings.headChars)
  const tail = takeTail(text, settings.tailChars)
  const trimmed = `${head}\n...\n${tail}\n\n${softTrimNote(head.length, tail.length, text.length)}`
  return { ...message, content: [{ type: 'text', text: trimmed }] }
}

/**
 * Undefined when it is cleared already, or shorter than what would replace it. What stands in for a missing result is
 * made anew for each request, with no entry that a decision about it could name, so it stays too.
 */
export function clearResult(message: ToolResultMessage, placeholder: string): ToolResultMessage | undefined {
  if (!message.content.some((block) => block.type === 'image')) {
    const text = joinedText(message)
    if (text.length <= placeholder.length || text === SYNTHETIC_RESULT_TEXT) return undefined
  }
  return { ...message, content: [{ type: 'text', text: placeholder }] }
}

function joinedText(message: ToolResultMessage): string {
  return message.content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n')
}

/** Where the results of the latest calls begin; they have not been answered yet and are the last to be cut. */
export function startOfLatestBatch(items: readonly Item[]): number {
  return items.findLastIndex((item) => item.message.role === 'assistant') + 1
}

export function withMessage(item: Item, message: Item['message']): Item {
  return { ...item, message }
}
