import { stampOf, type Clock } from '../base/clock.ts'
import type { LinkHistoryRow } from './channel.ts'

const MAX_ROWS = 500

/** What happened to the links, for people: the latest rows, in memory only. */
export class LinkHistory {
  readonly #clock: Clock
  readonly #maxRows: number
  readonly #rows: LinkHistoryRow[] = []

  constructor(clock: Clock, maxRows = MAX_ROWS) {
    this.#clock = clock
    this.#maxRows = maxRows
  }

  /** Oldest first. */
  get rows(): readonly LinkHistoryRow[] {
    return [...this.#rows]
  }

  /** Links are counted from 1, as `wsUrl1` and `wsUrl2` are. */
  add(index: number, change: Omit<LinkHistoryRow, 'at' | 'link'>): LinkHistoryRow {
    const row = { at: stampOf(this.#clock, this.#clock.monotonic()), link: index + 1, ...change }
    this.#rows.push(row)
    if (this.#rows.length > this.#maxRows) this.#rows.shift()
    return row
  }
}
