import type { CleanupNumbers } from '../core/event.ts'
import type { PreparedMessage } from '../core/message.ts'
import type { TokenCount } from '../core/token-counter.ts'
import { netSavings, type CachePrices } from './cleanup-savings.ts'
import { userBlocksOf } from './blocks.ts'
import type { Part } from './part.ts'
import type { PreparedHistory } from './prepare.ts'
import type { MessageReport } from './report.ts'
import type { CountMessages } from './view-tokens.ts'

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
export function statsOf(before: PreparedHistory, after: PreparedHistory, options: StatsOptions): CleanupNumbers {
  const { cleaned, count, prices, requests } = options
  const [sent, remaining] = [before.parts.map(sentMessages), after.parts.map(sentMessages)]
  const counted = countAll(sent, count)
  const left = after === before ? counted : countAll(remaining, count)
  const net = (): number => {
    const { same, others } = commonParts(sent, remaining)
    const [mine, yours] = others
    return netSavings({
      before: counted.count,
      after: left.count,
      untouched: countAll([...same, commonStart(mine, yours)], count).count,
      unsent: count(unsentPart(mine)).count,
      isWarm: isWarm(mine, options),
      requests,
      prices,
    })
  }
  return {
    cleanedMessages: cleaned,
    remainingMessages: remaining.reduce((sum, messages) => sum + messages.length, 0),
    tokensBefore: counted.count,
    tokensSaved: counted.count - left.count,
    tokensRemaining: left.count,
    estimated: counted.estimated || left.estimated,
    netTokensSaved: after === before ? 0 : net(),
    netRequests: requests,
  }
}

type Messages = readonly PreparedMessage[]

const sentOfPart = new WeakMap<Part, Messages>()

/** The message that ends a history which stops at an answer is not in the next request, so it counts on neither side. */
function sentMessages(part: Part): Messages {
  const known = sentOfPart.get(part)
  if (known !== undefined) return known
  const { messages, report } = part
  const sent = report.some(isFiller) ? messages.filter((_, at) => !isFiller(report[at])) : messages
  sentOfPart.set(part, sent)
  return sent
}

const isFiller = (message: MessageReport | undefined): boolean => message?.kind === 'filler'

/** Part by part: the counter knows those it has seen. */
function countAll(parts: readonly Messages[], count: CountMessages): TokenCount {
  const counts = parts.map(count)
  return {
    count: counts.reduce((sum, one) => sum + one.count, 0),
    estimated: counts.some(({ estimated }) => estimated),
  }
}

/** The parts that both begin with, and what follows them in each. */
function commonParts(
  a: readonly Messages[],
  b: readonly Messages[],
): { readonly same: readonly Messages[]; readonly others: readonly [Messages, Messages] } {
  const differs = b.findIndex((part, at) => part !== a[at])
  const length = differs < 0 ? b.length : differs
  return { same: a.slice(0, length), others: [a.slice(length).flat(), b.slice(length).flat()] }
}

/** What a provider finds in its cache of the one when it is sent the other: whole messages, then blocks of the next. */
function commonStart(a: Messages, b: Messages): Messages {
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
function unsentPart(messages: Messages): Messages {
  return messages.at(-1)?.role === 'assistant' ? messages.slice(-1) : []
}

function isWarm(messages: Messages, { now, ttlMs }: StatsOptions): boolean {
  const latest = messages.findLast((message) => message.role === 'assistant')?.timestamp ?? 0
  return now - latest <= ttlMs
}
