import type { Clock, Timer } from '../../src/base/clock.ts'

/**
 * Time that jumps to whatever is awaited next: waits cost nothing, and their order is kept. A program that was killed leaves
 * timers that never fire: what tries again for ever would otherwise do so in every turn of the event loop.
 */
export class RunningClock implements Clock {
  #now: number
  readonly #isAlive: () => boolean
  readonly #waiting: { readonly at: number; readonly callback: () => void; cancelled: boolean }[] = []
  #isScheduled = false

  constructor(startAt = Date.UTC(2026, 0, 1), isAlive = (): boolean => true) {
    this.#now = startAt
    this.#isAlive = isAlive
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
      if (!this.#isAlive()) this.#waiting.length = 0
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
