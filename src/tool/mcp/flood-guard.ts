import type { Clock } from '../../base/clock.ts'

const WINDOW_MS = 10_000

export interface FloodLimits {
  readonly maxBytes: number
  readonly maxMessages: number
}

/** Per ten seconds. Far above any honest server, far below what would keep our process from its other work. */
export const FLOOD_LIMITS: FloodLimits = { maxBytes: 64 * 1024 * 1024, maxMessages: 10_000 }

export class FloodGuard {
  readonly #clock: Clock
  readonly #limits: FloodLimits
  #windowStart: number
  #bytes = 0
  #messages = 0

  constructor(clock: Clock, limits: FloodLimits = FLOOD_LIMITS) {
    this.#clock = clock
    this.#limits = limits
    this.#windowStart = clock.monotonic()
  }

  /** False when it is too much. */
  allows(bytes: number, messages: number): boolean {
    const now = this.#clock.monotonic()
    if (now - this.#windowStart >= WINDOW_MS) {
      this.#windowStart = now
      this.#bytes = 0
      this.#messages = 0
    }
    this.#bytes += bytes
    this.#messages += messages
    return this.#bytes <= this.#limits.maxBytes && this.#messages <= this.#limits.maxMessages
  }
}
