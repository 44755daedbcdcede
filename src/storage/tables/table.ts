import { keyedHash, type HashSeed } from './keyed-hash.ts'
import { Slots, SlotSet, type Shape } from './slots.ts'

export interface Row<V> {
  readonly key: string
  readonly value: V
}

/** The number by which the lines of a file name their table. */
export const TABLE = { sessions: 0, transcripts: 1, spending: 2 } as const
export type TableNumber = (typeof TABLE)[keyof typeof TABLE]

/** Makes the tables of a home, whose rows are in memory only while they are in use. */
export interface Tables {
  table<V>(number: TableNumber, form: TableForm<V>): Table<V>
}

/** What a table has to know of its values. */
export interface TableForm<V> {
  readonly shape: Shape
  /** The name that a key has; several keys may share it. */
  nameOf(key: string): string
  /** The other names of a row, one less than the shape says. */
  namesOf(value: V): readonly (string | undefined)[]
  tagsOf(key: string, value: V): readonly (string | undefined)[]
  timeOf(value: V): number
  /** A value as a file may hold it; undefined for what is none. */
  decode(value: unknown): V | undefined
}

/** Keys with values, found by the key alone, in the order in which they were put. */
export function plainForm<V>(decode: TableForm<V>['decode']): TableForm<V> {
  return {
    shape: { names: 1, tags: 0 },
    nameOf: (key) => key,
    namesOf: () => [],
    tagsOf: () => [],
    timeOf: () => 0,
    decode,
  }
}

/** Where rows are that were not changed lately. */
export interface RowDisk {
  seed(): HashSeed
  /** Rows of the table changed. */
  changed(): void
  read(place: number, length: number): Promise<Row<unknown> | undefined>
  /** The same within this turn of the event loop: for what must not wait, and should have been read before. */
  readNow(place: number, length: number): Row<unknown> | undefined
  /** The newest lines of the table's rows, each as `["key",value]`; `atEnd` when all that is left is in memory. */
  scan(
    visit: (slot: number, text: string) => void,
    atEnd: () => void,
    pause: (() => Promise<void>) | undefined,
  ): Promise<void>
}

/** What is written next: rows as they are now, and keys that are gone since they were written. */
export interface Unwritten {
  readonly rows: readonly (readonly [slot: number, row: Row<unknown>])[]
  readonly gone: readonly string[]
}

const NO_SEED: HashSeed = [0, 0]
const CACHED_ROWS = 1_024

/**
 * Rows by key and by other names, in the order of their times. Changed rows are in memory until they are on disk, those
 * used lately stay there; of all others there is only their place in `Slots`. Without a disk all are in memory.
 */
export class Table<V> {
  readonly #form: TableForm<V>
  readonly #disk: RowDisk | undefined
  #slots: Slots
  #changed = new Map<number, Row<V>>()
  /** On their way to the disk. */
  #writing = new Map<number, Row<V>>()
  readonly #cached = new Map<number, Row<V>>()
  #gone = new Set<string>()
  #goneWriting = new Set<string>()

  constructor(form: TableForm<V>, disk?: RowDisk) {
    this.#form = form
    this.#disk = disk
    this.#slots = new Slots(form.shape)
  }

  get size(): number {
    return this.#slots.count
  }

  /** Before anything is put. */
  clear(): void {
    this.#slots = new Slots(this.#form.shape)
  }

  get slots(): Slots {
    return this.#slots
  }

  /** Rows and keys that are not on disk yet. */
  get unwritten(): number {
    return this.#disk === undefined ? 0 : this.#changed.size + this.#gone.size
  }

  /** Rows that are held as objects. */
  get heldRows(): number {
    return this.#changed.size + this.#writing.size + this.#cached.size
  }

  /** Of the index, for rows that are not held as objects: those are counted with all they take. */
  get indexBytes(): number {
    return this.size === 0 ? 0 : Math.round(this.#slots.bytes * Math.max(0, 1 - this.heldRows / this.size))
  }

  /** May have to read within this turn of the event loop: call `load` or `find` before, where there is time. */
  get(key: string): V | undefined {
    return this.#get(key, this.nameHashOf(key))
  }

  async find(key: string): Promise<V | undefined> {
    const hash = this.nameHashOf(key)
    await this.load(this.#slots.withName(0, hash))
    return this.#get(key, hash)
  }

  #get(key: string, hash: number): V | undefined {
    const slot = this.#slotOf(key, hash)
    return slot === undefined ? undefined : this.at(slot)?.value
  }

  /** Slots whose row may have this name, the one put last first. */
  named(name: number, text: string | undefined): readonly number[] {
    return this.#slots.withName(name, this.hashOf(text))
  }

  hashOf(text: string | undefined): number {
    return text === undefined ? 0 : keyedHash(this.#disk?.seed() ?? NO_SEED, text)
  }

  at(slot: number): Row<V> | undefined {
    const held = this.#held(slot)
    if (held !== undefined) return held
    const place = this.#slots.placeOf(slot)
    if (place === undefined) return undefined
    return this.#keep(slot, this.#disk?.readNow(place.place, place.length))
  }

  /** Reads what of these is not in memory. */
  async load(slots: readonly number[]): Promise<void> {
    const waiting: Promise<void>[] = []
    for (const slot of slots) {
      const place = this.#held(slot) === undefined ? this.#slots.placeOf(slot) : undefined
      if (place !== undefined) waiting.push(this.#loadOne(slot, place))
    }
    if (waiting.length > 0) await Promise.all(waiting)
  }

  put(key: string, value: V): void {
    const hash = this.nameHashOf(key)
    const names = [hash, ...this.#form.namesOf(value).map((name) => this.hashOf(name))]
    const tags = this.#form.tagsOf(key, value).map((tag) => this.hashOf(tag))
    const slot = this.#slots.put(this.#slotOf(key, hash), { names, tags, at: this.#form.timeOf(value) })
    this.#cached.delete(slot)
    this.#changed.delete(slot)
    this.#changed.set(slot, { key, value })
    this.#disk?.changed()
  }

  delete(key: string): boolean {
    const slot = this.#slotOf(key)
    if (slot === undefined) return false
    const isWritten = this.#slots.placeOf(slot) !== undefined || this.#writing.has(slot)
    this.#slots.remove(slot)
    for (const rows of [this.#changed, this.#writing, this.#cached]) rows.delete(slot)
    if (isWritten) this.#gone.add(key)
    this.#disk?.changed()
    return true
  }

  /** The row put longest ago. */
  oldest(): Row<V> | undefined {
    const walk = this.#slots.walk('newer')
    walk.end()
    const slot = walk.step()
    return slot === undefined ? undefined : this.at(slot)
  }

  /** Oldest first, or newest first; rows that are put meanwhile may come or not. */
  async *rows(direction: 'newer' | 'older' = 'newer'): AsyncIterable<Row<V>> {
    const walk = this.#slots.walk(direction)
    try {
      for (let part = steps(walk, READ_AT_ONCE); part.length > 0; part = steps(walk, READ_AT_ONCE)) {
        await this.load(part)
        for (const slot of part) {
          const row = this.at(slot)
          if (row !== undefined) yield row
        }
      }
    } finally {
      walk.end()
    }
  }

  /**
   * Every row once, in no order, as an object or as `["key",value]`: as it was at one moment of the call, when it is
   * changed meanwhile. Stops for the disk, and for `pause`, after each megabyte.
   */
  async scan(visit: (slot: number, row: Row<V> | string) => void, pause?: () => Promise<void>): Promise<void> {
    const seen = new SlotSet()
    const visitHeld = (): void => {
      for (const rows of [this.#changed, this.#writing])
        for (const [slot, row] of rows) {
          if (seen.has(slot)) continue
          seen.add(slot)
          visit(slot, row)
        }
    }
    if (this.#disk === undefined) return visitHeld()
    const visitRead = (slot: number, text: string): void => {
      if (this.#isChanged(slot) || seen.has(slot)) return
      seen.add(slot)
      visit(slot, text)
    }
    await this.#disk.scan(visitRead, visitHeld, pause)
  }

  /** What has to be in a snapshot: all rows, oldest first, or none where a file has them. */
  *held(): Iterable<Row<V>> {
    if (this.#disk !== undefined) return
    const walk = this.#slots.walk('newer')
    for (let slot = walk.step(); slot !== undefined; slot = walk.step()) {
      const row = this.at(slot)
      if (row !== undefined) yield row
    }
    walk.end()
  }

  nameHashOf(key: string): number {
    return this.hashOf(this.#form.nameOf(key))
  }

  #isChanged(slot: number): boolean {
    return this.#changed.has(slot) || this.#writing.has(slot)
  }

  /** What the disk is to write; `written` or `failed` follows. */
  takeUnwritten(): Unwritten {
    this.#writing = this.#changed
    this.#goneWriting = this.#gone
    this.#changed = new Map()
    this.#gone = new Set()
    return { rows: [...this.#writing], gone: [...this.#goneWriting] }
  }

  /** All of it is durable, at these places. */
  written(places: ReadonlyMap<number, { readonly place: number; readonly length: number }>): void {
    for (const [slot, row] of this.#writing) {
      const place = places.get(slot)
      if (place === undefined) continue
      this.#slots.setPlace(slot, place.place, place.length)
      if (!this.#changed.has(slot)) this.#keepRow(slot, row)
    }
    this.#writing = new Map()
    this.#goneWriting = new Set()
  }

  failed(): void {
    this.#changed = new Map([...this.#writing, ...this.#changed])
    this.#gone = new Set([...this.#goneWriting, ...this.#gone])
    this.#writing = new Map()
    this.#goneWriting = new Set()
  }

  /** A row that was found on the disk, newer than what was found before. */
  found(key: string, value: unknown, place: number, length: number): void {
    const sound = this.#form.decode(value)
    if (sound === undefined) return this.lost(key)
    this.put(key, sound)
    const slot = this.#slotOf(key)
    if (slot === undefined) return
    this.#changed.delete(slot)
    this.#slots.setPlace(slot, place, length)
    this.#keepRow(slot, { key, value: sound })
  }

  /** The disk says that the row is gone. */
  lost(key: string): void {
    this.delete(key)
    this.#gone.delete(key)
  }

  /** The rows are at these places from now on; returns how many are nowhere. */
  moved(places: Float64Array): number {
    const lost = this.#slots.movePlaces(places).filter((slot) => !this.#isChanged(slot))
    for (const slot of lost) {
      this.#slots.remove(slot)
      this.#cached.delete(slot)
    }
    return lost.length
  }

  #slotOf(key: string, hash = this.nameHashOf(key)): number | undefined {
    return this.#slots.withName(0, hash).find((slot) => this.at(slot)?.key === key)
  }

  #held(slot: number): Row<V> | undefined {
    const row = this.#changed.get(slot) ?? this.#writing.get(slot)
    if (row !== undefined) return row
    const cached = this.#cached.get(slot)
    if (cached === undefined) return undefined
    // The one used last is the last to go.
    this.#cached.delete(slot)
    this.#cached.set(slot, cached)
    return cached
  }

  async #loadOne(slot: number, { place, length }: { readonly place: number; readonly length: number }): Promise<void> {
    const read = await this.#disk?.read(place, length)
    // Written, moved or deleted meanwhile: `at` looks again.
    if (this.#held(slot) === undefined && this.#slots.placeOf(slot)?.place === place) this.#keep(slot, read)
  }

  #keep(slot: number, read: Row<unknown> | undefined): Row<V> | undefined {
    const value = read === undefined ? undefined : this.#form.decode(read.value)
    if (read === undefined || value === undefined) return undefined
    return this.#keepRow(slot, { key: read.key, value })
  }

  #keepRow(slot: number, row: Row<V>): Row<V> {
    this.#cached.set(slot, row)
    const [first] = this.#cached.size > CACHED_ROWS ? this.#cached.keys() : []
    if (first !== undefined) this.#cached.delete(first)
    return row
  }
}

const READ_AT_ONCE = 64

export function steps(walk: { step(): number | undefined }, count: number): number[] {
  const slots: number[] = []
  while (slots.length < count) {
    const slot = walk.step()
    if (slot === undefined) break
    slots.push(slot)
  }
  return slots
}
