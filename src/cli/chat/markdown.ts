const PLAIN = '\u001B[0m'
const STYLES = { bold: '\u001B[1m', italic: '\u001B[3m', code: '\u001B[36m', quote: '\u001B[2m' } as const

type Style = keyof typeof STYLES

const MARKS: Readonly<Record<string, Style>> = { '`': 'code', '*': 'italic', '**': 'bold' }

/** A mark that ends a style stands behind a character that is neither a blank nor a star. */
const ENDS: Readonly<Record<string, RegExp>> = { '`': /.`/u, '*': /[^\s*]\*(?!\*)/u, '**': /[^\s*]\*\*/u }

/** So many characters behind a mark are held back until the mark that ends it is there. */
const MAX_HELD = 200

/** Marks at the beginning of a line are decided once so many characters are there, or the line ends. */
const MARK = /^(\s{0,12})(#{1,6} |[-*+] |> ?|```[^\n]*\n|~~~[^\n]*\n)/u
const MAYBE_MARK = /^\s{0,12}(?:#{0,6}|[-*+]?|>?|`{1,2}|```[^\n]*|~{1,2}|~~~[^\n]*)$/u

/**
 * Markdown for a terminal, piece by piece as an answer grows: headings and `**bold**` are bold, `*italic*` is italic, code
 * has a colour, list marks become bullets. What it cannot decide yet waits for the next piece; nothing of the text but the
 * marks is lost. Links, tables and HTML stay as they are.
 */
export class MarkdownStream {
  #held = ''
  #atLineStart = true
  #isFenced = false
  #isHeading = false
  /** The character before the next one, on the same line. */
  #before = ''
  readonly #open: Style[] = []

  take(piece: string): string {
    let rest = this.#held + piece
    this.#held = ''
    let out = ''
    while (rest !== '') {
      const step = this.#atLineStart ? this.#lineStart(rest) : this.#inLine(rest)
      if (step === undefined) {
        this.#held = rest
        break
      }
      out += step.out
      this.#before = rest.slice(0, step.used).at(-1) ?? this.#before
      rest = rest.slice(step.used)
    }
    return out
  }

  /** What still waits, and the end of every style. */
  end(): string {
    const out = this.#held + (this.#open.length > 0 || this.#isFenced ? PLAIN : '')
    this.#held = ''
    this.#open.length = 0
    this.#isFenced = false
    this.#isHeading = false
    this.#atLineStart = true
    return out
  }

  #lineStart(rest: string): Step | undefined {
    if (this.#isFenced) return this.#fencedLine(rest)
    if (MAYBE_MARK.test(rest) && !rest.includes('\n')) return undefined
    this.#atLineStart = false
    const [whole = '', indent = '', mark = ''] = MARK.exec(rest) ?? []
    if (whole === '') return { used: 0, out: '' }
    if (mark.startsWith('```') || mark.startsWith('~~~')) {
      this.#isFenced = true
      this.#atLineStart = true
      return { used: whole.length, out: STYLES.code }
    }
    if (mark.startsWith('#')) {
      this.#isHeading = true
      return { used: whole.length, out: this.#start('bold') }
    }
    if (mark.startsWith('>')) return { used: whole.length, out: `${indent}${this.#start('quote')}│ ` }
    return { used: whole.length, out: `${indent}• ` }
  }

  /** Inside a fence a line is code as it stands, until the fence ends. */
  #fencedLine(rest: string): Step | undefined {
    const end = rest.indexOf('\n')
    const line = end < 0 ? rest : rest.slice(0, end)
    if (/^\s{0,12}(?:```|~~~)\s*$/u.test(line)) {
      if (end < 0) return undefined
      this.#isFenced = false
      return { used: end + 1, out: PLAIN }
    }
    if (end < 0 && /^\s{0,12}[`~]{0,3}\s*$/u.test(line)) return undefined
    if (end < 0) {
      this.#atLineStart = false
      return { used: line.length, out: line }
    }
    return { used: end + 1, out: rest.slice(0, end + 1) }
  }

  #inLine(rest: string): Step | undefined {
    if (rest.startsWith('\n')) {
      this.#atLineStart = true
      this.#isHeading = false
      return { used: 1, out: `${this.#isFenced ? '' : this.#endAll()}\n` }
    }
    if (this.#isFenced) return { used: endOf(rest, /\n/u), out: rest.slice(0, endOf(rest, /\n/u)) }
    if (this.#open.includes('code') && !rest.startsWith('`'))
      return { used: endOf(rest, /[`\n]/u), out: rest.slice(0, endOf(rest, /[`\n]/u)) }
    if (rest === '*') return undefined
    const mark = /^(?:`|\*\*?)/u.exec(rest)?.[0]
    if (mark !== undefined) return this.#mark(mark, rest)
    const used = Math.max(1, endOf(rest, /[`*\n]/u))
    return { used, out: rest.slice(0, used) }
  }

  /** The mark of a style that is open ends it. One that nothing on its line ends is no mark but a character. */
  #mark(mark: string, rest: string): Step | undefined {
    const style = MARKS[mark] ?? 'code'
    const isOpen = this.#open.includes(style)
    const begins = isOpen || this.#begins(mark, rest.slice(mark.length))
    if (begins === undefined) return undefined
    if (!begins) return { used: mark.length, out: mark }
    // A heading is bold already.
    return { used: mark.length, out: style === 'bold' && this.#isHeading ? '' : this.#toggle(style) }
  }

  /** Undefined until the rest of the line, or enough of it, is there. */
  #begins(mark: string, after: string): boolean | undefined {
    // A star between letters or digits (`6*7`, `2**3`) or before a blank is one.
    if (mark !== '`' && (/\w/u.test(this.#before) || /^\s/u.test(after))) return false
    const end = endOf(after, /\n/u)
    if (ENDS[mark]?.test(after.slice(0, end)) === true) return true
    return end < after.length || after.length > MAX_HELD ? false : undefined
  }

  #toggle(style: Style): string {
    const at = this.#open.indexOf(style)
    if (at < 0) return this.#start(style)
    this.#open.splice(at, 1)
    return PLAIN + this.#open.map((open) => STYLES[open]).join('')
  }

  #start(style: Style): string {
    this.#open.push(style)
    return STYLES[style]
  }

  #endAll(): string {
    if (this.#open.length === 0) return ''
    this.#open.length = 0
    return PLAIN
  }
}

interface Step {
  readonly used: number
  readonly out: string
}

function endOf(text: string, stop: RegExp): number {
  const at = text.search(stop)
  return at < 0 ? text.length : at
}
