import type { Clock, Timer } from '../base/clock.ts'
import { outsideWorkDone } from './outside-work.ts'

interface Waiting {
  readonly at: number
  readonly order: number
  readonly callback: () => void
}

/** Not the wall time: code that mixes the two up fails its tests. */
const MONOTONIC_START_MS = 3_600_000

/**
 * Time that stands still until the test moves it. Timers fire in order of their due time, then of their creation, and
 * follow monotonic time as the system's do: `stepWallTime` moves no timer.
 */
export class ManualClock implements Clock {
  #now = MONOTONIC_START_MS
  /** Wall time minus monotonic time. */
  #wallOffset: number
  #order = 0
  readonly #waiting = new Set<Waiting>()

  constructor(startAt = Date.UTC(2026, 0, 1)) {
    this.#wallOffset = startAt - this.#now
  }

  now(): number {
    return this.#now + this.#wallOffset
  }

  monotonic(): number {
    return this.#now
  }

  /** A person, a time server or a boot without a battery clock sets the wall clock forth, or back when negative. */
  stepWallTime(byMs: number): void {
    this.#wallOffset += byMs
  }

  after(delayMs: number, callback: () => void): Timer {
    const waiting = { at: this.#now + Math.max(0, delayMs), order: this.#order++, callback }
    this.#waiting.add(waiting)
    return { cancel: () => this.#waiting.delete(waiting) }
  }

  /** How many timers are set: a test that closed everything expects 0. */
  get pending(): number {
    return this.#waiting.size
  }

  /** Moves time on, firing what becomes due; between timers all promises that can settle do. */
  async advance(byMs: number): Promise<void> {
    const end = this.#now + byMs
    await settle()
    for (;;) {
      const next = this.#next()
      if (next === undefined || next.at > end) break
      this.#fire(next)
      await settle()
    }
    this.#now = end
    await settle()
  }

  /** Fires timers, however far away, until `done` says so; fails when nothing is left to fire. */
  async runUntil(done: () => boolean, maxTimers = 100_000): Promise<void> {
    await settle()
    for (let fired = 0; !done(); fired++) {
      const next = this.#next()
      if (next === undefined) throw new Error('the clock has no timer left, and the condition does not hold')
      if (fired >= maxTimers) throw new Error(`the condition does not hold after ${maxTimers} timers`)
      this.#fire(next)
      await settle()
    }
  }

  #next(): Waiting | undefined {
    let first: Waiting | undefined
    for (const waiting of this.#waiting) {
      if (first === undefined || waiting.at < first.at || (waiting.at === first.at && waiting.order < first.order)) {
        first = waiting
      }
    }
    return first
  }

  #fire(waiting: Waiting): void {
    this.#waiting.delete(waiting)
    this.#now = Math.max(this.#now, waiting.at)
    waiting.callback()
  }
}

/**
 * Resolves when nothing is left that only time could move on. Ports in memory answer in microtasks, and a turn of the event
 * loop begins when no microtask is left; what waits for something outside the program is announced with
 * `duringOutsideWork`.
 */
export async function settle(): Promise<void> {
  do {
    await new Promise<void>((resolve) => setImmediate(resolve))
  } while (await outsideWorkDone())
}
