import { isRecord } from '../base/json.ts'
import type { EntryId } from '../core/ids.ts'
import { estimateMessageTokens } from '../core/tokens.ts'
import { isEntryId } from './loose.ts'
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

export function createReport(items: readonly Item[], changes: readonly Change[]): HistoryReport {
  const messages = items.map(({ message, kind, sources }) => ({
    role: message.role,
    kind,
    entries: sources,
    tokens: estimateMessageTokens(message),
  }))
  return { messages, changes }
}

/** The stored form: numbers for names, each reason once. */
export interface CompactReport {
  readonly v: 1
  readonly reasons: readonly string[]
  /** `[role, kind, tokens, …entries]` */
  readonly m: readonly (readonly (number | string)[])[]
  /** `[step, action, reason, entry or 0, count or -1]` */
  readonly c: readonly (readonly (number | string)[])[]
}

const ROLES = ['user', 'assistant', 'toolResult'] as const
const KINDS = [
  'user',
  'assistant',
  'result',
  'synthetic-result',
  'summary',
  'context',
  'filler',
] as const satisfies readonly ItemKind[]
const ACTIONS = ['dropped', 'added', 'moved', 'rewritten', 'merged'] as const

export function encodeReport(report: HistoryReport): CompactReport {
  const reasons = [...new Set(report.changes.map((change) => change.reason))]
  const numberOf = new Map(reasons.map((reason, at) => [reason, at]))
  return {
    v: 1,
    reasons,
    m: report.messages.map(({ role, kind, tokens, entries }) => [
      ROLES.indexOf(role),
      KINDS.indexOf(kind),
      tokens,
      ...entries,
    ]),
    c: report.changes.map(({ step, action, reason, entry, count }) => [
      STEP_NAMES.indexOf(step),
      ACTIONS.indexOf(action),
      numberOf.get(reason) ?? 0,
      entry ?? 0,
      count ?? -1,
    ]),
  }
}

/** Undefined for anything `encodeReport` did not write. */
export function decodeReport(data: unknown): HistoryReport | undefined {
  if (!isCompact(data)) return undefined
  return {
    messages: data.m.map(([role, kind, tokens, ...entries]) => ({
      role: ROLES[Number(role)] ?? 'user',
      kind: KINDS[Number(kind)] ?? 'context',
      tokens: Number(tokens),
      entries: entries.filter(isEntryId),
    })),
    changes: data.c.map(([step, action, reason, entry, count]) => ({
      step: STEP_NAMES[Number(step)] ?? 'view',
      action: ACTIONS[Number(action)] ?? 'rewritten',
      reason: data.reasons[Number(reason)] ?? '',
      ...(isEntryId(entry) ? { entry } : {}),
      ...(Number(count) >= 0 ? { count: Number(count) } : {}),
    })),
  }
}

function isCompact(data: unknown): data is CompactReport {
  if (!isRecord(data) || data['v'] !== 1) return false
  return Array.isArray(data['reasons']) && isRows(data['m']) && isRows(data['c'])
}

const isRows = (value: unknown): boolean => Array.isArray(value) && value.every((row) => Array.isArray(row))

/** For `clew sessions show KEY --request N`: message by message what was sent, then what happened to the rest. */
export function renderReport(report: HistoryReport): string {
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
