import { isRecord } from '../base/json.ts'
import type { EntryId } from '../core/ids.ts'
import { estimateMessageTokens } from '../core/tokens.ts'
import { isEntryId } from './loose.ts'
import { STEP_NAMES, type Change, type Item, type ItemKind } from './item.ts'
import { isReportRow, isTexts } from './request-shape.ts'

/** What the model saw and why it differs from the transcript. Holds ids, sizes and reasons, never text. */
export interface HistoryReport {
  readonly messages: readonly MessageReport[]
  readonly changes: readonly Change[]
}

/** One message of the request, in order. */
export interface MessageReport {
  readonly role: Item['message']['role']
  readonly kind: ItemKind
  /** The transcript entries in it; empty for what the pipeline put in. */
  readonly entries: readonly EntryId[]
  readonly tokens: number
}

export function reportItems(items: readonly Item[]): readonly MessageReport[] {
  return items.map(({ message, kind, sources }) => ({
    role: message.role,
    kind,
    entries: sources,
    tokens: estimateMessageTokens(message),
  }))
}

/** The stored form, about a dozen bytes per message: it stands in the transcript once per request. */
export interface CompactReport {
  readonly v: 1
  readonly reasons: readonly string[]
  /** Messages in order, a space between them: letter of the kind, tokens in base 36, then `:entry` for each entry. */
  readonly m: string
  /** Changes of one kind together: `[step, action, reason, count or -1, …entries]`, 0 for a change without an entry. */
  readonly c: readonly (readonly (number | string)[])[]
}

const LETTERS = {
  user: 'u',
  assistant: 'a',
  result: 'r',
  'synthetic-result': 's',
  summary: 'm',
  context: 'c',
  filler: 'f',
  'assistant-filler': 'g',
} as const
const ACTIONS = ['dropped', 'added', 'moved', 'rewritten', 'merged'] as const

/** `CompactReport` with its messages apart. */
export interface EncodedReport extends Pick<CompactReport, 'reasons'> {
  readonly messages: readonly string[]
  readonly rows: (number | string)[][]
}

export function encodeReport(report: HistoryReport): EncodedReport {
  const reasons = new Map<string, number>()
  const groups = new Map<string, (number | string)[]>()
  let previous: Change | undefined
  let group: (number | string)[] = []
  for (const one of report.changes) {
    // A limit drops thousands of messages for one reason.
    if (previous === undefined || !isAlike(previous, one)) group = groupFor(one, groups, reasons)
    group.push(one.entry ?? 0)
    previous = one
  }
  return { reasons: [...reasons.keys()], messages: encodedMessages(report.messages), rows: [...groups.values()] }
}

const isAlike = (a: Change, b: Change): boolean =>
  a.step === b.step && a.action === b.action && a.reason === b.reason && a.count === b.count

function groupFor(
  { step, action, reason, count = -1 }: Change,
  groups: Map<string, (number | string)[]>,
  reasons: Map<string, number>,
): (number | string)[] {
  const number = reasons.get(reason) ?? reasons.size
  reasons.set(reason, number)
  const head = [STEP_NAMES.indexOf(step), ACTIONS.indexOf(action), number, count]
  const group = groups.get(head.join()) ?? head
  groups.set(head.join(), group)
  return group
}

export function compactReport({ reasons, messages, rows }: EncodedReport): CompactReport {
  return { v: 1, reasons, m: messages.join(' '), c: rows.map((row) => [...row]) }
}

const knownEncoded = new WeakMap<readonly MessageReport[], readonly string[]>()

/** Stored once for the beginning of a conversation that every later request has too. */
export function encodedMessages(messages: readonly MessageReport[]): readonly string[] {
  return knownEncoded.get(messages) ?? messages.map(encodeMessage)
}

/** Of a report that was put together from two. */
export function joinReports(first: readonly MessageReport[], then: readonly MessageReport[]): readonly MessageReport[] {
  const joined = [...first, ...then]
  knownEncoded.set(joined, [...encodedMessages(first), ...then.map(encodeMessage)])
  return joined
}

function encodeMessage({ role, kind, tokens, entries }: MessageReport): string {
  const letter = LETTERS[kind === 'filler' && role === 'assistant' ? 'assistant-filler' : kind]
  return [`${letter}${tokens.toString(36)}`, ...entries].join(':')
}

/** Undefined for anything `encodeReport` did not write. Changes of one kind stand together. */
export function decodeReport(data: unknown): HistoryReport | undefined {
  if (!isCompactReport(data)) return undefined
  return {
    messages: data.m.split(' ').flatMap(decodeMessage),
    changes: data.c.flatMap(([step, action, reason, count, ...entries]) =>
      entries.map((entry) => ({
        step: STEP_NAMES[Number(step)] ?? 'view',
        action: ACTIONS[Number(action)] ?? 'rewritten',
        reason: data.reasons[Number(reason)] ?? '',
        ...(isEntryId(entry) ? { entry } : {}),
        ...(Number(count) >= 0 ? { count: Number(count) } : {}),
      })),
    ),
  }
}

const KINDS_BY_LETTER: ReadonlyMap<string, Pick<MessageReport, 'role' | 'kind'>> = new Map(
  Object.entries({
    u: { role: 'user', kind: 'user' },
    a: { role: 'assistant', kind: 'assistant' },
    r: { role: 'toolResult', kind: 'result' },
    s: { role: 'toolResult', kind: 'synthetic-result' },
    m: { role: 'user', kind: 'summary' },
    c: { role: 'user', kind: 'context' },
    f: { role: 'user', kind: 'filler' },
    g: { role: 'assistant', kind: 'filler' },
  } as const),
)

function decodeMessage(text: string): readonly MessageReport[] {
  const known = KINDS_BY_LETTER.get(text.charAt(0))
  if (known === undefined) return []
  const [head = '', ...entries] = text.split(':')
  return [{ ...known, tokens: Number.parseInt(head.slice(1), 36) || 0, entries: entries.filter(isEntryId) }]
}

export function isCompactReport(data: unknown): data is CompactReport {
  if (!isRecord(data) || data['v'] !== 1 || typeof data['m'] !== 'string') return false
  const { reasons, c } = data
  return isTexts(reasons) && Array.isArray(c) && c.every(isReportRow)
}

/**
 * For `clew sessions show KEY --request N`: message by message what was sent, then what happened to the rest. `texts` are
 * lines to show below each message, in the same order.
 */
export function renderReport(report: HistoryReport, texts: readonly (readonly string[])[] = []): string {
  const byEntry = new Map<EntryId, Change[]>()
  const others: Change[] = []
  for (const one of report.changes) {
    if (one.entry === undefined) others.push(one)
    else byEntry.set(one.entry, [...(byEntry.get(one.entry) ?? []), one])
  }
  const sent = new Set(report.messages.flatMap((message) => message.entries))
  const lines = report.messages.flatMap((message, at) => [
    `${String(at + 1).padStart(4)}  ${describe(message)}`,
    ...message.entries.flatMap((entry) => (byEntry.get(entry) ?? []).map((one) => `        ${line(one)}`)),
    ...(texts[at] ?? []),
  ])
  const gone = [...byEntry]
    .filter(([entry]) => !sent.has(entry))
    .flatMap(([entry, changes]) => changes.map((one) => `      ${entry}  ${line(one)}`))
  return [
    ...lines,
    ...(gone.length > 0 ? ['not sent:', ...gone] : []),
    ...(others.length > 0 ? ['put in:', ...others.map((one) => `      ${line(one)}`)] : []),
  ].join('\n')
}

function describe({ role, kind, tokens, entries }: MessageReport): string {
  const what = kind === role || (kind === 'result' && role === 'toolResult') ? role : `${role} (${kind})`
  return `${what}, ${tokens} tokens${entries.length > 0 ? `, from ${entries.join(' ')}` : ''}`
}

function line({ step, action, reason, count }: Change): string {
  return `${action} by ${step}: ${reason}${count === undefined ? '' : ` (${count})`}`
}
