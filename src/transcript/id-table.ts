/** The kinds of id: none, 8 digits, 16 digits, anything else. */
export const ID_NONE = 0
export const ID_SHORT = 1
export const ID_LONG = 2
const ID_OTHER = 3

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

  /** `capacity` is a power of two; a good guess saves moving everything while it grows. */
  constructor(capacity: number) {
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
    return this.putKey(position, kind, high, low)
  }

  /** The latest position of an id, or -1. */
  get(id: string): number {
    const [kind, high, low] = this.#encode(id, false)
    return kind === ID_NONE ? -1 : this.getKey(kind, high, low)
  }

  idAt(position: number): string {
    const low = this.#low[position] ?? 0
    const kind = this.#kinds[position]
    if (kind === ID_OTHER) return this.#otherNames[low] ?? ''
    return idText(kind ?? ID_NONE, this.#high[position] ?? 0, low)
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

  /** `put` for an id already read as numbers. */
  putKey(position: number, kind: number, high: number, low: number): number {
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

  /** `get` for an id already read as numbers. */
  getKey(kind: number, high: number, low: number): number {
    return (this.#slots[this.#slotOf(kind, high, low)] ?? 0) - 1
  }

  /** The slot that holds the key, or the free one where it would go. */
  #slotOf(kind: number, high: number, low: number): number {
    const mask = this.#slots.length - 1
    let slot = mix(low ^ Math.imul(high, 0x9e3779b1)) & mask
    for (;;) {
      const at = (this.#slots[slot] ?? 0) - 1
      if (at < 0) return slot
      if (this.#low[at] === low && this.#high[at] === high && this.#kinds[at] === kind) return slot
      slot = (slot + 1) & mask
    }
  }

  #encode(id: string, isNew: boolean): readonly [kind: number, high: number, low: number] {
    const high = id.length === 16 ? parseHex8(id, 0) : 0
    const low = id.length === 8 ? parseHex8(id, 0) : id.length === 16 ? parseHex8(id, 8) : -1
    if (low >= 0 && high >= 0) return [id.length === 8 ? ID_SHORT : ID_LONG, high, low]
    const known = this.#others.get(id)
    if (known !== undefined) return [ID_OTHER, 0, known]
    if (!isNew) return [ID_NONE, 0, 0]
    const number = this.#otherNames.push(id) - 1
    this.#others.set(id, number)
    return [ID_OTHER, 0, number]
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

/** The finish of MurmurHash3: ids that count upwards spread as well as random ones. */
function mix(value: number): number {
  let hash = value
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return hash ^ (hash >>> 16)
}

/** Eight lower-case hexadecimal digits as a number, or -1. */
function parseHex8(text: string, from: number): number {
  let value = 0
  for (let at = from; at < from + 8; at++) {
    const code = text.charCodeAt(at)
    const digit = code >= 48 && code <= 57 ? code - 48 : code >= 97 && code <= 102 ? code - 87 : -1
    if (digit < 0) return -1
    value = value * 16 + digit
  }
  return value
}

/** An id of 8 or 16 digits from its numbers. */
export function idText(kind: number, high: number, low: number): string {
  return kind === ID_LONG ? hex8(high) + hex8(low) : hex8(low)
}

function hex8(value: number): string {
  return value.toString(16).padStart(8, '0')
}

function copyInto<T extends Uint8Array | Uint32Array>(target: T, source: T): T {
  target.set(source)
  return target
}
