import { expect, it } from 'vitest'
import { Screen } from '../../../src/cli/chat/screen.ts'

const EVIL = '\u001B]0;title\u0007\u001B[2J\u009B31m\u0008hello'
/** What may stand in the output: blanks, line breaks, and nothing that steers a terminal. */
// oxlint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/u

it.each([true, false])('nothing that others wrote steers the terminal (markdown: %s)', (markdown) => {
  const written: string[] = []
  const screen = new Screen({ write: (text) => void written.push(text), colors: false, markdown, verbose: true })
  const data = { tool: EVIL, arguments: { path: EVIL }, failed: true, id: EVIL, code: EVIL, model: EVIL }
  screen.typed(EVIL)
  screen.show({ type: 'progress', text: EVIL } as never)
  screen.show({ type: 'progress', text: `${EVIL} ${EVIL}` } as never)
  for (const event of ['tool_start', 'tool_end', 'approval_requested', 'model_retry'])
    screen.show({ type: 'event', event, data } as never)
  screen.show({ type: 'event', event: 'thinking_delta', data: { round: 1, delta: EVIL } } as never)
  screen.show({ type: 'complete', text: `${EVIL} ${EVIL} end` } as never)
  screen.failed(EVIL)
  const text = written.join('')
  expect(text.match(/hello/gu)?.length).toBeGreaterThan(8)
  // Styles of the markdown are our own.
  // oxlint-disable-next-line no-control-regex
  expect(text.replaceAll(/\u001B\[\d{1,2}m/gu, '')).not.toMatch(CONTROL)
})
