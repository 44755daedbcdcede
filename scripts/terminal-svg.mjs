import { readFileSync, writeFileSync } from 'node:fs'
import { main, ScriptError } from './lib/run.mjs'

/**
 * Draws captured terminals as one SVG, one window below the other:
 * `tmux capture-pane -e -p > chat.txt && node scripts/terminal-svg.mjs out.svg "a title" chat.txt …`
 */
const CELL = { width: 8.4, height: 19, size: 14 }
const PADDING = 16
const BAR = 34
const GAP = 16
const FONT =
  "ui-monospace, 'SFMono-Regular', Menlo, Consolas, 'DejaVu Sans Mono', 'Noto Sans Mono CJK SC', 'Noto Sans CJK SC', monospace"
const COLORS = { back: '#16181d', bar: '#22252c', text: '#d7dae0', dim: '#8b919c', title: '#a9afba' }
const PALETTE = ['#5c6370', '#e06c75', '#98c379', '#e5c07b', '#61afef', '#c678dd', '#56b6c2', '#d7dae0']

await main(async () => {
  const [target, ...pairs] = process.argv.slice(2)
  if (target === undefined || pairs.length === 0 || pairs.length % 2 === 1) {
    throw new ScriptError('usage: node scripts/terminal-svg.mjs OUT.svg TITLE CAPTURE [TITLE CAPTURE …]')
  }
  const screens = []
  for (let at = 0; at < pairs.length; at += 2) screens.push({ title: pairs[at], lines: readCapture(pairs[at + 1]) })
  writeFileSync(target, draw(screens))
})

/** Attributes go on over line ends until something changes them. */
function readCapture(path) {
  let style = {}
  const lines = readFileSync(path, 'utf8')
    .split('\n')
    .map((line) => {
      const read = toCells(line, style)
      style = read.style
      return read.cells
    })
  const isBlank = (line) => line.every(({ text }) => text === ' ')
  while (lines.length > 0 && isBlank(lines[0])) lines.shift()
  while (lines.length > 0 && isBlank(lines.at(-1))) lines.pop()
  return lines
}

/** One line as cells; a wide character takes two columns. Only the attributes our own programs print are understood. */
function toCells(line, before) {
  const cells = []
  let style = before
  let column = 0
  // oxlint-disable-next-line no-control-regex -- the escape character is what begins an attribute
  for (const piece of line.split(/(\u001B\[[\d;]*m)/u)) {
    if (piece.startsWith('\u001B[')) style = restyle(style, piece.slice(2, -1))
    else {
      for (const character of piece) {
        const width = widthOf(character)
        cells.push({ text: character, style, column, width })
        column += width
      }
    }
  }
  return { cells, style }
}

function restyle(style, codes) {
  let next = style
  for (const code of codes.split(';').map(Number)) {
    if (code === 0) next = {}
    else if (code === 1) next = { ...next, bold: true }
    else if (code === 2) next = { ...next, dim: true }
    else if (code === 22) next = { ...next, bold: false, dim: false }
    else if (code === 39) next = { ...next, color: undefined }
    else if (code >= 30 && code <= 37) next = { ...next, color: PALETTE[code - 30] }
    else if (code >= 90 && code <= 97) next = { ...next, color: PALETTE[code - 90] }
  }
  return next
}

function widthOf(character) {
  const isWide =
    /\p{Emoji_Presentation}/u.test(character) ||
    /[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6]/u.test(character)
  return isWide ? 2 : 1
}

function draw(screens) {
  const columns = Math.max(...screens.flatMap(({ lines }) => lines.map(endColumn)))
  const width = Math.ceil(columns * CELL.width + 2 * PADDING)
  let top = 0
  const windows = screens.map(({ title, lines }) => {
    const height = BAR + 2 * PADDING + lines.length * CELL.height
    const drawn = drawWindow({ title, lines, top, width, height })
    top += height + GAP
    return drawn
  })
  const height = top - GAP
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="${FONT}" font-size="${CELL.size}" role="img">
${windows.join('\n')}
</svg>
`
}

function endColumn(line) {
  const last = line.at(-1)
  return last === undefined ? 0 : last.column + last.width
}

function drawWindow({ title, lines, top, width, height }) {
  const rows = lines.map((line, row) => drawLine(line, top + BAR + PADDING + (row + 0.75) * CELL.height))
  return `<rect x="0" y="${top}" width="${width}" height="${height}" rx="8" fill="${COLORS.back}"/>
<path d="M0 ${top + BAR} V${top + 8} a8 8 0 0 1 8 -8 H${width - 8} a8 8 0 0 1 8 8 V${top + BAR} Z" fill="${COLORS.bar}"/>
<text x="${PADDING}" y="${top + 22}" fill="${COLORS.title}">${escape(title)}</text>
${rows.filter((row) => row !== '').join('\n')}`
}

function drawLine(cells, y) {
  return runsOf(cells)
    .map(({ text, style, column, columns }) => {
      const x = round(PADDING + column * CELL.width)
      const fill = style.color ?? (style.dim ? COLORS.dim : COLORS.text)
      const weight = style.bold ? ' font-weight="bold"' : ''
      // The length is given so that every font, whatever its letters measure, keeps to the columns.
      return `<text x="${x}" y="${round(y)}" fill="${fill}"${weight} textLength="${round(columns * CELL.width)}" xml:space="preserve">${escape(text)}</text>`
    })
    .join('')
}

/** Neighbours of the same style and width become one text; blanks at the ends are not drawn. */
function runsOf(cells) {
  const runs = []
  for (const cell of cells) {
    const run = runs.at(-1)
    if (run !== undefined && run.style === cell.style && run.cellWidth === cell.width) {
      run.text += cell.text
      run.columns += cell.width
    } else {
      const { text, style, column, width } = cell
      runs.push({ text, style, column, columns: width, cellWidth: width })
    }
  }
  return runs.map(trimmed).filter((run) => run.text !== '')
}

function trimmed(run) {
  const start = run.text.length - run.text.trimStart().length
  const text = run.text.trim()
  return { ...run, text, column: run.column + start, columns: Array.from(text).length * run.cellWidth }
}

function round(value) {
  return Math.round(value * 10) / 10
}

function escape(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}
