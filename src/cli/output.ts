import type { JsonObject } from '../base/json.ts'
import { visibleLine, visibleText } from '../base/text.ts'
import { showInPager } from '../platform/terminal.ts'
import pc from 'picocolors'

/** Data goes to standard output: JSON for programs, lines for people. */
export function printJson(data: JsonObject): void {
  process.stdout.write(`${JSON.stringify(data, null, 2)}\n`)
}

/** Lines may hold text of users, models and tools: their control characters are made visible, in pipes too. */
export function printLines(lines: readonly string[]): void {
  process.stdout.write(lines.map((line) => `${visibleText(line)}\n`).join(''))
}

/** The same, through the user's pager when it is more than a screen; a pipe gets it as it is. */
export async function printPaged(lines: readonly string[]): Promise<void> {
  const text = lines.map((line) => `${visibleText(line)}\n`).join('')
  const rows = process.stdout.isTTY ? process.stdout.rows : Infinity
  if (text.split('\n').length > rows && (await showInPager(text))) return
  process.stdout.write(text)
}

/** Columns padded to their widest cell; the last one is left as it is. Wide characters count as two. */
export function table(cells: readonly (readonly string[])[]): string[] {
  const rows = cells.map((row) => row.map(visibleLine))
  const widths: number[] = []
  for (const row of rows)
    row.forEach((cell, column) => (widths[column] = Math.max(widths[column] ?? 0, displayWidth(cell))))
  return rows.map((row) =>
    row
      .map((cell, column) =>
        column === row.length - 1 ? cell : cell + ' '.repeat((widths[column] ?? 0) - displayWidth(cell)),
      )
      .join('  '),
  )
}

/** In columns of a terminal; wide characters take two. */
export function displayWidth(text: string): number {
  let width = 0
  for (const character of text)
    width += /[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6]/u.test(
      character,
    )
      ? 2
      : 1
  return width
}

/** "3 min ago", for people. */
export function ago(thenMs: number, nowMs: number): string {
  const seconds = Math.max(0, Math.round((nowMs - thenMs) / 1000))
  if (seconds < 60) return `${seconds} s ago`
  if (seconds < 3_600) return `${Math.round(seconds / 60)} min ago`
  if (seconds < 86_400) return `${Math.round(seconds / 3_600)} h ago`
  return `${Math.round(seconds / 86_400)} d ago`
}

/** "2 h 5 min", for people. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ${seconds % 60} s`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days ${hours % 24} h`
}

/** Colours for standard output: none in a pipe, nor with `NO_COLOR`. */
export function stdoutStyle(): ReturnType<typeof pc.createColors> {
  return pc.createColors(process.stdout.isTTY && (process.env['NO_COLOR'] ?? '') === '')
}
