import type { Usage } from '../core/message.ts'

/** US dollars for a million tokens. */
export interface Prices {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
}

export const NO_PRICES: Prices = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 }

export interface TokenCounts {
  /** Without what was read from or written to a cache. */
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
}

export function toUsage(counts: TokenCounts, prices: Prices): Usage {
  const cost = {
    input: (counts.input * prices.input) / 1e6,
    output: (counts.output * prices.output) / 1e6,
    cacheRead: (counts.cacheRead * prices.cacheRead) / 1e6,
    cacheWrite: (counts.cacheWrite * prices.cacheWrite) / 1e6,
  }
  return {
    ...counts,
    totalTokens: counts.input + counts.output + counts.cacheRead + counts.cacheWrite,
    cost: { ...cost, total: cost.input + cost.output + cost.cacheRead + cost.cacheWrite },
  }
}

/** A count as providers send it: absent, null and nonsense are zero. */
export function count(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? Math.floor(value) : 0
}
