import type { Interface } from 'node:readline'
import { expect, it } from 'vitest'
import { LiveTerminal } from '../../../src/cli/chat/live-terminal.ts'

const PROMPT = '› '

/** As much of a terminal as the editor's output needs: rows, a cursor, and three ways to move or erase. */
class Screen {
  rows = ['']
  #row = 0
  #column = 0
  readonly columns = 40

  write(text: string): boolean {
    // oxlint-disable-next-line no-control-regex
    for (const piece of text.match(/\u001B\[\d*[A-Za-z]|[^\u001B]/gu) ?? []) this.#take(piece)
    return true
  }

  #take(piece: string): void {
    const count = Number(piece.slice(2, -1) || 1)
    if (piece === '\n') {
      this.#row++
      this.#column = 0
      this.rows[this.#row] ??= ''
    } else if (piece.endsWith('A') && piece.length > 1) this.#row = Math.max(0, this.#row - count)
    else if (piece.endsWith('G') && piece.length > 1) this.#column = count - 1
    else if (piece.endsWith('J') && piece.length > 1) {
      this.rows = [...this.rows.slice(0, this.#row), (this.rows[this.#row] ?? '').slice(0, this.#column)]
    } else {
      const row = (this.rows[this.#row] ?? '').padEnd(this.#column)
      this.rows[this.#row] = row.slice(0, this.#column) + piece + row.slice(this.#column + 1)
      this.#column++
    }
  }
}

it('what is typed while an answer grows stays below it, and the answer stays whole', () => {
  const screen = new Screen()
  let typed = ''
  const lines = { getCursorPos: () => ({ rows: 0, cols: 0 }), prompt: () => void screen.write(PROMPT + typed) }
  const terminal = new LiveTerminal({
    output: screen as unknown as NodeJS.WriteStream,
    lines: lines as unknown as Interface,
    prompt: PROMPT,
  })
  const type = (text: string): void => {
    typed += text
    screen.write(text)
  }
  terminal.open()
  terminal.write('218 219 ')
  type('next ')
  terminal.write('220 221')
  type('question')
  terminal.write(' 222\n223')
  expect(screen.rows).toEqual(['218 219 220 221 222', '223', `${PROMPT}next question`])
  // The editor ends its line before it tells of it.
  screen.write('\n')
  const line = typed
  typed = ''
  terminal.entered(line)
  terminal.write(' 224\n')
  expect(screen.rows).toEqual(['218 219 220 221 222', '223 224', PROMPT])
})
