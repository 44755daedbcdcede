import { createHash } from 'node:crypto'
import { isRecord } from '../base/json.ts'
import type { Entry } from '../core/entry.ts'
import type { EntryId } from '../core/ids.ts'
import { estimateMessageTokens } from '../core/tokens.ts'
import type { PreparedHistory, HistoryInput } from './prepare.ts'
import { decodeReport, encodeReport, type CompactReport } from './report.ts'
import { activeEntries, viewOf } from './view.ts'

/** The custom entry the turn appends before it sends a request. */
export const REQUEST_ENTRY_TYPE = 'clew.request'

/**
 * Data of a `clew.request` entry: what `prepareHistory` was given besides the entries, so that the same request can be
 * built again in a later year, and the hash that proves it.
 */
export interface RequestRecord {
  /** 1 for the first request of the session. */
  readonly n: number
  /** The last entry the history was prepared from; null for none. */
  readonly leaf: EntryId | null
  readonly model: string
  readonly api: string
  readonly input: Omit<HistoryInput, 'entries' | 'policy'>
  /** The window of the budget was learned from refusals, and how. */
  readonly windowLearned?: string
  /** Estimated tokens of the whole request, uncalibrated; the next calibration compares it with the reported usage. */
  readonly estimate: number
  /** How many messages were sent; absent in records of earlier versions. */
  readonly messages?: number
  /** `hashOfBody` of the exact bytes sent. */
  readonly hash: string
  readonly report: CompactReport
  /** Unix ms when it was sent; older files have no times. */
  readonly startedAt?: number
  /** Until the model said its first word, or asked for its first tool. */
  readonly firstByteMs?: number
  /** Until the answer was whole, or ended. */
  readonly durationMs?: number
}

export type RequestTiming = Pick<RequestRecord, 'startedAt' | 'firstByteMs' | 'durationMs'>

export interface RequestFacts {
  readonly n: number
  readonly input: HistoryInput
  readonly prepared: PreparedHistory
  readonly body: string
  readonly windowLearned?: string
}

export function createRequestRecord({ n, input, prepared, body, windowLearned }: RequestFacts): RequestRecord {
  const { entries, policy: _, ...settings } = input
  return {
    n,
    leaf: entries.at(-1)?.id ?? null,
    model: input.target.model,
    api: input.target.api,
    input: settings,
    ...(windowLearned === undefined ? {} : { windowLearned }),
    estimate: prepared.tokens.raw + input.budget.fixedTokens,
    messages: prepared.messages.length,
    hash: hashOfBody(body),
    report: encodeReport(prepared.report),
  }
}

export function hashOfBody(body: string): string {
  return `sha256:${createHash('sha256').update(body).digest('hex')}`
}

/** What the recorded request was prepared from; undefined when the path does not hold its last entry. */
export function inputOfRecord(record: RequestRecord, path: readonly Entry[]): HistoryInput | undefined {
  const end = record.leaf === null ? 0 : path.findIndex((entry) => entry.id === record.leaf) + 1
  if (record.leaf !== null && end === 0) return undefined
  const { target, budget } = record.input
  // The entry may be another program's, or of a version that recorded less.
  if (!isRecord(target) || !isRecord(budget) || !isRecord(budget.pruning)) return undefined
  return { ...record.input, entries: path.slice(0, end) }
}

/** What the next request would hold before its new message: what the latest one held, and what was said since. */
export function sizeOfHistory(entries: readonly Entry[]): { readonly messages: number; readonly tokens: number } {
  const at = entries.findLastIndex((entry) => recordOf(entry) !== undefined)
  const record = recordOf(entries[at])
  const since = viewOf(activeEntries(at < 0 ? entries : entries.slice(at))).items
  const tokens = since.reduce((sum, { message }) => sum + estimateMessageTokens(message), 0)
  if (record === undefined) return { messages: since.length, tokens }
  const sent = record.messages ?? decodeReport(record.report)?.messages.length ?? 0
  return { messages: sent + since.length, tokens: record.estimate - record.input.budget.fixedTokens + tokens }
}

function recordOf(entry: Entry | undefined): RequestRecord | undefined {
  if (entry?.type !== 'custom' || entry.customType !== REQUEST_ENTRY_TYPE) return undefined
  return isRequestRecord(entry.data) ? entry.data : undefined
}

export function requestRecords(entries: readonly Entry[]): readonly RequestRecord[] {
  return entries.flatMap((entry) => recordOf(entry) ?? [])
}

export function isRequestRecord(data: unknown): data is RequestRecord {
  if (!isRecord(data)) return false
  const { n, hash, estimate, input, leaf } = data
  const isLeaf = leaf === null || typeof leaf === 'string'
  return typeof n === 'number' && typeof hash === 'string' && typeof estimate === 'number' && isRecord(input) && isLeaf
}
