import { isRecord } from '../base/json.ts'
import { takeHead } from '../base/text.ts'
import { textOf } from '../core/message.ts'
import type { Item } from './item.ts'

/** What a summary must not get wrong, so it is not left to the model. */
export interface SummaryFacts {
  readonly toolFailures: readonly string[]
  readonly readFiles: readonly string[]
  readonly modifiedFiles: readonly string[]
  /** Word for word; empty when the request itself is kept. */
  readonly latestRequest: string
}

const MAX_TOOL_FAILURES = 8
const MAX_TOOL_FAILURE_CHARS = 240
const MAX_FILES = 100
const MAX_REQUEST_CHARS = 8_000

/** Facts of `items[0…cut)`; the latest request counts wherever it stands. */
export function collectFacts(items: readonly Item[], cut: number): SummaryFacts {
  const toolFailures: string[] = []
  const read = new Set<string>()
  const modified = new Set<string>()
  for (const { message, kind } of items.slice(0, cut)) {
    if (kind === 'summary' && message.role === 'user') readEarlierLists(textOf(message.content), read, modified)
    if (message.role !== 'toolResult') continue
    const details = isRecord(message.details) ? message.details : {}
    for (const file of [...names(details['filesWritten']), ...names(details['filesRemoved'])]) modified.add(file)
    for (const file of names(details['filesRead'])) read.add(file)
    if (message.isError) toolFailures.push(failureLine(message.toolName, textOf(message.content), details))
  }
  const request = items.findLastIndex((item) => item.kind === 'user')
  const message = request >= 0 && request < cut ? items[request]?.message : undefined
  return {
    toolFailures,
    readFiles: [...read].filter((file) => !modified.has(file)).toSorted(),
    modifiedFiles: [...modified].toSorted(),
    latestRequest: message?.role === 'user' ? takeHead(textOf(message.content), MAX_REQUEST_CHARS) : '',
  }
}

const names = (value: unknown): readonly string[] =>
  Array.isArray(value) ? value.filter((name) => typeof name === 'string') : []

/** Lists of an earlier summary go on: its entries are no longer here to be read. */
function readEarlierLists(summary: string, read: Set<string>, modified: Set<string>): void {
  for (const file of taggedLines(summary, 'read-files')) read.add(file)
  for (const file of taggedLines(summary, 'modified-files')) modified.add(file)
}

function taggedLines(text: string, tag: string): readonly string[] {
  const start = text.lastIndexOf(`<${tag}>\n`)
  const end = text.indexOf(`\n</${tag}>`, start)
  return start < 0 || end < 0 ? [] : text.slice(start + tag.length + 3, end).split('\n')
}

function failureLine(tool: string, text: string, details: Record<string, unknown>): string {
  const meta = ['status', 'exitCode'].flatMap((name) =>
    typeof details[name] === 'number' ? [`${name}=${details[name]}`] : [],
  )
  const line = text
    .split('\n')
    .map((part) => part.trim())
    .filter(Boolean)
    .join(' ')
  return takeHead([`${tool}:`, ...meta, line].join(' '), MAX_TOOL_FAILURE_CHARS)
}

/** Appended to the model's summary. */
export function summarySections(facts: SummaryFacts): string {
  const failures = facts.toolFailures.slice(-MAX_TOOL_FAILURES)
  const more = facts.toolFailures.length - failures.length
  return [
    ...(failures.length === 0
      ? []
      : [
          `Tool failures:\n${failures.map((line) => `- ${line}`).join('\n')}${more > 0 ? `\n...and ${more} more` : ''}`,
        ]),
    ...tagged('read-files', facts.readFiles),
    ...tagged('modified-files', facts.modifiedFiles),
    ...(facts.latestRequest === '' ? [] : [`The user's latest request, word for word:\n${facts.latestRequest}`]),
  ].join('\n\n')
}

function tagged(tag: string, files: readonly string[]): readonly string[] {
  return files.length === 0 ? [] : [`<${tag}>\n${files.slice(0, MAX_FILES).join('\n')}\n</${tag}>`]
}
