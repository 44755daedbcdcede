import { createInterface, type Interface } from 'node:readline'
import { PassThrough } from 'node:stream'
import { isRecord } from '../../base/json.ts'
import { nodeFiles } from '../../platform/node-files.ts'
import { systemIds } from '../../platform/system.ts'
import { apiOf, type RunningGateway } from '../connect.ts'
import { complete, type Completions } from './complete.ts'
import { readHistory, writeHistory } from './history-file.ts'
import { LiveTerminal } from './live-terminal.ts'
import { PasteFilter, withLineBreaks } from './paste.ts'

/** Where messages come from and answers go to. */
export interface ChatInput {
  readonly isTerminal: boolean
  /** In the order they were sent; ends with Ctrl-D or the end of a pipe. */
  messages(): AsyncIterable<string>
  write(text: string): void
  /** A line above the input; nothing in a pipe. */
  status(text: string): void
  onInterrupt(callback: () => void): void
  /** Empties the input line; false when it was empty. */
  clear(): boolean
  close(): void
}

const PROMPT = '› '
const HISTORY_LINES = 1_000
const PASTE_MARKS = { on: '\u001B[?2004h', off: '\u001B[?2004l' }

export async function openInput(gateway: () => RunningGateway): Promise<ChatInput> {
  return process.stdin.isTTY && process.stdout.isTTY ? openTerminal(gateway) : openPipe()
}

function openPipe(): ChatInput {
  const lines = createInterface({ input: process.stdin, terminal: false })
  return {
    isTerminal: false,
    messages: () => lines,
    write: (text) => void process.stdout.write(text),
    status: () => undefined,
    onInterrupt: (callback) => void process.once('SIGINT', callback),
    clear: () => false,
    close: () => lines.close(),
  }
}

async function openTerminal(gateway: () => RunningGateway): Promise<ChatInput> {
  const historyPath = `${gateway().paths.home}/chat-history`
  let history = await readHistory(nodeFiles, historyPath)
  const keys = filteredKeys()
  const lines = createInterface({
    input: keys,
    output: process.stdout,
    prompt: PROMPT,
    terminal: true,
    history,
    historySize: HISTORY_LINES,
    removeHistoryDuplicates: true,
    completer: (line: string, done: (error: null, found: [string[], string]) => void) =>
      void offer(line, gateway(), done),
  })
  lines.on('history', (now: string[]) => (history = now))
  const terminal = new LiveTerminal({ output: process.stdout, lines, prompt: PROMPT })
  process.stdout.write(PASTE_MARKS.on)
  terminal.open()
  return {
    isTerminal: true,
    messages: () =>
      entered(lines, terminal, () => writeHistory({ files: nodeFiles, ids: systemIds }, historyPath, history)),
    write: (text) => terminal.write(text),
    status: (text) => terminal.status(text),
    onInterrupt: (callback) => void lines.on('SIGINT', callback),
    clear: () => clearLine(lines),
    close() {
      terminal.close()
      lines.close()
      process.stdout.write(`${PASTE_MARKS.off}\n`)
      process.stdin.setRawMode(false)
      process.stdin.pause()
    },
  }
}

async function offer(
  line: string,
  running: RunningGateway,
  done: (error: null, found: [string[], string]) => void,
): Promise<void> {
  done(null, await complete(line, completionsOf(running)))
}

/** The keyboard, with the line breaks of pasted texts taken out. */
function filteredKeys(): PassThrough {
  const keys = new PassThrough()
  const filter = new PasteFilter()
  const decoder = new TextDecoder()
  process.stdin.setRawMode(true)
  process.stdin.on('data', (piece: Buffer) => keys.write(filter.take(decoder.decode(piece, { stream: true }))))
  process.stdin.on('end', () => keys.end())
  return keys
}

async function* entered(
  lines: Interface,
  terminal: LiveTerminal,
  saveHistory: () => Promise<void>,
): AsyncIterable<string> {
  // What is sent during an answer waits here, in order.
  const waiting: string[] = []
  let isClosed = false
  let wake = (): void => undefined
  lines.on('line', (line) => {
    terminal.entered(line)
    waiting.push(withLineBreaks(line))
    wake()
  })
  lines.on('close', () => {
    isClosed = true
    wake()
  })
  for (;;) {
    const next = waiting.shift()
    if (next !== undefined) {
      // Being unable to remember what was typed is no reason not to answer it.
      await saveHistory().catch(() => undefined)
      yield next
    } else if (isClosed) return
    else await new Promise<void>((resolve) => (wake = resolve))
  }
}

function clearLine(lines: Interface): boolean {
  if (lines.line === '') return false
  lines.write(null, { ctrl: true, name: 'e' })
  lines.write(null, { ctrl: true, name: 'u' })
  return true
}

function completionsOf(running: RunningGateway): Completions {
  const namesIn = async (path: string, list: string, field: string): Promise<readonly string[]> => {
    const answer = await apiOf(running)
      .get(path)
      .catch(() => ({}))
    const rows: unknown = isRecord(answer) ? answer[list] : undefined
    return (Array.isArray(rows) ? rows : []).flatMap((row: unknown) => {
      const name = isRecord(row) ? row[field] : undefined
      return typeof name === 'string' ? [name] : []
    })
  }
  return {
    models: () => namesIn('/api/models', 'models', 'ref'),
    sessions: () => namesIn('/api/sessions', 'sessions', 'key'),
  }
}
