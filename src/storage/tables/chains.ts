import { FIRST_CAPACITY, grown } from './column.ts'

/** Rows that share a place of the table of heads, at most on average. */
const ROWS_PER_HEAD = 2
/** A loop that is called often is compiled; one that runs long at its first call is not until it is nearly over. */
const CHECKED_AT_ONCE = 16_384

/** Slots with the same hash, the one added last first. A link is the number of a slot and one; 0 for none. */
export class Chains {
  #heads = new Uint32Array(FIRST_CAPACITY)
  #hash = new Uint32Array(FIRST_CAPACITY)
  #next = new Uint32Array(FIRST_CAPACITY)
  #linked = 0
  readonly #rowsPerHead: number

  /** Tables grow one after the other, not all at once: each growth is a pause of its own. */
  constructor(place: number) {
    this.#rowsPerHead = ROWS_PER_HEAD + place / 4
  }

  get bytes(): number {
    return 4 * (this.#heads.length + 2 * this.#hash.length)
  }

  get hashes(): Uint32Array<ArrayBuffer> {
    return this.#hash
  }

  get links(): Uint32Array<ArrayBuffer> {
    return this.#next
  }

  get heads(): Uint32Array<ArrayBuffer> {
    return this.#heads
  }

  hashOf(slot: number): number {
    return this.#hash[slot] ?? 0
  }

  *with(hash: number): Iterable<number> {
    for (let link = this.#heads[this.#placeOf(hash)] ?? 0; link !== 0; link = this.#next[link - 1] ?? 0)
      if (this.#hash[link - 1] === hash) yield link - 1
  }

  /** Also a slot that keeps its hash goes to the front: those in use are found, and leave, soonest. */
  set(slot: number, hash: number): void {
    this.remove(slot)
    this.#hash[slot] = hash
    if (hash === 0) return
    this.#linked++
    this.#link(slot, this.#placeOf(hash))
  }

  remove(slot: number): void {
    const hash = this.hashOf(slot)
    if (hash === 0) return
    const place = this.#placeOf(hash)
    const next = this.#next[slot] ?? 0
    let before = this.#heads[place] ?? 0
    if (before === slot + 1) this.#heads[place] = next
    else {
      while (before !== 0 && this.#next[before - 1] !== slot + 1) before = this.#next[before - 1] ?? 0
      if (before !== 0) this.#next[before - 1] = next
    }
    this.#hash[slot] = 0
    this.#linked--
  }

  /**
   * Takes the heads of the rows below `end`, whose hashes and links are there already. False when one of them leads
   * elsewhere: links lead to rows before only, so that none leads back to where it came from.
   */
  load(heads: Uint32Array<ArrayBuffer>, end: number): boolean {
    if (heads.length === 0 || (heads.length & (heads.length - 1)) !== 0) return false
    let highest = 0
    for (let place = 0; place < heads.length; place += CHECKED_AT_ONCE)
      highest = Math.max(highest, highestLink(heads, place, Math.min(heads.length, place + CHECKED_AT_ONCE)))
    if (highest > end) return false
    // Without a head no row has the name, and memory that was never written need not be looked at.
    const checked = highest === 0 ? 0 : end
    let linked = 0
    for (let first = 0; first < checked; first += CHECKED_AT_ONCE) {
      const found = soundLinks(this.#hash, this.#next, first, Math.min(checked, first + CHECKED_AT_ONCE))
      if (found === undefined) return false
      linked += found
    }
    this.#heads = heads
    this.#linked = linked
    return true
  }

  /** The same of rows without heads and links. */
  relink(end: number): void {
    const hashes = this.#hash.subarray(0, end)
    for (const hash of hashes) if (hash !== 0) this.#linked++
    this.#heads = new Uint32Array(this.#roomFor(this.#linked))
    linkRows({ hashes, links: this.#next, heads: this.#heads, first: 0 })
  }

  grow(capacity: number): void {
    this.#hash = grown(this.#hash, capacity)
    this.#next = grown(this.#next, capacity)
  }

  /** Called with the slots in use, oldest first. */
  makeRoom(slots: () => Iterable<number>): void {
    if (this.#linked <= this.#rowsPerHead * this.#heads.length) return
    this.#heads = new Uint32Array(this.#roomFor(this.#linked))
    for (const slot of slots()) if (this.hashOf(slot) !== 0) this.#link(slot, this.#placeOf(this.hashOf(slot)))
  }

  #roomFor(rows: number): number {
    let length = FIRST_CAPACITY
    while (rows > (this.#rowsPerHead * length) / 2) length *= 2
    return length
  }

  #placeOf(hash: number): number {
    return hash & (this.#heads.length - 1)
  }

  #link(slot: number, place: number): void {
    this.#next[slot] = this.#heads[place] ?? 0
    this.#heads[place] = slot + 1
  }
}

function highestLink(heads: Uint32Array, first: number, end: number): number {
  let highest = 0
  for (let place = first; place < end; place++) highest = Math.max(highest, heads[place] ?? 0)
  return highest
}

/** How many rows have a hash; undefined when a link leads to the row itself or one behind it. */
function soundLinks(hashes: Uint32Array, links: Uint32Array, first: number, end: number): number | undefined {
  let linked = 0
  for (let slot = first; slot < end; slot++) {
    if ((links[slot] ?? 0) > slot) return undefined
    if (hashes[slot] !== 0) linked++
  }
  return linked
}

interface Linking {
  readonly hashes: Uint32Array
  readonly links: Uint32Array
  readonly heads: Uint32Array
  /** The number of the first row. */
  readonly first: number
}

/** Links rows in their order: the last one comes first. */
export function linkRows({ hashes, links, heads, first }: Linking): void {
  const mask = heads.length - 1
  for (let at = 0; at < hashes.length; at++) {
    const hash = hashes[at] ?? 0
    if (hash === 0) continue
    links[at] = heads[hash & mask] ?? 0
    heads[hash & mask] = first + at + 1
  }
}
