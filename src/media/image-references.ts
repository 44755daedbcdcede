import { loopWork } from '../base/loop-work.ts'

/** A picture named in a text: a file of this machine, never a web address. */
export interface ImageReference {
  /** As it stands in the text. */
  readonly raw: string
  /** Decoded: an absolute path, or one that begins with `./`, `../`, `~/` or a drive letter. */
  readonly path: string
}

/**
 * Everything ends with an extension, so those are looked for first, and what stands before each is looked at once. `/a/b.pngx`
 * and `/a/b.png.txt` are other files; Chinese text may follow without a space. A text without one names no picture.
 */
export const PICTURE_ENDING = /\.(?:png|jpe?g|gif|webp|bmp|tiff?|heic|heif)(?![A-Za-z0-9_/\\-]|\.[A-Za-z0-9])/i
const ENDING = /\.(?:png|jpe?g|gif|webp|bmp|tiff?|heic|heif)(?![A-Za-z0-9_/\\-]|\.[A-Za-z0-9])/gi

const LAST_ENDING = /\.(?:png|jpe?g|gif|webp|bmp|tiff?|heic|heif)$/i

/** In this order at each place: what is more specific decides how far a reference reaches. */
const MARKER = /\[(?:media attached(?: \d{1,4}\/\d{1,4})?|image):[^\S\n]{0,20}(?:source:[^\S\n]{0,20})?/iy
const WEB_ADDRESS = /(?:https?|ftp|wss?):\/\/[^\s<>"'`\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]+/iy
const FILE_URL = /file:\/\//iy
const PATH_START = /(?:~[/\\]|\.{1,2}[/\\]|\/(?!\/)|[A-Za-z]:[/\\])/y

/** What ends a marker, a quoted path and a bare one. */
const MARKER_END = /[\]\n]/g
const QUOTED_END = /["'`\n]/g
const BARE_END = /[\s"'`<>()[\]{}|*?\u3000-\u303f\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\u2018-\u201d]/g

/** Where a reference may begin: at these signs, or at a letter that begins a word. Keeps the search fast. */
const SIGN = /[["'`~./]/
const QUOTE = /["'`]/
const LETTER = /[A-Za-z]/
const IN_WORD = /[A-Za-z0-9_]/
/** A path begins after a space, a quote, an opening bracket, a colon or a letter of a script without spaces. */
const MAY_PRECEDE_PATH = /[\s"'`([{<=:：,，;；|。、！？（【「“‘》\u3400-\u9fff\uf900-\ufaff\u3040-\u30ff\uac00-\ud7af]/u

const LONGEST = 500
const LONGEST_MARKER = 2_000
/** How far before its ending a reference can begin, markers included. */
const FARTHEST = 2_100
/** From either end of a text; people name pictures where they begin or end to speak. */
const SEARCHED_CHARS = 64 * 1024

/** Takes time in proportion to the text, whatever it holds. */
export function findImageReferences(text: string, maxReferences = 20): readonly ImageReference[] {
  return loopWork('pictures', () => findIn(text, maxReferences))
}

function findIn(text: string, maxReferences: number): readonly ImageReference[] {
  const found = new Map<string, ImageReference>()
  for (const part of searchedParts(text)) {
    const search = new Search(part)
    while (found.size < maxReferences) {
      const next = search.next()
      if (next === undefined) break
      if (!found.has(next.path)) found.set(next.path, next)
    }
  }
  return [...found.values()]
}

function searchedParts(text: string): readonly string[] {
  if (text.length <= 2 * SEARCHED_CHARS) return [text]
  return [text.slice(0, SEARCHED_CHARS), text.slice(-SEARCHED_CHARS)]
}

/** Goes forward only. What lies ahead is found once and remembered until it is passed. */
class Search {
  readonly #text: string
  readonly #endings: Ahead
  readonly #markerEnds: Ahead
  readonly #quotedEnds: Ahead
  readonly #bareEnds: Ahead
  #at = 0

  constructor(text: string) {
    this.#text = text
    this.#endings = new Ahead(text, ENDING)
    this.#markerEnds = new Ahead(text, MARKER_END)
    this.#quotedEnds = new Ahead(text, QUOTED_END)
    this.#bareEnds = new Ahead(text, BARE_END)
  }

  next(): ImageReference | undefined {
    for (;;) {
      const ending = this.#endings.from(this.#at)
      if (ending === undefined) return undefined
      this.#at = Math.max(this.#at, ending.start - FARTHEST)
      const found = this.#referenceAt(this.#at)
      this.#at = found?.end ?? this.#at + 1
      if (found?.reference !== undefined) return found.reference
    }
  }

  #referenceAt(at: number): Found | undefined {
    const text = this.#text
    if (!mayBegin(text, at)) return undefined
    const web = lengthAt(WEB_ADDRESS, text, at)
    if (web > 0) return { end: at + web }
    const special = this.#markerAt(at) ?? this.#quotedAt(at)
    if (special !== undefined) return special
    if (at > 0 && !MAY_PRECEDE_PATH.test(text[at - 1] ?? '')) return undefined
    const scheme = lengthAt(FILE_URL, text, at)
    if (scheme > 0) return this.#bareAt(at, scheme, fromFileUrl)
    return this.#bareAt(at, lengthAt(PATH_START, text, at), (path) => ({ raw: path, path }))
  }

  #markerAt(at: number): Found | undefined {
    const head = lengthAt(MARKER, this.#text, at)
    if (head === 0) return undefined
    const close = this.#markerEnds.from(at + head)?.start
    if (close === undefined || this.#text[close] !== ']' || close - at - head > LONGEST_MARKER) return undefined
    const reference = fromMarker(this.#text.slice(at, close + 1), this.#text.slice(at + head, close))
    return { end: close + 1, ...(reference === undefined ? {} : { reference }) }
  }

  /** No quote stands inside another, so the next one of any kind is where it ends. */
  #quotedAt(at: number): Found | undefined {
    const quote = this.#text[at] ?? ''
    if (!QUOTE.test(quote) || lengthAt(PATH_START, this.#text, at + 1) === 0) return undefined
    const close = this.#quotedEnds.from(at + 1)?.start
    if (close === undefined || this.#text[close] !== quote || close - at > LONGEST) return undefined
    const path = this.#text.slice(at + 1, close)
    if (!LAST_ENDING.test(path.slice(-6))) return undefined
    return { reference: { raw: path, path }, end: close + 1 }
  }

  /** Up to the first ending, unless something that cannot be in a path comes first. */
  #bareAt(at: number, head: number, read: (raw: string) => ImageReference | undefined): Found | undefined {
    if (head === 0) return undefined
    const ending = this.#endings.from(at + head)
    if (ending === undefined || ending.start - at - head > LONGEST) return undefined
    const stop = this.#bareEnds.from(at + head)?.start ?? this.#text.length
    if (stop < ending.end) return undefined
    const reference = read(this.#text.slice(at, ending.end))
    return { end: ending.end, ...(reference === undefined ? {} : { reference }) }
  }
}

interface Found {
  /** Absent: what stands here is no picture of ours, and is passed over whole. */
  readonly reference?: ImageReference
  readonly end: number
}

interface Stretch {
  readonly start: number
  readonly end: number
}

/** The next match at or behind a place that moves forward: the text is searched once in all. */
class Ahead {
  readonly #text: string
  readonly #pattern: RegExp
  #next: Stretch | undefined = { start: -1, end: 0 }

  constructor(text: string, pattern: RegExp) {
    this.#text = text
    this.#pattern = pattern
  }

  from(at: number): Stretch | undefined {
    if (this.#next === undefined || this.#next.start >= at) return this.#next
    this.#pattern.lastIndex = at
    const found = this.#pattern.exec(this.#text)
    this.#next = found === null ? undefined : { start: found.index, end: found.index + found[0].length }
    return this.#next
  }
}

function mayBegin(text: string, at: number): boolean {
  const letter = text[at] ?? ''
  return SIGN.test(letter) || (LETTER.test(letter) && !IN_WORD.test(text[at - 1] ?? ''))
}

/** `/a/my cat.png (image/png) | https://…`: the path may have spaces and ends before a bracket or a bar. */
function fromMarker(raw: string, content: string): ImageReference | undefined {
  const path = pathInMarker(content.trim())
  if (path === undefined || path.length > LONGEST || /^(?:https?|ftp):/i.test(path)) return undefined
  if (path.toLowerCase().startsWith('file:')) return fromFileUrl(path)
  return { raw, path: isPlainPath(path) ? path : `./${path}` }
}

/** The path may have spaces; it ends before a bracket, a bar or the end of the marker. */
function pathInMarker(content: string): string | undefined {
  ENDING.lastIndex = 0
  for (const ending of content.matchAll(ENDING)) {
    const end = ending.index + ending[0].length
    const next = content.slice(end).trimStart()[0]
    if (ending.index > 0 && (next === undefined || next === '(' || next === '|')) return content.slice(0, end)
  }
  return undefined
}

/** A host other than this machine, and escapes that hide a slash or a NUL, make it no file of ours. */
function fromFileUrl(raw: string): ImageReference | undefined {
  if (!URL.canParse(raw)) return undefined
  const url = new URL(raw)
  if (url.hostname !== '' && url.hostname !== 'localhost') return undefined
  if (/%(?:2f|5c|00)/i.test(url.pathname)) return undefined
  try {
    const path = decodeURIComponent(url.pathname)
    return { raw, path: /^\/[A-Za-z]:\//.test(path) ? path.slice(1) : path }
  } catch {
    return undefined
  }
}

function isPlainPath(path: string): boolean {
  return /^(?:[/~]|\.{1,2}[/\\]|[A-Za-z]:[/\\])/.test(path)
}

function lengthAt(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return pattern.exec(text)?.[0].length ?? 0
}
