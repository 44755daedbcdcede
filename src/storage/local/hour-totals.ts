import type { UsageHour } from '../../core/spent.ts'

/** In the order of `SPENT_FIELDS`: a list, because these stand in the journal four times per answer. */
export type Packed = readonly number[]

/** Of a model and a channel, or of a session. */
export type HourOf = Omit<UsageHour, 'spent'>
export type HourTotal = HourOf & { readonly spent: Packed }

/**
 * Totals by hour, as they were read: tens of thousands are read at each start and asked for now and then. Hours come in
 * their order, apart from a clock that was set back: the first one is the oldest.
 */
export class HourTotals {
  readonly #most: number
  readonly #hours = new Map<number, Map<string, HourTotal>>()
  #size = 0

  constructor(most: number) {
    this.#most = most
  }

  get size(): number {
    return this.#size
  }

  get(about: HourOf): HourTotal | undefined {
    return this.#hours.get(about.hour)?.get(nameOf(about))
  }

  /** In place of the one before; with too many of them the oldest one is forgotten. */
  put(total: HourTotal): void {
    const name = nameOf(total)
    let rows = this.#hours.get(total.hour)
    if (rows === undefined) this.#hours.set(total.hour, (rows = new Map()))
    this.#size -= rows.size
    rows.set(name, total)
    this.#size += rows.size
    if (this.#size > this.#most) this.#dropOldest()
  }

  *[Symbol.iterator](): Iterator<HourTotal> {
    for (const rows of this.#hours.values()) yield* rows.values()
  }

  #dropOldest(): void {
    for (const [hour, rows] of this.#hours) {
      for (const name of rows.keys()) {
        rows.delete(name)
        break
      }
      this.#size--
      if (rows.size === 0) this.#hours.delete(hour)
      return
    }
  }
}

function nameOf({ model, channel, session }: HourOf): string {
  return session ?? `${channel}\n${model}`
}
