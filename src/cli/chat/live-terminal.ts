import { clearScreenDown, cursorTo, moveCursor, type Interface } from 'node:readline'
import { closeStyles, widthOf, wrapLine } from './wrap.ts'

export interface LiveTerminalDeps {
  readonly output: NodeJS.WriteStream
  readonly lines: Interface
  readonly prompt: string
}

const MIN_COLUMNS = 20
/** Of a terminal that does not know its size. */
const DEFAULT_COLUMNS = 80

/**
 * The input line stays at the bottom while text grows above it. Finished lines scroll away; the unfinished line and a
 * status line stand directly above the input and are drawn anew with every change.
 */
export class LiveTerminal {
  readonly #deps: LiveTerminalDeps
  /** The line that is still growing. */
  #unfinished = ''
  /** Styles that the line before left open. */
  #style = ''
  #status = ''
  #drawn = 0
  #isOpen = false

  constructor(deps: LiveTerminalDeps) {
    this.#deps = deps
  }

  /** Draws the input line for the first time. */
  open(): void {
    this.#isOpen = true
    this.#draw()
  }

  write(text: string): void {
    const lines = (this.#unfinished + text).split('\n')
    const last = wrapLine(lines.pop() ?? '', this.#columns)
    const finished = [...lines.flatMap((line) => wrapLine(line, this.#columns)), ...last.slice(0, -1)]
    this.#unfinished = last.at(-1) ?? ''
    const { rows, carried } = closeStyles(finished, this.#style)
    this.#style = carried
    this.#redraw(rows)
  }

  /** Shown above the input line until it is changed; an empty one is no line. */
  status(text: string): void {
    if (text === this.#status) return
    this.#status = text
    this.#redraw([])
  }

  /** Enter was pressed: takes what was typed off the screen; it is shown again when its turn comes. */
  entered(line: string): void {
    const { output, prompt } = this.#deps
    const rows = Math.floor(widthOf(prompt + line) / this.#columns) + 1
    moveCursor(output, 0, -(rows + this.#drawn))
    this.#erase()
    this.#draw()
  }

  /** Leaves the screen as it is, with the cursor on a line of its own. */
  close(): void {
    this.#status = ''
    this.#redraw([])
    this.#isOpen = false
  }

  get #columns(): number {
    const { columns } = this.#deps.output
    return columns === 0 ? DEFAULT_COLUMNS : Math.max(MIN_COLUMNS, columns)
  }

  #redraw(finished: readonly string[]): void {
    const { output, lines } = this.#deps
    if (!this.#isOpen) {
      output.write(finished.map((line) => `${line}\n`).join(''))
      return
    }
    moveCursor(output, 0, -(lines.getCursorPos().rows + this.#drawn))
    this.#erase()
    output.write(finished.map((line) => `${line}\n`).join(''))
    this.#draw()
  }

  #erase(): void {
    cursorTo(this.#deps.output, 0)
    clearScreenDown(this.#deps.output)
  }

  #draw(): void {
    const { output, lines } = this.#deps
    const [unfinished = ''] = closeStyles([this.#unfinished], this.#style).rows
    const above = [this.#unfinished === '' ? '' : unfinished, this.#status].filter((line) => line !== '')
    output.write(above.map((line) => `${line}\n`).join(''))
    this.#drawn = above.length
    // The editor remembers how many rows its line took; they have just been erased.
    Object.assign(lines, { prevRows: 0 })
    lines.prompt(true)
  }
}
