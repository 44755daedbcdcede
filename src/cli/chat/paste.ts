/** Stands for a line break in the input line, which has one row: what is sent has real ones. */
export const LINE_BREAK = '⏎'

const BEGIN = '\u001B[200~'
const END = '\u001B[201~'
/** As terminals send it. */
const ALT_ENTER = '\u001B\r'

/**
 * What the terminal sends, made ready for a line editor: the line breaks of a pasted text (terminals mark its beginning and
 * end) and Alt-Enter become a sign in the line, so that only Enter sends.
 */
export class PasteFilter {
  #isPasting = false
  #held = ''

  /** The same text without the marks. A mark that is not complete yet waits for the next piece. */
  take(piece: string): string {
    let rest = this.#held + piece
    this.#held = ''
    let ready = ''
    for (;;) {
      const mark = this.#isPasting ? END : BEGIN
      const at = rest.indexOf(mark)
      if (at < 0) break
      ready += this.#convert(rest.slice(0, at))
      rest = rest.slice(at + mark.length)
      this.#isPasting = !this.#isPasting
    }
    const held = beginningOf(this.#isPasting ? END : BEGIN, rest)
    this.#held = held
    return ready + this.#convert(rest.slice(0, rest.length - held.length))
  }

  #convert(text: string): string {
    if (!this.#isPasting) return text.replaceAll(ALT_ENTER, LINE_BREAK)
    // What else a paste holds of control characters would be taken for keys.
    return text
      .replaceAll(/\r\n?|\n/gu, LINE_BREAK)
      .replaceAll('\t', '    ')
      .replaceAll(/\p{Cc}/gu, '')
  }
}

/** The end of the text that may be the beginning of the mark; an Escape alone is a key. */
function beginningOf(mark: string, text: string): string {
  for (let length = mark.length - 1; length > 2; length--)
    if (text.endsWith(mark.slice(0, length))) return mark.slice(0, length)
  return ''
}

export function withLineBreaks(line: string): string {
  return line.replaceAll(LINE_BREAK, '\n')
}
