import { createHash } from 'node:crypto'
import { isRecord } from '../base/json.ts'
import type { Entry, EntryDraft } from '../core/entry.ts'
import type { HistoryBudget } from '../history/budget.ts'
import { encodeReport, type CompactReport, type HistoryReport } from '../history/report.ts'
import type { EncodedRequest, ToolSpec } from '../provider/provider.ts'

export const REQUEST_ENTRY_TYPE = 'clew.request'
export const SETUP_ENTRY_TYPE = 'clew.setup'

/**
 * One request to a model: everything besides the transcript that decided its bytes, so that it can be built again. The
 * system prompt and the tools stand in a `clew.setup` entry of their own, written when they change.
 */
export interface RequestRecord {
  readonly n: number
  readonly model: string
  readonly provider: string
  readonly api: string
  /** SHA-256 of the body. */
  readonly hash: string
  readonly setup: string
  readonly now: number
  readonly projection: 'normal' | 'safest'
  readonly historyLimit: number
  readonly budget: HistoryBudget
  readonly acceptsImages: boolean
  readonly maxOutputTokens: number
  readonly thinkingLevel: string
  readonly cacheKey: string
  readonly tokens: { readonly count: number; readonly raw: number; readonly estimated: boolean }
  readonly report: CompactReport
}

export interface Setup {
  readonly hash: string
  readonly system: string
  readonly tools: readonly ToolSpec[]
}

export function createSetup(system: string, tools: readonly ToolSpec[]): Setup {
  return { hash: sha256(JSON.stringify([system, tools])), system, tools }
}

/** The entry to append when the latest one on the path describes another setup. */
export function setupDrafts(entries: readonly Entry[], setup: Setup): readonly EntryDraft[] {
  const latest = entries.findLast((entry) => entry.type === 'custom' && entry.customType === SETUP_ENTRY_TYPE)
  const known = latest?.type === 'custom' && isRecord(latest.data) ? latest.data['hash'] : undefined
  return known === setup.hash ? [] : [{ type: 'custom', customType: SETUP_ENTRY_TYPE, data: setup }]
}

export function requestDraft(record: Omit<RequestRecord, 'report'>, report: HistoryReport): EntryDraft {
  const data: RequestRecord = { ...record, report: encodeReport(report) }
  return { type: 'custom', customType: REQUEST_ENTRY_TYPE, data }
}

export function hashOf(request: EncodedRequest): string {
  return sha256(request.body)
}

/** Numbers rise over the whole conversation; the last one in view is enough to know the next. */
export function nextRequestNumber(entries: readonly Entry[]): number {
  const latest = entries.findLast((entry) => entry.type === 'custom' && entry.customType === REQUEST_ENTRY_TYPE)
  const record = latest?.type === 'custom' ? latest.data : undefined
  return isRecord(record) && typeof record['n'] === 'number' ? record['n'] + 1 : 1
}

export function isRequestRecord(data: unknown): data is RequestRecord {
  return (
    isRecord(data) &&
    typeof data['n'] === 'number' &&
    typeof data['hash'] === 'string' &&
    typeof data['setup'] === 'string' &&
    isRecord(data['budget'])
  )
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
