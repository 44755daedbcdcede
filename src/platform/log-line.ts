import { visibleLine } from '../base/text.ts'

export interface LineFormat {
  readonly verbose: boolean
  readonly colors: boolean
}

const COLOR_OF_LEVEL: Readonly<Record<string, string>> = { debug: '2', info: '36', warn: '33', error: '31' }

/** `12:00:01 info  a sentence  key=value key=value`, always one line: a line break inside a value would forge a second one. */
export function formatLogLine(record: Readonly<Record<string, unknown>>, format: LineFormat): string {
  const { level, time, msg, ...facts } = record
  const name = typeof level === 'string' ? level : 'info'
  const paint = (code: string, text: string): string => (format.colors ? `\u001B[${code}m${text}\u001B[0m` : text)
  const clock = typeof time === 'string' ? time.slice(11, format.verbose ? 23 : 19) : ''
  const pairs = Object.entries(facts).map(([key, value]) => `${key}=${shown(value)}`)
  const head = `${paint('2', clock)} ${paint(COLOR_OF_LEVEL[name] ?? '0', name.padEnd(5))} ${visibleLine(typeof msg === 'string' ? msg : '')}`
  return `${pairs.length === 0 ? head : `${head}  ${paint('2', pairs.join(' '))}`}\n`
}

function shown(value: unknown): string {
  if (typeof value !== 'string') return visibleLine(JSON.stringify(value) ?? '')
  return /^[\w./:@%+-]+$/.test(value) ? value : visibleLine(JSON.stringify(value))
}
