import type { Usage } from '../core/message.ts'

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
