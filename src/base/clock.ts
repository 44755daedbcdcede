import type { Ids } from './ids.ts'

/** The only source of time. A test owns a `ManualClock`; the running program has the system's. */
export interface Clock {
  /** Unix time in milliseconds: for stamps only, since the system or a person may set it back or forth at any time. */
  now(): number
  /** Whole milliseconds from an arbitrary start that only ever grow: for durations, deadlines and rates. */
  monotonic(): number
  /** Calls back once after `delayMs`, unless cancelled. The callback must not throw. */
  after(delayMs: number, callback: () => void): Timer
}

export interface Timer {
  cancel(): void
}

/** The stamp of an earlier monotonic reading, by the wall clock of today. */
export function stampOf(clock: Clock, monotonicMs: number): number {
  return clock.now() - (clock.monotonic() - monotonicMs)
}

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
