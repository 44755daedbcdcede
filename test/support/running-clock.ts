import type { Clock, Timer } from '../../src/base/clock.ts'

/** Time that jumps to whatever is awaited next: waits cost nothing, and their order is kept. */
export class RunningClock implements Clock {
  #now: number
  readonly #waiting: { readonly at: number; readonly callback: () => void; cancelled: boolean }[] = []
  #isScheduled = false

  constructor(startAt = Date.UTC(2026, 0, 1)) {
    this.#now = startAt
  }

  now(): number {
    return this.#now
  }

  monotonic(): number {
    return this.#now
  }

  after(delayMs: number, callback: () => void): Timer {
    const waiting = { at: this.#now + delayMs, callback, cancelled: false }
    this.#waiting.push(waiting)
    this.#schedule()
    return {
      cancel: () => {
        waiting.cancelled = true
      },
    }
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#waiting.sort((a, b) => a.at - b.at)
      const next = this.#waiting.shift()
      if (next !== undefined && !next.cancelled) {
        this.#now = Math.max(this.#now, next.at)
        next.callback()
      }
      if (this.#waiting.length > 0) this.#schedule()
    })
  }
}
