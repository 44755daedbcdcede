import type { Entry } from '../core/entry.ts'
import type { AssistantMessage, Usage } from '../core/message.ts'
import type { CachePrices } from './cache-cost.ts'
import { activeCleanups, type ActiveCleanup } from './cleanup-records.ts'
import { REQUEST_ENTRY_TYPE } from './request-record.ts'

/** What the cleanups in force saved in one request, in tokens at the price of fresh input. */
export interface CleanupEffect {
  /** Below 0 when writing the cache again cost more. */
  readonly tokens: number
  /** Whether every number in it was counted, by the provider or with the model's own vocabulary. */
  readonly measured: boolean
}

export interface EffectOptions {
  readonly prices: CachePrices
  readonly now: number
  /** How long the provider's cache stays warm. */
  readonly ttlMs: number
}

/**
 * By what the provider reports for a request: the hidden tokens would have been read from its cache, written to it or
 * fresh, as the request's own were. The first request behind a cleanup also pays for what it could not read any more.
 * Undefined when nothing is hidden.
 */
export function cleanupEffect(
  entries: readonly Entry[],
  usage: Usage,
  { prices, now, ttlMs }: EffectOptions,
): CleanupEffect | undefined {
  const cleanups = activeCleanups(entries)
  if (cleanups.length === 0) return undefined
  const hidden = savedBy(cleanups)
  const measured = usage.totalTokens > 0 && !cleanups.some(({ record }) => record.estimated)
  const before = latestAnswer(entries)
  const effect = (tokens: number): CleanupEffect => ({ tokens: Math.round(tokens), measured })
  if (cachedTokens(usage) + cachedTokens(before?.usage) === 0) return effect(hidden)
  const isWarm = before !== undefined && cachedTokens(before.usage) > 0 && now - before.timestamp <= ttlMs
  const fresh = savedBy(cleanupsSinceRequest(entries, cleanups))
  if (isWarm && fresh > 0) {
    const lost = Math.max(0, inputTokens(before.usage) - fresh - usage.cacheRead)
    return effect(prices.read * hidden - (prices.written - prices.read) * lost)
  }
  return effect((usage.cacheRead > 0 ? prices.read : prices.written) * hidden)
}

const savedBy = (cleanups: readonly ActiveCleanup[]): number =>
  cleanups.reduce((sum, { record }) => sum + Math.max(0, record.tokensBefore - record.tokensAfter), 0)

function cleanupsSinceRequest(entries: readonly Entry[], cleanups: readonly ActiveCleanup[]): readonly ActiveCleanup[] {
  const at = entries.findLastIndex((entry) => entry.type === 'custom' && entry.customType === REQUEST_ENTRY_TYPE)
  const since = new Set(entries.slice(at + 1).map(({ id }) => id))
  return cleanups.filter(({ id }) => since.has(id))
}

function latestAnswer(entries: readonly Entry[]): AssistantMessage | undefined {
  const entry = entries.findLast((each) => each.type === 'message' && each.message.role === 'assistant')
  return entry?.type === 'message' && entry.message.role === 'assistant' ? entry.message : undefined
}

const cachedTokens = (usage: Usage | undefined): number => (usage?.cacheRead ?? 0) + (usage?.cacheWrite ?? 0)

const inputTokens = ({ input, cacheRead, cacheWrite }: Usage): number => input + cacheRead + cacheWrite
