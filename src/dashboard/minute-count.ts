import type { Clock } from '../base/clock.ts'

const SECONDS = 60

/** How often something happened within the last minute, second by second: its memory does not grow. */
export class MinuteCount {
  readonly #clock: Clock
  readonly #counts = Array.from({ length: SECONDS }, () => 0)
  #latest: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#latest = this.#second()
  }

  add(): void {
    this.#forget()
    const at = this.#latest % SECONDS
    this.#counts[at] = (this.#counts[at] ?? 0) + 1
  }

  get perMinute(): number {
    this.#forget()
    return this.#counts.reduce((sum, count) => sum + count, 0)
  }

  #second(): number {
    return Math.floor(this.#clock.monotonic() / 1_000)
  }

  /** Seconds that have passed since hold nothing yet. */
  #forget(): void {
    const now = this.#second()
    for (let at = Math.max(this.#latest + 1, now - SECONDS + 1); at <= now; at++) this.#counts[at % SECONDS] = 0
    this.#latest = now
  }
}
