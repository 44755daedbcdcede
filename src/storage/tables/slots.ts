import { Chains } from './chains.ts'
import { FIRST_CAPACITY, grown, type Column } from './column.ts'

/** What the index of a table knows of a row without reading it. */
export interface Marks {
  /** Hashes by which the row is found; 0 for none. The first one is of its key. */
  readonly names: readonly number[]
  /** Hashes by which rows are told apart without a look at them. */
  readonly tags: readonly number[]
  /** Rows are kept in the order of this. */
  readonly at: number
}

/** A hash that a row has to have among its tags. */
export type Tag = readonly [tag: number, hash: number]

/** How many names and tags each row has. */
export interface Shape {
  readonly names: number
  readonly tags: number
}

const NONE = -1
/** Little enough that a million rows waste little; the copy is a matter of milliseconds. */
const GROWTH = 1.2

/**
 * The index of a table in numbers alone, about a hundred bytes for a row: where it is on disk, how it is found, its time,
 * and its place in the order of times. Rows with equal times are in the order in which they were put.
 */
export class Slots {
  readonly #chains: readonly Chains[]
  readonly #tags: Uint32Array<ArrayBuffer>[]
  #at = new Float64Array(FIRST_CAPACITY)
  /** Where the row is on disk; negative: not there. */
  #place = new Float64Array(FIRST_CAPACITY)
  #length = new Uint32Array(FIRST_CAPACITY)
  /** How far the next newer slot is from the one behind in number, and the next older one from the one before. */
  #newer = new Int32Array(FIRST_CAPACITY)
  #older = new Int32Array(FIRST_CAPACITY)
  #oldest = NONE
  #newest = NONE
  #newestTime = 0
  #placedBytes = 0
  #count = 0
  /** Slots that were ever used. */
  #used = 0
  #free: number[] = []
  /** The row that came late most recently: the next one often belongs beside it. */
  #late = NONE
  /** Where a walk goes on after a pause. */
  readonly #walks = new Set<Walk>()

  readonly shape: Shape

  constructor(shape: Shape) {
    const { names, tags } = shape
    this.shape = shape
    this.#chains = Array.from({ length: names }, (_, place) => new Chains(place))
    this.#tags = Array.from({ length: tags }, () => new Uint32Array(FIRST_CAPACITY))
  }

  get count(): number {
    return this.#count
  }

  /** Every slot is below it. */
  get end(): number {
    return this.#used
  }

  /** The highest time any row ever had. */
  get newestTime(): number {
    return this.#newestTime
  }

  get bytes(): number {
    const chains = this.#chains.reduce((sum, chain) => sum + chain.bytes, 0)
    return chains + this.#at.length * (28 + 4 * this.#tags.length)
  }

  /** Slots with this name, the newest first. */
  withName(name: number, hash: number): readonly number[] {
    const found = hash === 0 ? [] : [...(this.#chains[name]?.with(hash) ?? [])]
    return found.length < 2 ? found : found.sort((a, b) => this.timeOf(b) - this.timeOf(a))
  }

  /** The slot of the row at this place of the disk, if that is its newest form. */
  atPlace(hash: number, place: number): number | undefined {
    for (const slot of this.#chains[0]?.with(hash) ?? []) if (this.#place[slot] === place) return slot
    return undefined
  }

  hasTags(slot: number, tags: readonly Tag[]): boolean {
    return tags.every(([tag, hash]) => this.#tags[tag]?.[slot] === hash)
  }

  /** Slots of rows that have all of these tags, up to so many, in no order. */
  tagged(tags: readonly Tag[], most: number): readonly number[] {
    const found: number[] = []
    const keys = this.#chains[0]?.hashes ?? new Uint32Array()
    const [first, ...others] = tags
    const column = first === undefined ? undefined : this.#tags[first[0]]
    for (let slot = 0; slot < this.#used && found.length < most; slot++) {
      if (column !== undefined && column[slot] !== first?.[1]) continue
      // One that was removed has no key.
      if (keys[slot] !== 0 && this.hasTags(slot, others)) found.push(slot)
    }
    return found
  }

  timeOf(slot: number): number {
    return this.#at[slot] ?? 0
  }

  placeOf(slot: number): { readonly place: number; readonly length: number } | undefined {
    const place = this.#place[slot] ?? NONE
    return place < 0 || slot >= this.#used ? undefined : { place, length: this.#length[slot] ?? 0 }
  }

  setPlace(slot: number, place: number, length: number): void {
    this.#placedBytes += length - (this.placeOf(slot)?.length ?? 0)
    this.#place[slot] = place
    this.#length[slot] = length
  }

  /** Where each row is from now on; returns those that have no place any more. */
  movePlaces(places: Float64Array): readonly number[] {
    const lost: number[] = []
    for (let slot = 0; slot < places.length; slot++) {
      if ((this.#place[slot] ?? NONE) < 0) continue
      const place = places[slot] ?? 0
      if (place === 0) {
        this.#placedBytes -= this.#length[slot] ?? 0
        lost.push(slot)
      }
      this.#place[slot] = place === 0 ? NONE : place
    }
    return lost
  }

  /** Of all rows that are on disk, there. */
  get placedBytes(): number {
    return this.#placedBytes
  }

  /** A new row, or the new form of the one in `known`. */
  put(known: number | undefined, { names, tags, at }: Marks): number {
    const slot = known ?? this.#take()
    if (known !== undefined) this.#unlink(slot)
    this.#at[slot] = at
    this.#tags.forEach((column, tag) => (column[slot] = tags[tag] ?? 0))
    this.#chains.forEach((chain, name) => chain.set(slot, names[name] ?? 0))
    this.#linkByTime(slot, at)
    for (const chain of this.#chains) chain.makeRoom(() => this.#inOrder())
    return slot
  }

  remove(slot: number): void {
    this.#unlink(slot)
    for (const chain of this.#chains) chain.remove(slot)
    this.#placedBytes -= this.placeOf(slot)?.length ?? 0
    this.#place[slot] = NONE
    this.#count--
    this.#free.push(slot)
  }

  /** From the oldest, or from the one that comes after `from`; the order may change between two steps. */
  walk(direction: 'newer' | 'older', from?: number): Walk {
    const start = direction === 'newer' ? this.#oldest : this.#newest
    const after = (slot: number): number => (direction === 'newer' ? this.#newerThan(slot) : this.#olderThan(slot))
    const walk = new Walk(from === undefined ? start : after(from), after, () => this.#walks.delete(walk))
    this.#walks.add(walk)
    return walk
  }

  #newerThan(slot: number): number {
    return slot + 1 + (this.#newer[slot] ?? 0)
  }

  #olderThan(slot: number): number {
    return slot - 1 + (this.#older[slot] ?? 0)
  }

  /** From here on one stands behind the other in the order of times; `NONE` for the end. */
  #join(older: number, newer: number): void {
    if (older === NONE) this.#oldest = newer
    else this.#newer[older] = newer - older - 1
    if (newer === NONE) this.#newest = older
    else this.#older[newer] = older - newer + 1
  }

  #take(): number {
    this.#count++
    const free = this.#free.pop()
    if (free !== undefined) return free
    const slot = this.#used++
    if (slot >= this.#at.length) this.reserve(Math.ceil(slot * GROWTH) + FIRST_CAPACITY)
    this.#place[slot] = NONE
    return slot
  }

  /** All that is saved of rows, as it stands in memory; the links of the names come last. */
  get columns(): readonly Column[] {
    const chains = this.#chains
    return [
      this.#place,
      this.#at,
      this.#length,
      ...chains.map(({ hashes }) => hashes),
      ...this.#tags,
      ...chains.map(({ links }) => links),
    ]
  }

  /**
   * So many more rows stand in the columns, in their order; their names follow, before any other row is put. False when
   * one of them is not before the end of what is known of the disk.
   */
  load(rows: number, endOfDisk: number): boolean {
    const first = this.#used
    const end = first + rows
    const places = this.#place
    const lengths = this.#length
    let bytes = 0
    for (let slot = first; slot < end; slot++) {
      const place = places[slot] ?? NONE
      const length = lengths[slot] ?? 0
      if (!(place >= 0 && place + length <= endOfDisk)) return false
      bytes += length
    }
    this.#placedBytes += bytes
    this.#used = end
    this.#count += rows
    this.#linkLoaded(first, end)
    return true
  }

  /** By these heads the rows are found that were loaded with their links; false when they do not fit the rows. */
  loadHeads(name: number, heads: Uint32Array<ArrayBuffer>): boolean {
    return this.#chains[name]?.load(heads, this.#used) ?? false
  }

  /** The rows were loaded without links. */
  relink(): void {
    for (const chain of this.#chains) chain.relink(this.#used)
  }

  /** How many heads each name has. */
  get heads(): readonly number[] {
    return this.#chains.map(({ heads }) => heads.length)
  }

  /** Makes room for so many slots. */
  reserve(capacity: number): void {
    if (capacity <= this.#at.length) return
    this.#at = grown(this.#at, capacity)
    this.#place = grown(this.#place, capacity)
    this.#length = grown(this.#length, capacity)
    this.#newer = grown(this.#newer, capacity)
    this.#older = grown(this.#older, capacity)
    this.#tags.forEach((column, tag) => (this.#tags[tag] = grown(column, capacity)))
    for (const chain of this.#chains) chain.grow(capacity)
  }

  /** Rows are saved in their order, but for a few that moved meanwhile: for most of them nothing is to be written. */
  #linkLoaded(first: number, end: number): void {
    const at = this.#at
    let newest = this.#newest
    for (let slot = first; slot < end; slot++) {
      const time = at[slot] ?? 0
      if (newest !== NONE && time < (at[newest] ?? 0)) this.#linkByTime(slot, time)
      else {
        if (slot === first || slot !== newest + 1) this.#join(newest, slot)
        this.#newest = newest = slot
      }
    }
    this.#join(this.#newest, NONE)
    this.#newestTime = Math.max(this.#newestTime, this.#newest === NONE ? 0 : this.timeOf(this.#newest))
  }

  *#inOrder(): Iterable<number> {
    for (let slot = this.#oldest; slot !== NONE; slot = this.#newerThan(slot)) yield slot
  }

  #linkByTime(slot: number, at: number): void {
    if (at >= this.#newestTime) this.#newestTime = at
    const newest = this.#newest
    if (newest === NONE || at >= this.timeOf(newest)) return this.#linkBehind(slot, newest)
    let older = this.#late !== NONE && this.timeOf(this.#late) <= at ? this.#late : newest
    while (older !== NONE && this.timeOf(older) > at) older = this.#olderThan(older)
    for (;;) {
      const next = older === NONE ? this.#oldest : this.#newerThan(older)
      if (next === NONE || this.timeOf(next) > at) break
      older = next
    }
    this.#linkBehind(slot, older)
    this.#late = slot
  }

  #linkBehind(slot: number, older: number): void {
    const newer = older === NONE ? this.#oldest : this.#newerThan(older)
    this.#join(older, slot)
    this.#join(slot, newer)
  }

  #unlink(slot: number): void {
    for (const walk of this.#walks) walk.leave(slot)
    this.#join(this.#olderThan(slot), this.#newerThan(slot))
    if (this.#late === slot) this.#late = NONE
  }
}

/** A set of slots. */
export class SlotSet {
  #bits = new Uint8Array(1024)

  has(slot: number): boolean {
    return ((this.#bits[slot >> 3] ?? 0) & (1 << (slot & 7))) !== 0
  }

  add(slot: number): void {
    const at = slot >> 3
    if (at >= this.#bits.length) {
      const larger = new Uint8Array(2 * at)
      larger.set(this.#bits)
      this.#bits = larger
    }
    this.#bits[at] = (this.#bits[at] ?? 0) | (1 << (slot & 7))
  }
}

/** Goes along the order of times and may pause: a row that moves away meanwhile does not take the walk along. */
export class Walk {
  #next: number
  readonly #after: (slot: number) => number
  readonly #onEnd: () => void

  constructor(next: number, after: (slot: number) => number, onEnd: () => void) {
    this.#next = next
    this.#after = after
    this.#onEnd = onEnd
  }

  /** Undefined at the end. */
  step(): number | undefined {
    const slot = this.#next
    if (slot === NONE) return undefined
    this.#next = this.#after(slot)
    return slot
  }

  skipWhile(isSkipped: (slot: number) => boolean): void {
    while (this.#next !== NONE && isSkipped(this.#next)) this.#next = this.#after(this.#next)
  }

  leave(slot: number): void {
    if (slot === this.#next) this.#next = this.#after(slot)
  }

  end(): void {
    this.#onEnd()
  }
}
