import type { Clock } from '../base/clock.ts'

/** A token bucket: `perSecond` on average, `burst` at once. */
export class RateLimit {
  readonly #clock: Clock
  readonly #perSecond: number
  readonly #burst: number
  #tokens: number
  #at: number

  constructor(clock: Clock, limit: { readonly perSecond: number; readonly burst: number }) {
    this.#clock = clock
    this.#perSecond = limit.perSecond
    this.#burst = limit.burst
    this.#tokens = limit.burst
    this.#at = clock.monotonic()
  }

  /** False when there is no token left. */
  take(): boolean {
    const now = this.#clock.monotonic()
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#at) / 1000) * this.#perSecond)
    this.#at = now
    if (this.#tokens < 1) return false
    this.#tokens--
    return true
  }
}
