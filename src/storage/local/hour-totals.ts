import { SPENT_FIELDS } from '../../core/spent.ts'

/** In the order of `SPENT_FIELDS`: a list, because these stand in the journal four times per answer. */
export type Packed = readonly number[]

/** What was spent in an hour: names, and the lists of all of them one behind the other. */
export interface SpentHour {
  readonly hour: number
  readonly names: readonly string[]
  readonly spent: Packed
}

export interface HourTotal {
  readonly hour: number
  readonly name: string
  readonly spent: Packed
}

const FIELDS = SPENT_FIELDS.length

/**
 * Totals by hour and name. Tens of thousands are read at each start and few are asked for: an hour stays as it was read,
 * and its names are looked up by their places from the first question on. Hours come in their order, apart from a clock
 * that was set back: the first one is the oldest.
 */
export class HourTotals {
  readonly #most: number
  readonly #hours = new Map<number, Hour>()
  #size = 0

  constructor(most: number) {
    this.#most = most
  }

  get size(): number {
    return this.#size
  }

  get(hour: number, name: string): Packed | undefined {
    return this.#hours.get(hour)?.get(name)
  }

  /** In place of the one before; with too many of them the oldest ones are forgotten. */
  put({ hour, name, spent }: HourTotal): void {
    const rows = this.#hours.get(hour) ?? new Hour([], [])
    this.#hours.set(hour, rows)
    this.#size -= rows.size
    rows.put(name, spent)
    this.#size += rows.size
    this.#forgetOldest()
  }

  /** A whole hour; false when something is known of it already. */
  take({ hour, names, spent }: SpentHour): boolean {
    if (this.#hours.has(hour)) return false
    this.#hours.set(hour, new Hour(names.slice(), spent.slice()))
    this.#size += names.length
    this.#forgetOldest()
    return true
  }

  *[Symbol.iterator](): Iterator<HourTotal> {
    for (const { hour, names, spent } of this.parts(this.#most))
      for (const [at, name] of names.entries()) yield { hour, name, spent: spent.slice(at * FIELDS, (at + 1) * FIELDS) }
  }

  /** Hours, those with more names than `most` in parts. */
  *parts(most: number): Iterable<SpentHour> {
    for (const [hour, rows] of this.#hours) for (const part of rows.parts(most)) yield { hour, ...part }
  }

  #forgetOldest(): void {
    for (const [hour, rows] of this.#hours) {
      const forgotten = Math.min(this.#size - this.#most, rows.size)
      if (forgotten <= 0) return
      rows.forget(forgotten)
      this.#size -= forgotten
      if (rows.size === 0) this.#hours.delete(hour)
    }
  }
}

class Hour {
  #names: string[]
  #spent: number[]
  /** Where a name stands; made when it is first asked for. */
  #places: Map<string, number> | undefined
  /** Those before are forgotten. */
  #first = 0

  constructor(names: string[], spent: number[]) {
    this.#names = names
    this.#spent = spent
  }

  get size(): number {
    return this.#names.length - this.#first
  }

  get(name: string): Packed | undefined {
    const place = this.#placeOf(name)
    return place === undefined ? undefined : this.#spent.slice(place * FIELDS, (place + 1) * FIELDS)
  }

  put(name: string, spent: Packed): void {
    const place = this.#placeOf(name) ?? this.#names.push(name) - 1
    this.#places?.set(name, place)
    for (let field = 0; field < FIELDS; field++) this.#spent[place * FIELDS + field] = spent[field] ?? 0
  }

  forget(count: number): void {
    for (const name of this.#names.slice(this.#first, this.#first + count)) this.#places?.delete(name)
    this.#first += count
    if (this.#first < this.size) return
    this.#places = undefined
    this.#names = this.#names.slice(this.#first)
    this.#spent = this.#spent.slice(this.#first * FIELDS)
    this.#first = 0
  }

  *parts(most: number): Iterable<Omit<SpentHour, 'hour'>> {
    for (let first = this.#first; first < this.#names.length; first += most)
      yield {
        names: this.#names.slice(first, first + most),
        spent: this.#spent.slice(first * FIELDS, (first + most) * FIELDS),
      }
  }

  #placeOf(name: string): number | undefined {
    this.#places ??= new Map(this.#names.map((known, place) => [known, place] as const).slice(this.#first))
    return this.#places.get(name)
  }
}
