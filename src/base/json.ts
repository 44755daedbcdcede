export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject
export interface JsonObject {
  readonly [key: string]: JsonValue | undefined
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Compares values of any type as they are: as a text, the list `["a"]` would be the word `a`. */
export function isOneOf<const T extends readonly string[]>(value: unknown, words: T): value is T[number] {
  return (words as readonly unknown[]).includes(value)
}

/** Undefined for anything that is not JSON; callers decide what broken text means to them. */
export function parseJson(text: string): unknown {
  if (!endsAsItBegins(text)) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const CLOSING: ReadonlyMap<string, string> = new Map([
  ['{', '}'],
  ['[', ']'],
  ['"', '"'],
])

/** Looking at both ends costs a hundredth of an exception, and a damaged file can hold a hundred thousand broken lines. */
function endsAsItBegins(text: string): boolean {
  const bare = text.trim()
  const begin = bare.charAt(0)
  if (begin === '}' || begin === ']' || begin === '') return false
  const closing = CLOSING.get(begin)
  return closing === undefined || (bare.length > 1 && bare.endsWith(closing))
}

/**
 * What `JSON.parse` may be given of a text that another party wrote. Its time depends on how many values it has to make and
 * on how deep they lie, hardly on the length: a megabyte of brackets takes fifty times as long as a megabyte of letters.
 */
export interface JsonBounds {
  readonly maxDepth: number
  /** Brackets, braces, commas and colons together: at least as many as there are values. */
  readonly maxMarks: number
}

/** Far above what providers, tools and phones send. A text of 100 000 marks is parsed in about 10 ms. */
export const FOREIGN_JSON: JsonBounds = { maxDepth: 200, maxMarks: 100_000 }

/** As `parseJson`, but a text beyond the bounds is not parsed at all: undefined. */
export function parseForeignJson(text: string, bounds: JsonBounds = FOREIGN_JSON): unknown {
  return jsonExcess(text, bounds) === undefined ? parseJson(text) : undefined
}

const MARK = { quote: 0x22, comma: 0x2c, colon: 0x3a, backslash: 0x5c } as const

/** Which bound a text breaks; one pass, strings are passed over by the search of the runtime. */
export function jsonExcess(text: string, bounds: JsonBounds = FOREIGN_JSON): 'depth' | 'marks' | undefined {
  let depth = 0
  let marks = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === MARK.quote) at = stringEnd(text, at)
    else if (isOpening(code)) {
      depth++
      marks++
      if (depth > bounds.maxDepth) return 'depth'
    } else if (isClosing(code)) depth--
    else if (code === MARK.comma || code === MARK.colon) marks++
    if (marks > bounds.maxMarks) return 'marks'
  }
  return undefined
}

/** The closing quote of a string; the length of the text when there is none. */
function stringEnd(text: string, open: number): number {
  for (let end = text.indexOf('"', open + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text.charCodeAt(end - 1 - backslashes) === MARK.backslash) backslashes++
    if (backslashes % 2 === 0) return end
  }
  return text.length
}

/** `[` and `{`. */
function isOpening(code: number): boolean {
  return code === 0x5b || code === 0x7b
}

/** `]` and `}`. */
function isClosing(code: number): boolean {
  return code === 0x5d || code === 0x7d
}

const LINE_END = 0x0a

/** The same for bytes that are still arriving, where another party's code parses what this lets through. */
export class JsonGauge {
  readonly #bounds: JsonBounds
  readonly #isEventStream: boolean
  #depth = 0
  #marks = 0
  #inString = false
  #isEscaped = false
  #lastByte = 0

  constructor(options: { readonly isEventStream: boolean; readonly bounds?: JsonBounds }) {
    this.#bounds = options.bounds ?? FOREIGN_JSON
    this.#isEventStream = options.isEventStream
  }

  /** False as soon as a bound is broken. */
  allows(bytes: Uint8Array): boolean {
    for (const byte of bytes) {
      this.#take(byte)
      this.#lastByte = byte
      if (this.#depth > this.#bounds.maxDepth || this.#marks > this.#bounds.maxMarks) return false
    }
    return true
  }

  #take(byte: number): void {
    // An empty line ends an event; what it held, balanced or not, is over.
    if (byte === LINE_END && this.#lastByte === LINE_END && this.#isEventStream) return this.#begin()
    if (this.#inString) return this.#takeInString(byte)
    if (byte === MARK.quote) this.#inString = true
    else if (byte === MARK.comma || byte === MARK.colon) this.#marks++
    else if (isOpening(byte)) {
      this.#depth++
      this.#marks++
    } else if (isClosing(byte)) {
      this.#depth--
      if (this.#depth <= 0) this.#begin()
    }
  }

  #takeInString(byte: number): void {
    if (this.#isEscaped) this.#isEscaped = false
    else if (byte === MARK.backslash) this.#isEscaped = true
    else if (byte === MARK.quote) this.#inString = false
  }

  #begin(): void {
    this.#depth = 0
    this.#marks = 0
    this.#inString = false
    this.#isEscaped = false
  }
}
