/** Decoded and parsed in one go: about a millisecond. */
export const PIECE_BYTES = 64 * 1024

/** Of structure, before this code is warm. */
const FIRST_SLICE_BYTES = 8 * 1024

/** Nothing real is nested this deep; without a bound one piece could be nothing but brackets. */
const MAX_DEPTH = 10_000

const BYTE = {
  quote: 0x22,
  comma: 0x2c,
  colon: 0x3a,
  openArray: 0x5b,
  backslash: 0x5c,
  closeArray: 0x5d,
  letterU: 0x75,
  openObject: 0x7b,
  closeObject: 0x7d,
} as const

/** An array or object that is not closed yet. Built only when it turns out to be too long for one piece. */
interface Open {
  readonly isArray: boolean
  readonly start: number
  target: unknown[] | Record<string, unknown> | undefined
  /** Where the text begins that is not in `target` yet. */
  pending: number
  isKeyNext: boolean
  /** Where the last key stands, quotes included. */
  keyStart: number
  keyEnd: number
}

/**
 * What `JSON.parse` makes of these bytes, with `pause` awaited after every piece, so that many megabytes do not stop
 * everybody else. Undefined where `JSON.parse` would throw.
 */
export async function parseJsonInSlices(
  bytes: Buffer,
  pause: () => Promise<unknown>,
  pieceBytes = PIECE_BYTES,
): Promise<unknown> {
  try {
    return await new SlicedJsonParser(bytes, pause, pieceBytes).parse()
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

class SlicedJsonParser {
  readonly #bytes: Buffer
  readonly #quotes: Places
  readonly #backslashes: Places
  readonly #pause: () => Promise<unknown>
  readonly #pieceBytes: number
  /** Of the piece under way: small at first, when a byte takes longest. */
  #sliceBytes: number
  readonly #open: Open[] = []
  /** How many of them, from the outside, have a `target`. */
  #begun = 0
  #at = 0
  /** Everything before this is built. */
  #built = 0
  #root: unknown

  constructor(bytes: Buffer, pause: () => Promise<unknown>, pieceBytes: number) {
    this.#bytes = bytes
    this.#quotes = new Places(bytes, BYTE.quote)
    this.#backslashes = new Places(bytes, BYTE.backslash)
    this.#pause = pause
    this.#pieceBytes = pieceBytes
    this.#sliceBytes = Math.min(pieceBytes, FIRST_SLICE_BYTES)
  }

  async parse(): Promise<unknown> {
    const bytes = this.#bytes
    const start = bytes.findIndex((byte) => !isSpace(byte))
    const isContainer = bytes[start] === BYTE.openObject || bytes[start] === BYTE.openArray
    if (!isContainer || bytes.length <= this.#pieceBytes) return JSON.parse(bytes.toString('utf8')) as unknown
    for (this.#at = start; this.#at < bytes.length;) {
      if (this.#takePiece() === 'long-string') await this.#takeLongString()
      else await this.#pause()
      this.#sliceBytes = Math.min(this.#pieceBytes, this.#sliceBytes * 1.5)
    }
    if (this.#open.length > 0) throw new SyntaxError('the text ends too early')
    return this.#root
  }

  /**
   * Up to the next pause. As a loop inside the async function, the first pieces of every long line took 13 to 50 ms;
   * this and small first pieces brought that down together, either alone hardly did.
   */
  #takePiece(): 'built' | 'long-string' {
    const bytes = this.#bytes
    while (this.#at < bytes.length) {
      const byte = bytes[this.#at] ?? 0
      if (byte === BYTE.quote) {
        if (!this.#takeString()) return 'long-string'
      } else if (byte === BYTE.comma) {
        if (this.#takeComma()) return 'built'
      } else this.#takeOther(byte)
    }
    return 'built'
  }

  #takeOther(byte: number): void {
    const at = this.#at++
    const inner = this.#open.at(-1)
    if (byte === BYTE.openArray || byte === BYTE.openObject) {
      if (inner === undefined && this.#root !== undefined) throw new SyntaxError('a second value')
      if (this.#open.length >= MAX_DEPTH) throw new SyntaxError('nested too deep')
      this.#open.push(newOpen(byte === BYTE.openArray, at))
    } else if (byte === BYTE.closeArray || byte === BYTE.closeObject) this.#close(byte === BYTE.closeArray, at)
    else if (byte === BYTE.colon && inner !== undefined) inner.isKeyNext = false
    else if (inner === undefined && !isSpace(byte)) throw new SyntaxError('text behind the value')
  }

  /** True when a piece is built. */
  #takeComma(): boolean {
    const comma = this.#at++
    const inner = this.#open.at(-1)
    if (inner === undefined) throw new SyntaxError('a comma behind the value')
    inner.isKeyNext = !inner.isArray
    if (comma - this.#built < this.#sliceBytes) return false
    this.#buildOuter()
    this.#buildChildren(inner, comma)
    this.#built = comma
    return true
  }

  /** False when it is too long for one piece. */
  #takeString(): boolean {
    const start = this.#at
    const inner = this.#open.at(-1)
    if (inner === undefined) throw new SyntaxError('a string behind the value')
    // A key longer than a piece is not one of ours: it is taken as it comes.
    const limit = inner.isKeyNext ? this.#bytes.length : start + this.#pieceBytes
    const end = this.#stringEnd(start + 1, limit)
    if (!end.isClosed && !inner.isKeyNext) return false
    this.#at = end.at + 1
    if (inner.isKeyNext) [inner.keyStart, inner.keyEnd] = [start, this.#at]
    return true
  }

  async #takeLongString(): Promise<void> {
    const inner = this.#open.at(-1)
    if (inner === undefined) return
    this.#buildOuter()
    const set = this.#buildPlace(inner, this.#at)
    set(await this.#longString(this.#at + 1))
    inner.pending = this.#at
    this.#built = this.#at
  }

  /** Piece by piece; pieces end between two characters. */
  async #longString(from: number): Promise<string> {
    let text = ''
    for (let start = from; ;) {
      const end = this.#stringEnd(start, start + this.#pieceBytes)
      text += JSON.parse(`"${this.#bytes.toString('utf8', start, end.at)}"`) as string
      if (!end.isClosed && end.at >= this.#bytes.length) throw new SyntaxError('a string without an end')
      await this.#pause()
      start = end.at
      if (!end.isClosed) continue
      this.#at = end.at + 1
      return text
    }
  }

  /** The closing quote, or the first place behind `limit` where a string can be cut. */
  #stringEnd(from: number, limit: number): { readonly at: number; readonly isClosed: boolean } {
    const bytes = this.#bytes
    for (let at = from; ;) {
      const quote = this.#quotes.from(at)
      const backslash = this.#backslashes.from(at)
      if (backslash < quote && backslash < limit) at = backslash + (bytes[backslash + 1] === BYTE.letterU ? 6 : 2)
      else if (quote <= limit && quote < bytes.length) return { at: quote, isClosed: true }
      else {
        let cut = Math.max(at, limit)
        while (cut < bytes.length && ((bytes[cut] ?? 0) & 0xc0) === 0x80) cut++
        return { at: Math.min(cut, bytes.length), isClosed: false }
      }
    }
  }

  #close(isArray: boolean, at: number): void {
    const inner = this.#open.pop()
    if (inner === undefined || inner.isArray !== isArray) throw new SyntaxError('a bracket that closes nothing')
    const outer = this.#open.at(-1)
    // Small enough: it is built with what stands around it.
    if (inner.target === undefined && outer !== undefined) return
    this.#begun = this.#open.length
    this.#add(inner, textOf(this.#bytes, inner.pending, at), false)
    this.#built = at + 1
    if (outer === undefined) this.#root = inner.target
    else outer.pending = at + 1
  }

  /** Builds every open value but the innermost up to its child that is open too. */
  #buildOuter(): void {
    for (let depth = Math.max(0, this.#begun - 1); depth + 1 < this.#open.length; depth++) {
      const [outer, inner] = [this.#open[depth], this.#open[depth + 1]]
      if (outer === undefined || inner === undefined) continue
      const set = this.#buildPlace(outer, inner.start)
      inner.target = inner.isArray ? [] : {}
      set(inner.target)
    }
    this.#begun = this.#open.length
  }

  /** Adds the children before a comma. */
  #buildChildren(open: Open, comma: number): void {
    this.#add(open, textOf(this.#bytes, open.pending, comma), true)
    open.pending = comma
  }

  /** Adds everything up to a child that is built on its own; returns what puts it in its place. */
  #buildPlace(open: Open, childStart: number): (child: unknown) => void {
    // Not a digit: that would join a number before it.
    this.#add(open, `${textOf(this.#bytes, open.pending, childStart)}null`, true)
    open.pending = childStart
    const { target } = open
    if (Array.isArray(target)) {
      const place = target.length - 1
      return (child) => {
        target[place] = child
      }
    }
    const key = JSON.parse(textOf(this.#bytes, open.keyStart, open.keyEnd)) as string
    return (child) => setField(target, key, child)
  }

  /** What follows earlier children begins with a comma; a comma has a child on either side. */
  #add(open: Open, text: string, isFollowed: boolean): void {
    const isFirst = open.target === undefined || open.pending === open.start + 1
    const rest = withoutSpace(text)
    open.target ??= open.isArray ? [] : {}
    if (rest === '' && (!isFirst || !isFollowed)) return
    if (!isFirst && !rest.startsWith(',')) throw new SyntaxError('a comma is missing')
    const children = isFirst ? rest : withoutSpace(rest.slice(1))
    if (children === '') throw new SyntaxError('a comma too many')
    if (Array.isArray(open.target))
      for (const child of JSON.parse(`[${children}]`) as unknown[]) open.target.push(child)
    else
      for (const [key, child] of Object.entries(JSON.parse(`{${children}}`) as object))
        setField(open.target, key, child)
  }
}

/** Where a byte stands, asked for ascending positions: the system's search passes over each stretch once. */
class Places {
  readonly #bytes: Buffer
  readonly #byte: number
  #next = -1

  constructor(bytes: Buffer, byte: number) {
    this.#bytes = bytes
    this.#byte = byte
  }

  /** The first one at or behind `at`; the length when there is none. */
  from(at: number): number {
    if (this.#next >= at) return this.#next
    const found = this.#bytes.indexOf(this.#byte, at)
    this.#next = found < 0 ? this.#bytes.length : found
    return this.#next
  }
}

function newOpen(isArray: boolean, start: number): Open {
  return { isArray, start, target: undefined, pending: start + 1, isKeyNext: !isArray, keyStart: 0, keyEnd: 0 }
}

/** As JSON.parse does: `__proto__` is a field like any other. */
function setField(target: object | undefined, key: string, value: unknown): void {
  if (target === undefined) return
  Object.defineProperty(target, key, { value, writable: true, enumerable: true, configurable: true })
}

function textOf(bytes: Buffer, start: number, end: number): string {
  return bytes.toString('utf8', start, end)
}

/** Not `trimStart`, which knows more kinds of space than JSON does. */
function withoutSpace(text: string): string {
  let start = 0
  while (isSpace(text.charCodeAt(start))) start++
  return text.slice(start)
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}
