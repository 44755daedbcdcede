import { ENTRY_KINDS, type EntryKind } from './line.ts'
import { ID_LONG, ID_NONE, ID_SHORT } from './id-table.ts'

const TYPE_START = Buffer.from('{"type":"')
const ID_START = Buffer.from('","id":"')
const PARENT_START = Buffer.from('","parentId":')
const QUOTE = 0x22
const CLOSING_BRACE = 0x7d
const CARRIAGE_RETURN = 13
const LETTER = { c: 0x63, m: 0x6d, s: 0x73, t: 0x74 } as const

/** What a byte is worth as a hexadecimal digit; 255 for all others. */
const DIGITS = new Uint8Array(256).fill(255)
for (let digit = 0; digit < 16; digit++) DIGITS[digit.toString(16).charCodeAt(0)] = digit

/**
 * The head of a line read into numbers, without making a string or an object: this runs once per line of files of
 * hundreds of megabytes. Knows only ids of 8 and 16 digits; for anything else `read` is false and `readHead` is asked.
 */
export class HeadScanner {
  kind: EntryKind = ENTRY_KINDS.other
  idKind = ID_NONE
  idHigh = 0
  idLow = 0
  /** `ID_NONE` for a root. */
  parentKind = ID_NONE
  parentHigh = 0
  parentLow = 0
  #kind = ID_NONE
  #high = 0
  #low = 0

  read(bytes: Buffer, start: number, end: number): boolean {
    const last = bytes[end - 1] === CARRIAGE_RETURN ? end - 2 : end - 1
    // A line that does not close is torn or glued, whatever its head says.
    if (bytes[last] !== CLOSING_BRACE || !has(bytes, start, TYPE_START)) return false
    const typeStart = start + TYPE_START.length
    let typeEnd = typeStart
    const typeLimit = Math.min(end, typeStart + 40)
    while (typeEnd < typeLimit && bytes[typeEnd] !== QUOTE) typeEnd++
    if (!has(bytes, typeEnd, ID_START)) return false
    const idEnd = this.#readId(bytes, typeEnd + ID_START.length)
    if (idEnd < 0 || !has(bytes, idEnd, PARENT_START)) return false
    this.kind = kindOfBytes(bytes, typeStart, typeEnd - typeStart)
    if (this.kind === ENTRY_KINDS.session) return false
    this.idKind = this.#kind
    this.idHigh = this.#high
    this.idLow = this.#low
    return this.#readParent(bytes, idEnd + PARENT_START.length)
  }

  #readParent(bytes: Buffer, at: number): boolean {
    if (bytes[at] !== QUOTE) {
      this.parentKind = ID_NONE
      return bytes[at] === 0x6e
    }
    const end = this.#readId(bytes, at + 1)
    this.parentKind = this.#kind
    this.parentHigh = this.#high
    this.parentLow = this.#low
    return end >= 0
  }

  /** The position of the closing quote, or -1. */
  #readId(bytes: Buffer, start: number): number {
    const first = hex8(bytes, start)
    if (first < 0) return -1
    if (bytes[start + 8] === QUOTE) return this.#found(ID_SHORT, 0, first, start + 8)
    const second = hex8(bytes, start + 8)
    if (second < 0 || bytes[start + 16] !== QUOTE) return -1
    return this.#found(ID_LONG, first, second, start + 16)
  }

  #found(kind: number, high: number, low: number, end: number): number {
    this.#kind = kind
    this.#high = high
    this.#low = low
    return end
  }
}

function has(bytes: Buffer, at: number, expected: Buffer): boolean {
  for (let i = 0; i < expected.length; i++) if (bytes[at + i] !== expected[i]) return false
  return true
}

function hex8(bytes: Buffer, start: number): number {
  let value = 0
  for (let at = start; at < start + 8; at++) {
    const digit = DIGITS[bytes[at] ?? 0] ?? 255
    if (digit === 255) return -1
    value = value * 16 + digit
  }
  return value
}

/** By first letter and length, which tell the types apart; the parse of a body decides in the end. */
function kindOfBytes(bytes: Buffer, start: number, length: number): EntryKind {
  const letter = bytes[start]
  if (letter === LETTER.m && length === 7) return ENTRY_KINDS.message
  if (letter === LETTER.m && length === 12) return ENTRY_KINDS.model
  if (letter === LETTER.c && length === 10) return ENTRY_KINDS.compaction
  if (letter === LETTER.t && length === 21) return ENTRY_KINDS.level
  if (letter === LETTER.s && length === 7) return ENTRY_KINDS.session
  return ENTRY_KINDS.other
}
