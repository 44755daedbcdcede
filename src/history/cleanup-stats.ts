import type { PreparedMessage } from '../core/message.ts'
import { netSavings, type CachePrices } from './cache-cost.ts'
import { userBlocksOf } from './blocks.ts'
import type { PreparedHistory } from './prepare.ts'
import type { CountMessages } from './view-tokens.ts'

/** What a cleanup did, in messages and tokens. */
export interface CleanupStats {
  readonly cleanedMessages: number
  /** What the model would be sent, without the system prompt. */
  readonly remainingMessages: number
  readonly tokensBefore: number
  readonly tokensSaved: number
  readonly tokensRemaining: number
  readonly estimated: boolean
  /** Over the requests to come, less the prompt cache that is invalidated, in tokens at the price of fresh input. */
  readonly netTokensSaved: number
  readonly netRequests: number
}

export interface StatsOptions {
  readonly cleaned: number
  readonly count: CountMessages
  readonly prices: CachePrices
  readonly requests: number
  readonly now: number
  /** How long the provider's cache stays warm. */
  readonly ttlMs: number
}

/** What one history saves against the other; zeros when they are the same. */
export function statsOf(before: PreparedHistory, after: PreparedHistory, options: StatsOptions): CleanupStats {
  const { cleaned, count, prices, requests } = options
  const [sent, remaining] = [sentMessages(before), sentMessages(after)]
  const counted = count(sent)
  const left = after === before ? counted : count(remaining)
  const net = (): number =>
    netSavings({
      before: counted.count,
      after: left.count,
      untouched: count(commonStart(sent, remaining)).count,
      unsent: count(unsentPart(sent)).count,
      isWarm: isWarm(sent, options),
      requests,
      prices,
    })
  return {
    cleanedMessages: cleaned,
    remainingMessages: remaining.length,
    tokensBefore: counted.count,
    tokensSaved: counted.count - left.count,
    tokensRemaining: left.count,
    estimated: counted.estimated || left.estimated,
    netTokensSaved: after === before ? 0 : net(),
    netRequests: requests,
  }
}

/** The message that ends a history which stops at an answer is not in the next request, so it counts on neither side. */
function sentMessages({ messages, report }: PreparedHistory): readonly PreparedMessage[] {
  return messages.filter((_, at) => report.messages[at]?.kind !== 'filler')
}

/** What a provider finds in its cache of the one when it is sent the other: whole messages, then blocks of the next. */
function commonStart(a: readonly PreparedMessage[], b: readonly PreparedMessage[]): readonly PreparedMessage[] {
  const at = b.findIndex((message, place) => !isSame(message, a[place]))
  if (at < 0) return b
  const [mine, yours] = [b[at], a[at]]
  const common = b.slice(0, at)
  if (mine?.role !== 'user' || yours?.role !== 'user') return common
  const [blocks, others] = [userBlocksOf(mine), userBlocksOf(yours)]
  const differs = blocks.findIndex((block, place) => !isSame(block, others[place]))
  const content = blocks.slice(0, differs < 0 ? blocks.length : differs)
  return content.length === 0 ? common : [...common, { ...mine, content }]
}

const isSame = (a: unknown, b: unknown): boolean => a === b || JSON.stringify(a) === JSON.stringify(b)

/** The latest answer has not been in a request yet, so no cache knows it. */
function unsentPart(messages: readonly PreparedMessage[]): readonly PreparedMessage[] {
  return messages.at(-1)?.role === 'assistant' ? messages.slice(-1) : []
}

function isWarm(messages: readonly PreparedMessage[], { now, ttlMs }: StatsOptions): boolean {
  const latest = messages.findLast((message) => message.role === 'assistant')?.timestamp ?? 0
  return now - latest <= ttlMs
}
