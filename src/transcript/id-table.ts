const KIND_SHORT = 1
const KIND_LONG = 2
const KIND_OTHER = 3

/**
 * Ids of a file's entries as numbers: 9 bytes an entry instead of a string and a map slot each. Ids of 8 and of 16
 * hexadecimal digits, which is what pi and we write, are kept as they are; any other is numbered.
 */
export class IdTable {
  #kinds: Uint8Array
  #high: Uint32Array
  #low: Uint32Array
  /** Open addressing; position + 1, 0 is free. The latest position of an id wins. */
  #slots: Int32Array
  #used = 0
  #others = new Map<string, number>()
  #otherNames: string[] = []

  constructor(capacity = 1024) {
    this.#kinds = new Uint8Array(capacity)
    this.#high = new Uint32Array(capacity)
    this.#low = new Uint32Array(capacity)
    this.#slots = new Int32Array(capacity * 2)
  }

  get heldBytes(): number {
    return this.#kinds.length * 9 + this.#slots.length * 4 + this.#otherNames.length * 80
  }

  /** Stores the id at `position` (ascending) and returns the latest earlier position of the same id, or -1. */
  put(position: number, id: string): number {
    const [kind, high, low] = this.#encode(id, true)
    return this.#putKey(position, kind, high, low)
  }

  /** The latest position of an id, or -1. */
  get(id: string): number {
    const [kind, high, low] = this.#encode(id, false)
    return kind === 0 ? -1 : this.#lookup(kind, high, low)
  }

  idAt(position: number): string {
    const low = this.#low[position] ?? 0
    const kind = this.#kinds[position]
    if (kind === KIND_SHORT) return hex8(low)
    if (kind === KIND_LONG) return hex8(this.#high[position] ?? 0) + hex8(low)
    return this.#otherNames[low] ?? ''
  }

  /** Gives a position another id: for the second of two entries with one id. */
  rename(position: number, id: string): void {
    if ((this.#used + 1) * 2 > this.#slots.length) this.#growSlots()
    const [kind, high, low] = this.#encode(id, true)
    this.#kinds[position] = kind
    this.#high[position] = high
    this.#low[position] = low
    this.#slots[this.#slotOf(kind, high, low)] = position + 1
    this.#used++
  }

  /** Makes an id mean this position again, after the later one was found to be no entry of its own. */
  pointTo(position: number): void {
    const slot = this.#slotOf(this.#kinds[position] ?? 0, this.#high[position] ?? 0, this.#low[position] ?? 0)
    this.#slots[slot] = position + 1
  }

  #putKey(position: number, kind: number, high: number, low: number): number {
    if (position >= this.#kinds.length) this.#growColumns(position + 1)
    if ((this.#used + 1) * 2 > this.#slots.length) this.#growSlots()
    this.#kinds[position] = kind
    this.#high[position] = high
    this.#low[position] = low
    const slot = this.#slotOf(kind, high, low)
    const earlier = (this.#slots[slot] ?? 0) - 1
    if (earlier < 0) this.#used++
    this.#slots[slot] = position + 1
    return earlier
  }

  #lookup(kind: number, high: number, low: number): number {
    return (this.#slots[this.#slotOf(kind, high, low)] ?? 0) - 1
  }

  /** The slot that holds the key, or the free one where it would go. */
  #slotOf(kind: number, high: number, low: number): number {
    const mask = this.#slots.length - 1
    let slot = (Math.imul(low ^ Math.imul(high, 0x85ebca6b), 0x9e3779b1) >>> 7) & mask
    for (;;) {
      const at = (this.#slots[slot] ?? 0) - 1
      if (at < 0) return slot
      if (this.#low[at] === low && this.#high[at] === high && this.#kinds[at] === kind) return slot
      slot = (slot + 1) & mask
    }
  }

  #encode(id: string, isNew: boolean): readonly [kind: number, high: number, low: number] {
    if (id.length === 8 && SHORT_ID.test(id)) return [KIND_SHORT, 0, Number.parseInt(id, 16)]
    if (id.length === 16 && LONG_ID.test(id)) {
      return [KIND_LONG, Number.parseInt(id.slice(0, 8), 16), Number.parseInt(id.slice(8), 16)]
    }
    const known = this.#others.get(id)
    if (known !== undefined) return [KIND_OTHER, 0, known]
    if (!isNew) return [0, 0, 0]
    const number = this.#otherNames.push(id) - 1
    this.#others.set(id, number)
    return [KIND_OTHER, 0, number]
  }

  #growColumns(needed: number): void {
    const capacity = Math.max(needed, this.#kinds.length * 2)
    this.#kinds = copyInto(new Uint8Array(capacity), this.#kinds)
    this.#high = copyInto(new Uint32Array(capacity), this.#high)
    this.#low = copyInto(new Uint32Array(capacity), this.#low)
  }

  #growSlots(): void {
    const old = this.#slots
    this.#slots = new Int32Array(old.length * 2)
    for (const stored of old) {
      if (stored === 0) continue
      const at = stored - 1
      this.#slots[this.#slotOf(this.#kinds[at] ?? 0, this.#high[at] ?? 0, this.#low[at] ?? 0)] = stored
    }
  }
}

const SHORT_ID = /^[0-9a-f]{8}$/
const LONG_ID = /^[0-9a-f]{16}$/

function hex8(value: number): string {
  return value.toString(16).padStart(8, '0')
}

function copyInto<T extends Uint8Array | Uint32Array>(target: T, source: T): T {
  target.set(source)
  return target
}
