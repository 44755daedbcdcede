import type { Clock } from '../base/clock.ts'
import type { Ids } from '../base/ids.ts'

const STOCK_DIGITS = 8192

/** Ids and times for new entries, from one stock for all transcripts of a store: both are dear when made one by one. */
export class Stamps {
  readonly #ids: Ids
  readonly #clock: Clock
  #digits = ''
  #at = 0
  #time = Number.NaN
  #timestamp = ''

  constructor(ids: Ids, clock: Clock) {
    this.#ids = ids
    this.#clock = clock
  }

  /** Asking the system for four random bytes costs as much as for thousands. */
  hex(length: number): string {
    if (this.#at + length > this.#digits.length) {
      this.#digits = this.#ids.hex(STOCK_DIGITS)
      this.#at = 0
    }
    this.#at += length
    return this.#digits.slice(this.#at - length, this.#at)
  }

  uuid(): string {
    return this.#ids.uuid()
  }

  /** The time as text. Appends come in bursts: most share their millisecond with another. */
  now(): string {
    const time = this.#clock.now()
    if (time !== this.#time) {
      this.#time = time
      this.#timestamp = new Date(time).toISOString()
    }
    return this.#timestamp
  }
}
