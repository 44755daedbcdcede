import type { Clock, Timer } from '../../base/clock.ts'

/** One timer that replaces itself: setting it again cancels the last, so that no stale callback can fire. */
export class TimerSlot {
  readonly #clock: Clock
  #timer: Timer | undefined
  #dueAt = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get isSet(): boolean {
    return this.#timer !== undefined
  }

  /** Undefined when it is not set. */
  get remainingMs(): number | undefined {
    return this.isSet ? Math.max(0, this.#dueAt - this.#clock.monotonic()) : undefined
  }

  set(delayMs: number, callback: () => void): void {
    this.cancel()
    this.#dueAt = this.#clock.monotonic() + delayMs
    this.#timer = this.#clock.after(delayMs, () => {
      this.#timer = undefined
      callback()
    })
  }

  cancel(): void {
    this.#timer?.cancel()
    this.#timer = undefined
  }
}
