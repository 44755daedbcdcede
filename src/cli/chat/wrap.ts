import { displayWidth } from '../output.ts'

// oxlint-disable-next-line no-control-regex -- the colours that this program itself writes take no room
const COLOUR = /\u001B\[\d{0,3}m/gu

const PLAIN = '\u001B[0m'

/** How many columns a text takes; colours take none. */
export function widthOf(text: string): number {
  return displayWidth(text.replaceAll(COLOUR, ''))
}

/** Rows that each begin and end without a style: one that goes on is ended here and begun again on the next row. */
export function closeStyles(
  rows: readonly string[],
  carried: string,
): { readonly rows: string[]; readonly carried: string } {
  let open = carried
  const closed = rows.map((row) => {
    const begun = open
    for (const [code] of row.matchAll(COLOUR)) open = code === PLAIN ? '' : open + code
    return `${begun}${row}${open === '' ? '' : PLAIN}`
  })
  return { rows: closed, carried: open }
}

/** Breaks one line at blanks, at any place between wide characters, and inside a word only when it is too long for a line. */
export function wrapLine(line: string, columns: number): readonly string[] {
  if (widthOf(line) <= columns) return [line]
  const lines: string[] = []
  let [current, width] = ['', 0]
  for (const piece of piecesOf(line)) {
    for (const part of widthOf(piece) > columns ? cut(piece, columns) : [piece]) {
      const partWidth = widthOf(part)
      if (width + partWidth > columns && current !== '') {
        // The blank at the break is not shown on either line.
        lines.push(current.trimEnd())
        if (part.trim() === '') {
          ;[current, width] = ['', 0]
          continue
        }
        ;[current, width] = ['', 0]
      }
      current += part
      width += partWidth
    }
  }
  return [...lines, current]
}

/** Words, blanks between them, and wide characters one by one, each with the closing marks behind it: none begins a line. */
function piecesOf(line: string): readonly string[] {
  return (
    line.match(
      /\s+|[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFFE6][,.;:!?)\]}，。、；：！？）】》」』”’…]*|[^\s\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFFE6]+/gu,
    ) ?? []
  )
}

function cut(word: string, columns: number): readonly string[] {
  const parts: string[] = []
  let [part, width] = ['', 0]
  for (const character of word) {
    const more = displayWidth(character)
    if (width + more > columns) {
      parts.push(part)
      ;[part, width] = ['', 0]
    }
    part += character
    width += more
  }
  return [...parts, part]
}
