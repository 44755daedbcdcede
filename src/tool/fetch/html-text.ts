import type { Slices } from '../../base/loop-work.ts'
import { decodeEntities } from './entities.ts'

export interface HtmlText {
  readonly title: string
  readonly text: string
}

/** Their content is not for reading. */
const SKIPPED = new Set([
  'script',
  'style',
  'noscript',
  'template',
  'svg',
  'math',
  'iframe',
  'object',
  'head',
  'select',
  'canvas',
])
/** Inside these, tags are letters; each with what ends it. */
const RAW: ReadonlyMap<string, RegExp> = new Map([
  ['script', /<\/script/gi],
  ['style', /<\/style/gi],
  ['title', /<\/title/gi],
  ['textarea', /<\/textarea/gi],
  ['iframe', /<\/iframe/gi],
  ['noscript', /<\/noscript/gi],
])
const BLOCKS = new Set(
  (
    'address article aside blockquote br dd details dialog div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 ' +
    'header hr li main nav ol p pre section summary table tr ul'
  ).split(' '),
)
const VOID = new Set('area base br col embed hr img input link meta source track wbr'.split(' '))

const TAG_NAME = /[a-zA-Z][a-zA-Z0-9:-]*/y
const HREF = /\shref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]+))/i
const ALT = /\salt\s*=\s*(?:"([^"]*)"|'([^']*)')/i

/** Of markup, or lines of text, between two stops: 5 ms for the worst pages. */
const SLICE_CHARS = 16 * 1024
const SLICE_LINES = 4_000
const MAX_TITLE_CHARS = 1_000

/** What a reader would see, as plain text with links. One pass, linear in the length of the page, never throws. */
export function* htmlToText(html: string, baseUrl: string): Slices<HtmlText> {
  const reader = new HtmlReader(html, baseUrl)
  yield* reader.read()
  const title = yield* tidy(reader.title.slice(0, MAX_TITLE_CHARS))
  return { title: title.replaceAll('\n', ' '), text: yield* tidy(reader.text) }
}

class HtmlReader {
  readonly #html: string
  readonly #baseUrl: string
  readonly #pieces: string[] = []
  /** The element whose content is skipped, and how often it is open. */
  #skipping: { readonly name: string; depth: number } | undefined
  #link: { readonly href: string; readonly from: number } | undefined
  #preformatted = 0
  title = ''

  constructor(html: string, baseUrl: string) {
    this.#html = html
    this.#baseUrl = baseUrl
  }

  get text(): string {
    return this.#pieces.join('')
  }

  *read(): Slices<void> {
    let at = 0
    let sliceEnd = SLICE_CHARS
    while (at < this.#html.length) {
      if (at >= sliceEnd) {
        yield
        sliceEnd = at + SLICE_CHARS
      }
      const open = this.#html.indexOf('<', at)
      if (open === -1) return this.#addText(this.#html.slice(at))
      if (open > at) this.#addText(this.#html.slice(at, open))
      at = this.#readMarkup(open)
    }
  }

  /** Returns where the text goes on. */
  #readMarkup(open: number): number {
    const html = this.#html
    if (html.startsWith('<!--', open)) return after(html, '-->', open + 4)
    if (html[open + 1] === '!' || html[open + 1] === '?') return after(html, '>', open + 2)
    const closing = html[open + 1] === '/'
    TAG_NAME.lastIndex = open + (closing ? 2 : 1)
    const name = TAG_NAME.exec(html)?.[0].toLowerCase()
    if (name === undefined) {
      this.#addText('<')
      return open + 1
    }
    const end = tagEnd(html, TAG_NAME.lastIndex)
    if (closing) this.#close(name)
    else return this.#open(name, html.slice(TAG_NAME.lastIndex, end), end + 1)
    return end + 1
  }

  #open(name: string, attributes: string, contentAt: number): number {
    const rawEnd = RAW.get(name)
    if (rawEnd !== undefined) return this.#readRaw(name, rawEnd, contentAt)
    if (this.#skipping !== undefined) {
      if (name === this.#skipping.name && !attributes.endsWith('/')) this.#skipping.depth++
      // A page that never closes its head begins its body all the same.
      if (name === 'body' && this.#skipping.name === 'head') this.#skipping = undefined
      return contentAt
    }
    if (SKIPPED.has(name)) {
      if (!attributes.endsWith('/') && !VOID.has(name)) this.#skipping = { name, depth: 1 }
      return contentAt
    }
    if (BLOCKS.has(name)) this.#pieces.push('\n')
    if (name === 'li') this.#pieces.push('- ')
    if (/^h[1-6]$/.test(name)) this.#pieces.push('\n', '#'.repeat(Number(name[1])), ' ')
    if (name === 'td' || name === 'th') this.#pieces.push(' | ')
    if (name === 'pre') this.#preformatted++
    if (name === 'a') this.#openLink(attributes)
    if (name === 'img') this.#addAlt(attributes)
    return contentAt
  }

  #readRaw(name: string, closing: RegExp, from: number): number {
    closing.lastIndex = from
    const end = closing.exec(this.#html)?.index ?? this.#html.length
    const content = this.#html.slice(from, end)
    if (name === 'title' && this.title === '') this.title = decodeEntities(content)
    if (name === 'textarea' && this.#skipping === undefined) this.#pieces.push(decodeEntities(content))
    return after(this.#html, '>', end)
  }

  #close(name: string): void {
    if (this.#skipping !== undefined) {
      if (name === this.#skipping.name && --this.#skipping.depth === 0) this.#skipping = undefined
      return
    }
    if (name === 'a') this.#closeLink()
    if (name === 'pre') this.#preformatted = Math.max(0, this.#preformatted - 1)
    if (BLOCKS.has(name)) this.#pieces.push('\n')
  }

  #openLink(attributes: string): void {
    const match = HREF.exec(attributes)
    const href = decodeEntities(match?.[1] ?? match?.[2] ?? match?.[3] ?? '')
    this.#link = URL.canParse(href, this.#baseUrl)
      ? { href: new URL(href, this.#baseUrl).href, from: this.#pieces.length }
      : undefined
  }

  #closeLink(): void {
    const link = this.#link
    this.#link = undefined
    if (link === undefined || !link.href.startsWith('http')) return
    const text = this.#pieces.slice(link.from).join('').trim()
    if (text !== '' && text !== link.href) this.#pieces.push(` (${link.href})`)
  }

  #addAlt(attributes: string): void {
    const match = ALT.exec(attributes)
    const alt = decodeEntities(match?.[1] ?? match?.[2] ?? '').trim()
    if (alt !== '') this.#pieces.push(`[image: ${alt}]`)
  }

  #addText(raw: string): void {
    if (this.#skipping !== undefined) return
    const text = decodeEntities(raw)
    this.#pieces.push(this.#preformatted > 0 ? text : text.replaceAll(/\s+/g, ' '))
  }
}

const MAX_TAG_CHARS = 10_000

/** The `>` that ends a tag, not one inside a quoted attribute; when a quote is never closed, the first one there is. */
function tagEnd(html: string, from: number): number {
  const limit = Math.min(html.length, from + MAX_TAG_CHARS)
  let quote: string | undefined
  for (let at = from; at < limit; at++) {
    const letter = html[at]
    if (quote === undefined && letter === '>') return at
    if (quote === undefined && (letter === '"' || letter === "'")) quote = letter
    else if (letter === quote) quote = undefined
  }
  const end = html.indexOf('>', from)
  return end === -1 ? html.length : end
}

function after(html: string, end: string, from: number): number {
  const at = html.indexOf(end, from)
  return at === -1 ? html.length : at + end.length
}

/** Lines without blanks around them, and at most one empty line between two. */
function* tidy(text: string): Slices<string> {
  const lines: string[] = []
  let read = 0
  for (let at = 0; at < text.length; read++) {
    if (read % SLICE_LINES === SLICE_LINES - 1) yield
    const found = text.indexOf('\n', at)
    const end = found < 0 ? text.length : found
    const line = withoutIndent(text.slice(at, end).trimEnd())
    if (line !== '' || lines.at(-1) !== '') lines.push(line)
    at = end + 1
  }
  return lines.join('\n').trim()
}

function withoutIndent(line: string): string {
  let start = 0
  while (line[start] === ' ') start++
  return start === 0 ? line : line.slice(start)
}
