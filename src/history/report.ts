import { isRecord } from '../base/json.ts'
import { isEntryId, type EntryId } from '../core/ids.ts'
import { estimateMessageTokens } from '../core/tokens.ts'
import { STEP_NAMES, type Change, type Item, type ItemKind } from './item.ts'

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

/** The report of some messages in a row. */
export interface ReportPart {
  readonly report: readonly MessageReport[]
  /** Of each step, in the order they ran, the view's first. */
  readonly changes: readonly (readonly Change[])[]
}

/** Lists that are one when they are put behind each other; each stays as it is. */
export type Chunks<T> = readonly (readonly T[])[]

/** `CompactReport`, its messages and rows as the parts have them: a part that two histories share is in both reports. */
export interface EncodedReport extends Pick<CompactReport, 'reasons'> {
  readonly messages: Chunks<string>
  readonly rows: readonly Chunks<number | string>[]
}

export function encodeReport(parts: readonly ReportPart[]): EncodedReport {
  const encoded = parts.map(encodePart)
  const reasons = new Map<string, number>()
  const rows = new Map<string, (readonly (number | string)[])[]>()
  for (let step = 0; step < (parts[0]?.changes.length ?? 0); step++) {
    for (const { alike } of encoded) {
      for (const { sample, entries } of alike[step] ?? []) {
        const number = reasons.get(sample.reason) ?? reasons.size
        reasons.set(sample.reason, number)
        const head = [STEP_NAMES.indexOf(sample.step), ACTIONS.indexOf(sample.action), number, sample.count ?? -1]
        const row = rows.get(head.join())
        if (row === undefined) rows.set(head.join(), [head, entries])
        else row.push(entries)
      }
    }
  }
  return {
    reasons: [...reasons.keys()],
    messages: encoded.map(({ messages }) => messages),
    rows: [...rows.values()],
  }
}

interface EncodedPart {
  readonly messages: readonly string[]
  /** Of each step: changes of one kind together, in the order of their first one. */
  readonly alike: readonly (readonly AlikeChanges[])[]
}

interface AlikeChanges {
  readonly sample: Change
  /** 0 for a change without an entry. */
  readonly entries: (EntryId | 0)[]
}

const encodedParts = new WeakMap<ReportPart, EncodedPart>()

/** Once: the beginning of a conversation is in the report of every request. */
function encodePart(part: ReportPart): EncodedPart {
  const known = encodedParts.get(part)
  if (known !== undefined) return known
  const encoded = { messages: part.report.map(encodeMessage), alike: part.changes.map(groupAlike) }
  encodedParts.set(part, encoded)
  return encoded
}

function groupAlike(changes: readonly Change[]): readonly AlikeChanges[] {
  const groups = new Map<string, AlikeChanges>()
  let latest: AlikeChanges | undefined
  for (const one of changes) {
    // A limit drops thousands of messages for one reason.
    if (latest === undefined || !isAlike(latest.sample, one)) {
      const kind = [one.step, one.action, one.count, one.reason].join()
      latest = groups.get(kind) ?? { sample: one, entries: [] }
      groups.set(kind, latest)
    }
    latest.entries.push(one.entry ?? 0)
  }
  return [...groups.values()]
}

const isAlike = (a: Change, b: Change): boolean =>
  a.step === b.step && a.action === b.action && a.reason === b.reason && a.count === b.count

export function compactReport({ reasons, messages, rows }: EncodedReport): CompactReport {
  return { v: 1, reasons, m: messages.flat().join(' '), c: rows.map((row) => row.flat()) }
}

function encodeMessage({ role, kind, tokens, entries }: MessageReport): string {
  const letter = LETTERS[kind === 'filler' && role === 'assistant' ? 'assistant-filler' : kind]
  return [`${letter}${tokens.toString(36)}`, ...entries].join(':')
}

/** Undefined for anything `encodeReport` did not write. Changes of one kind stand together. */
export function decodeReport(data: unknown): HistoryReport | undefined {
  if (!isCompactReport(data)) return undefined
  return {
    messages: decodeMessages(data.m.split(' ')),
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

/** Passes over what `encodeReport` did not write. */
export function decodeMessages(messages: readonly string[]): readonly MessageReport[] {
  return messages.flatMap(decodeMessage)
}

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

/** A row of the changes of a report. */
export function isReportRow(row: unknown): row is readonly (number | string)[] {
  return Array.isArray(row) && row.every((cell) => typeof cell === 'number' || typeof cell === 'string')
}

export function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((text) => typeof text === 'string')
}
