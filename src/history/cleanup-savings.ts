import type { Entry } from '../core/entry.ts'
import type { AssistantMessage, Usage } from '../core/message.ts'
import { REQUEST_ENTRY_TYPE } from './request-record.ts'
import { cleanupInForce, hiddenInAll, tokensSavedBy } from './view-records.ts'

/** What a token of a request costs, relative to one that no cache knows. */
export interface CachePrices {
  /** Put into the provider's cache. */
  readonly written: number
  /** Found in it. */
  readonly read: number
}

/** As providers publish them; for models whose prices are not known. */
export const USUAL_CACHE_PRICES: CachePrices = { written: 1.25, read: 0.1 }

/** From prices for a million tokens. A model with a price and none for its cache has no cache. */
export function cachePricesOf(prices: Pick<Usage['cost'], 'input' | 'cacheRead' | 'cacheWrite'>): CachePrices {
  const { input, cacheRead, cacheWrite } = prices
  if (!(input > 0)) return USUAL_CACHE_PRICES
  // Where writing has no price of its own it costs what a fresh token costs.
  const written = cacheWrite > 0 ? cacheWrite / input : 1
  return { written, read: cacheRead > 0 ? cacheRead / input : 1 }
}

/** Two histories of the same conversation, in tokens: as it is, and with a part of it hidden. */
export interface CacheComparison {
  readonly before: number
  readonly after: number
  /** From the start on the same in both. */
  readonly untouched: number
  /** At the end of both, and in no request yet. */
  readonly unsent: number
  /** Whether the provider still has the latest request in its cache. */
  readonly isWarm: boolean
  /** Over how many requests to come the two are compared. */
  readonly requests: number
  readonly prices: CachePrices
}

/**
 * What hiding saves over the requests to come, less the cache it invalidates, in tokens at the price of fresh input. The
 * first request writes again what stands behind the first difference; the later ones read the shorter history.
 */
export function netSavings(compared: CacheComparison): number {
  const { before, after, untouched, unsent, isWarm, requests, prices } = compared
  const { written, read } = prices
  const unchanged = isWarm ? read * (before - unsent) + written * unsent : written * before
  const hidden = isWarm ? read * untouched + written * (after - untouched) : written * after
  return Math.round(unchanged - hidden + read * (before - after) * (requests - 1))
}

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
  const all = hiddenInAll(entries)
  if (all === undefined) return undefined
  const hidden = all.tokensSaved
  const measured = usage.totalTokens > 0 && !all.estimated
  const before = latestAnswer(entries)
  const effect = (tokens: number): CleanupEffect => ({ tokens: Math.round(tokens), measured })
  if (cachedTokens(usage) + cachedTokens(before?.usage) === 0) return effect(hidden)
  const isWarm = before !== undefined && cachedTokens(before.usage) > 0 && now - before.timestamp <= ttlMs
  const fresh = savedSinceRequest(entries)
  if (isWarm && fresh > 0) {
    const lost = Math.max(0, inputTokens(before.usage) - fresh - usage.cacheRead)
    return effect(prices.read * hidden - (prices.written - prices.read) * lost)
  }
  return effect((usage.cacheRead > 0 ? prices.read : prices.written) * hidden)
}

function savedSinceRequest(entries: readonly Entry[]): number {
  const at = entries.findLastIndex((entry) => entry.type === 'custom' && entry.customType === REQUEST_ENTRY_TYPE)
  return entries.slice(at + 1).reduce((sum, { id }) => {
    const cleanup = cleanupInForce(entries, id)
    return cleanup === undefined ? sum : sum + tokensSavedBy(cleanup.record)
  }, 0)
}

function latestAnswer(entries: readonly Entry[]): AssistantMessage | undefined {
  const entry = entries.findLast((each) => each.type === 'message' && each.message.role === 'assistant')
  return entry?.type === 'message' && entry.message.role === 'assistant' ? entry.message : undefined
}

const cachedTokens = (usage: Usage | undefined): number => (usage?.cacheRead ?? 0) + (usage?.cacheWrite ?? 0)

const inputTokens = ({ input, cacheRead, cacheWrite }: Usage): number => input + cacheRead + cacheWrite
