import type { Ids } from './ids.ts'

export interface BackoffOptions {
  readonly firstMs: number
  readonly maxMs: number
  /** 0.2 means between 80 % and 120 % of the nominal delay. */
  readonly jitter: number
}

/** The delay before the nth attempt (from 0): doubling, capped, spread so that many clients do not return at once. */
export function backoffDelay(attempt: number, options: BackoffOptions, ids: Ids): number {
  const nominal = Math.min(options.maxMs, options.firstMs * 2 ** Math.min(attempt, 30))
  return Math.round(nominal * (1 + options.jitter * (2 * ids.fraction() - 1)))
}
