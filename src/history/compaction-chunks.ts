import { assertNever } from '../base/assert-never.ts'
import { cutMiddle } from '../base/text.ts'
import type { PreparedMessage } from '../core/message.ts'
import { estimateMessageTokens, estimateTokens } from '../core/tokens.ts'
import type { HistoryBudget } from './budget.ts'
import type { Item } from './item.ts'
import { longTextNotice } from './texts.ts'

/** A stretch of conversation as text, small enough to be summarised in one request. */
export interface Chunk {
  readonly text: string
  readonly tokens: number
}

/** Share of the window a chunk takes; less when the messages are large, so that one more still fits. */
const BASE_CHUNK_RATIO = 0.4
const MIN_CHUNK_RATIO = 0.15
/** Estimates err; this is how much too low they may be. */
const SAFETY_MARGIN = 1.2
/** For the instructions and the summary so far. */
const SUMMARIZATION_OVERHEAD_TOKENS = 4_096
/** A result's words matter less to a summary than that it came. */
const MAX_RESULT_CHARS = 2_000

/** Chunks in order. A border never lies between a call and its results. */
export function splitIntoChunks(items: readonly Item[], budget: HistoryBudget): readonly Chunk[] {
  const maxTokens = chunkTokens(items, budget)
  const chunks: Chunk[] = []
  let texts: string[] = []
  let tokens = 0
  const close = (): void => {
    if (texts.length > 0) chunks.push({ text: texts.join('\n\n'), tokens })
    texts = []
    tokens = 0
  }
  for (const group of groupsOf(items)) {
    const text = fitText(group.map((item) => toText(item.message)).join('\n\n'), maxTokens)
    const own = estimateTokens(text)
    if (tokens + own > maxTokens) close()
    texts.push(text)
    tokens += own
  }
  close()
  return chunks
}

export function chunkTokens(items: readonly Item[], budget: HistoryBudget): number {
  const window = budget.contextWindow / budget.calibration
  const total = items.reduce((sum, item) => sum + estimateMessageTokens(item.message), 0)
  const averageShare = ((total / Math.max(1, items.length)) * SAFETY_MARGIN) / window
  const ratio =
    averageShare > 0.1
      ? Math.max(MIN_CHUNK_RATIO, BASE_CHUNK_RATIO - Math.min(2 * averageShare, 0.25))
      : BASE_CHUNK_RATIO
  const overhead = Math.min(SUMMARIZATION_OVERHEAD_TOKENS, Math.floor(window / 8))
  return Math.max(128, Math.floor((window * ratio - overhead) / SAFETY_MARGIN))
}

function groupsOf(items: readonly Item[]): readonly (readonly Item[])[] {
  const groups: Item[][] = []
  for (const item of items) {
    const last = groups.at(-1)
    if (item.message.role === 'toolResult' && last !== undefined) last.push(item)
    else groups.push([item])
  }
  return groups
}

function toText(message: PreparedMessage): string {
  switch (message.role) {
    case 'user':
      return `[User]: ${typeof message.content === 'string' ? message.content : message.content.map(blockText).join('\n')}`
    case 'assistant':
      return `[Assistant]: ${message.content.map(blockText).filter(Boolean).join('\n')}`
    case 'toolResult': {
      const text = message.content.map(blockText).join('\n')
      return `[Result of ${message.toolName}${message.isError ? ', failed' : ''}]: ${cutMiddle(text, MAX_RESULT_CHARS, longTextNotice)}`
    }
    default:
      return assertNever(message)
  }
}

function blockText(block: Extract<PreparedMessage['content'], readonly unknown[]>[number]): string {
  switch (block.type) {
    case 'text':
      return block.text
    case 'image':
      return '[image]'
    case 'toolCall':
      return `(calls ${block.name} with ${cutMiddle(JSON.stringify(block.arguments), MAX_RESULT_CHARS, longTextNotice)})`
    case 'thinking':
      return ''
    default:
      return assertNever(block)
  }
}

/** A message too large for a chunk of its own is cut in the middle. */
function fitText(text: string, maxTokens: number): string {
  let fitted = text
  for (
    let tokens = estimateTokens(fitted);
    tokens > maxTokens && fitted.length > 200;
    tokens = estimateTokens(fitted)
  ) {
    fitted = cutMiddle(
      fitted,
      Math.max(200, Math.floor(fitted.length * Math.min(0.9, maxTokens / tokens))),
      longTextNotice,
    )
  }
  return fitted
}
