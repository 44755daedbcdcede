/** What the index of a table knows of a row without reading it. */
export interface Marks {
  /** Hashes by which the row is found; 0 for none. The first one is of its key. */
  readonly names: readonly number[]
  /** Hashes by which rows are told apart without a look at them. */
  readonly tags: readonly number[]
  /** Rows are kept in the order of this. */
  readonly at: number
}

/** Rows as they are saved: the same columns that a table holds, of some rows in their order. */
export interface SavedSlots {
  readonly at: Float64Array
  readonly place: Float64Array
  readonly length: Uint32Array
  readonly names: readonly Uint32Array[]
  readonly tags: readonly Uint32Array[]
}

/** How many names and tags each row has. */
export interface Shape {
  readonly names: number
  readonly tags: number
}

const NONE = -1
const FIRST_CAPACITY = 64
/** Little enough that a million rows waste little; the copy is a matter of milliseconds. */
const GROWTH = 1.2
/** Rows that share a place of the table of heads, at most on average. */
const ROWS_PER_HEAD = 2

/** Slots with the same hash, the one added last first. */
class Chains {
  #heads = new Int32Array(FIRST_CAPACITY).fill(NONE)
  #hash = new Uint32Array(FIRST_CAPACITY)
  #next = new Int32Array(FIRST_CAPACITY).fill(NONE)
  readonly #rowsPerHead: number

  /** Tables grow one after the other, not all at once: each growth is a pause of its own. */
  constructor(place: number) {
    this.#rowsPerHead = ROWS_PER_HEAD + place / 4
  }

  get bytes(): number {
    return 4 * (this.#heads.length + 2 * this.#hash.length)
  }

  hashOf(slot: number): number {
    return this.#hash[slot] ?? 0
  }

  *with(hash: number): Iterable<number> {
    for (let slot = this.#heads[this.#placeOf(hash)] ?? NONE; slot !== NONE; slot = this.#next[slot] ?? NONE)
      if (this.#hash[slot] === hash) yield slot
  }

  /** Also a slot that keeps its hash goes to the front: those in use are found, and leave, soonest. */
  set(slot: number, hash: number): void {
    this.remove(slot)
    this.#hash[slot] = hash
    if (hash !== 0) this.#link(slot, this.#placeOf(hash))
  }

  remove(slot: number): void {
    const hash = this.hashOf(slot)
    if (hash === 0) return
    const place = this.#placeOf(hash)
    const next = this.#next[slot] ?? NONE
    let before = this.#heads[place] ?? NONE
    if (before === slot) this.#heads[place] = next
    else {
      while (before !== NONE && this.#next[before] !== slot) before = this.#next[before] ?? NONE
      if (before !== NONE) this.#next[before] = next
    }
    this.#hash[slot] = 0
  }

  load(first: number, hashes: Uint32Array): void {
    this.#hash.set(hashes, first)
    const heads = this.#heads
    const next = this.#next
    const mask = heads.length - 1
    for (let at = 0; at < hashes.length; at++) {
      const hash = hashes[at] ?? 0
      if (hash === 0) continue
      next[first + at] = heads[hash & mask] ?? NONE
      heads[hash & mask] = first + at
    }
  }

  grow(capacity: number): void {
    this.#hash = grown(this.#hash, capacity)
    this.#next = grown(this.#next, capacity)
  }

  /** Called with the number of slots in use, oldest first through `slots`. */
  makeRoom(rows: number, slots: () => Iterable<number>): void {
    if (rows <= this.#rowsPerHead * this.#heads.length) return
    let length = this.#heads.length
    while (rows > (this.#rowsPerHead * length) / 2) length *= 2
    this.#heads = new Int32Array(length).fill(NONE)
    for (const slot of slots()) if (this.hashOf(slot) !== 0) this.#link(slot, this.#placeOf(this.hashOf(slot)))
  }

  #placeOf(hash: number): number {
    return hash & (this.#heads.length - 1)
  }

  #link(slot: number, place: number): void {
    this.#next[slot] = this.#heads[place] ?? NONE
    this.#heads[place] = slot
  }
}

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

  tagOf(slot: number, tag: number): number {
    return this.#tags[tag]?.[slot] ?? 0
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
    const next = from === undefined ? start : (this.#neighbours(direction)[from] ?? NONE)
    const walk = new Walk(
      next,
      (slot) => this.#neighbours(direction)[slot] ?? NONE,
      () => this.#walks.delete(walk),
    )
    this.#walks.add(walk)
    return walk
  }

  #neighbours(direction: 'newer' | 'older'): Int32Array {
    return direction === 'newer' ? this.#newer : this.#older
  }

  #take(): number {
    this.#count++
    const free = this.#free.pop()
    if (free !== undefined) return free
    const slot = this.#used++
    if (slot >= this.#at.length) this.reserve(Math.ceil(slot * GROWTH) + FIRST_CAPACITY)
    this.#place[slot] = NONE
    for (const chain of this.#chains) chain.makeRoom(this.#count, () => this.#inOrder())
    return slot
  }

  /** Rows that were saved in their order, before any other is put. */
  load({ at, place, length, names, tags }: SavedSlots): void {
    const first = this.#used
    const end = first + at.length
    this.reserve(end)
    this.#used = end
    this.#count += at.length
    this.#at.set(at, first)
    this.#place.set(place, first)
    this.#length.set(length, first)
    tags.forEach((column, tag) => this.#tags[tag]?.set(column, first))
    names.forEach((column, name) => this.#chains[name]?.load(first, column))
    for (let slot = first; slot < end; slot++) this.#placedBytes += this.#length[slot] ?? 0
    this.#linkLoaded(first, end)
  }

  /** Of rows that are on disk. */
  saved(slots: readonly number[]): SavedSlots {
    const column = (of: (slot: number) => number): Uint32Array => Uint32Array.from(slots, of)
    return {
      at: Float64Array.from(slots, (slot) => this.timeOf(slot)),
      place: Float64Array.from(slots, (slot) => this.#place[slot] ?? NONE),
      length: column((slot) => this.#length[slot] ?? 0),
      names: this.#chains.map((chain) => column((slot) => chain.hashOf(slot))),
      tags: this.#tags.map((tags) => column((slot) => tags[slot] ?? 0)),
    }
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

  /** The same, and for finding so many at once. */
  prepare(rows: number): void {
    this.reserve(rows)
    for (const chain of this.#chains) chain.makeRoom(rows, () => this.#inOrder())
  }

  /** Rows are saved in their order, but for a few that moved meanwhile. */
  #linkLoaded(first: number, end: number): void {
    const at = this.#at
    for (let slot = first; slot < end; slot++) {
      const newest = this.#newest
      const time = at[slot] ?? 0
      if (newest !== NONE && time < (at[newest] ?? 0)) this.#linkByTime(slot, time)
      else {
        this.#older[slot] = newest
        this.#newer[slot] = NONE
        if (newest === NONE) this.#oldest = slot
        else this.#newer[newest] = slot
        this.#newest = slot
      }
    }
    this.#newestTime = Math.max(this.#newestTime, this.#newest === NONE ? 0 : this.timeOf(this.#newest))
  }

  *#inOrder(): Iterable<number> {
    for (let slot = this.#oldest; slot !== NONE; slot = this.#newer[slot] ?? NONE) yield slot
  }

  #linkByTime(slot: number, at: number): void {
    if (at >= this.#newestTime) this.#newestTime = at
    const newest = this.#newest
    if (newest === NONE || at >= this.timeOf(newest)) return this.#linkBehind(slot, newest)
    let older = this.#late !== NONE && this.timeOf(this.#late) <= at ? this.#late : newest
    while (older !== NONE && this.timeOf(older) > at) older = this.#older[older] ?? NONE
    for (;;) {
      const next = older === NONE ? this.#oldest : (this.#newer[older] ?? NONE)
      if (next === NONE || this.timeOf(next) > at) break
      older = next
    }
    this.#linkBehind(slot, older)
    this.#late = slot
  }

  #linkBehind(slot: number, older: number): void {
    const newer = older === NONE ? this.#oldest : (this.#newer[older] ?? NONE)
    this.#older[slot] = older
    this.#newer[slot] = newer
    if (older === NONE) this.#oldest = slot
    else this.#newer[older] = slot
    if (newer === NONE) this.#newest = slot
    else this.#older[newer] = slot
  }

  #unlink(slot: number): void {
    for (const walk of this.#walks) walk.leave(slot)
    const older = this.#older[slot] ?? NONE
    const newer = this.#newer[slot] ?? NONE
    if (older === NONE) this.#oldest = newer
    else this.#newer[older] = newer
    if (newer === NONE) this.#newest = older
    else this.#older[newer] = older
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

function grown<T extends Float64Array<ArrayBuffer> | Uint32Array<ArrayBuffer> | Int32Array<ArrayBuffer>>(
  column: T,
  capacity: number,
): T {
  const larger = new (column.constructor as new (length: number) => T)(capacity)
  larger.set(column)
  return larger
}
