import { createHash } from 'node:crypto'
import { isRecord } from '../base/json.ts'
import type { Entry } from '../core/entry.ts'
import type { ModelIdentity } from '../core/history-rules.ts'
import type { EntryId } from '../core/ids.ts'
import type { Usage } from '../core/message.ts'
import { readPath, type PathReader } from '../core/path-memory.ts'
import { estimateMessageTokens } from '../core/tokens.ts'
import { createBudget } from './budget.ts'
import type { PreparedHistory, HistoryInput } from './prepare.ts'
import { decodeReport, encodeReport, isCompactReport, type CompactReport } from './report.ts'
import {
  applyDelta,
  deltaOf,
  recordOfNext,
  recordOfState,
  stateOf,
  type NextRequest,
  type RequestDelta,
  type RequestState,
  isRequestDelta,
  isRequestRecord,
} from './request-delta.ts'
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

/** What there is to record of a request; `storedForm` makes it an entry. */
export function createRequestState({ n, input, prepared, body, windowLearned }: RequestFacts): NextRequest {
  const { entries, policy: _, ...settings } = input
  const record = {
    n,
    leaf: entries.at(-1)?.id ?? null,
    model: input.target.model,
    api: input.target.api,
    input: settings,
    ...(windowLearned === undefined ? {} : { windowLearned }),
    estimate: prepared.tokens.raw + input.budget.fixedTokens,
    messages: prepared.messages.length,
    hash: hashOfBody(body),
  }
  return { record, ...encodeReport(prepared.parts) }
}

export function hashOfBody(body: string): string {
  return `sha256:${createHash('sha256').update(body).digest('hex')}`
}

/** What the recorded request was prepared from; undefined when the path does not hold its last entry. */
export function inputOfRecord(record: RequestRecord, path: readonly Entry[]): HistoryInput | undefined {
  const end = record.leaf === null ? 0 : path.findIndex((entry) => entry.id === record.leaf) + 1
  if (record.leaf !== null && end === 0) return undefined
  // The entry may be another program's, or of a version that recorded less.
  return isInput(record.input) ? { ...record.input, entries: path.slice(0, end) } : undefined
}

/** What the next request would hold before its new message: what the latest one held, and what was said since. */
export function sizeOfHistory(entries: readonly Entry[]): { readonly messages: number; readonly tokens: number } {
  const at = entries.findLastIndex((entry) => factsOf(entry) !== undefined)
  const facts = factsOf(entries[at])
  const since = viewOf(activeEntries(at < 0 ? entries : entries.slice(at))).items
  const tokens = since.reduce((sum, { message }) => sum + estimateMessageTokens(message), 0)
  if (facts === undefined) return { messages: since.length, tokens }
  const latest = readPath(entries, LATEST_REQUEST).record
  const sent = facts.messages ?? decodeReport(latestRecord(entries)?.report)?.messages.length ?? 0
  const fixed = latest === undefined ? 0 : (budgetOfRecord(latest)?.fixedTokens ?? 0)
  return { messages: sent + since.length, tokens: facts.estimate - fixed + tokens }
}

/** What every record tells by itself, whole or not. */
export function factsOf(entry: Entry | undefined): Pick<RequestRecord, 'n' | 'estimate' | 'messages'> | undefined {
  return wholeOf(entry) ?? deltaIn(entry)
}

/** So many differences may follow a whole record; more behind a large one, for its messages and those it left out, so that whole ones stay a small part. */
const MIN_DELTAS = 64

/** What is stored of a request: its difference to the latest one in view, where that is shorter. */
export function storedForm(entries: readonly Entry[], next: NextRequest): RequestRecord | RequestDelta {
  const { state } = readPath(entries, LATEST_REQUEST)
  const isDue = state === undefined || state.distance >= Math.max(MIN_DELTAS, lengthOf(state) / 4)
  return (isDue ? undefined : deltaOf(state, next)) ?? recordOfNext(next)
}

const lengthOf = ({ messages, rows }: RequestState): number =>
  rows.reduce((sum, { items }) => sum + items.length, messages.items.length)

export function latestRecord(entries: readonly Entry[]): RequestRecord | undefined {
  const { whole, state } = readPath(entries, LATEST_REQUEST)
  return whole ?? (state === undefined ? undefined : recordOfState(state))
}

interface LatestRequest {
  /** The latest record where it is stored whole. */
  whole: RequestRecord | undefined
  /** The latest record taken apart; undefined when a difference has lost what it differs from. */
  state: RequestState | undefined
  /** The latest record without its report. */
  readonly record: Omit<RequestRecord, 'report'> | undefined
}

const LATEST_REQUEST: PathReader<LatestRequest> = {
  start: () => ({
    whole: undefined,
    state: undefined,
    get record() {
      return this.whole ?? this.state?.record
    },
  }),
  add(latest, entry) {
    const whole = wholeOf(entry)
    const delta = whole === undefined ? deltaIn(entry) : undefined
    if (whole === undefined && delta === undefined) return
    latest.whole = whole
    if (whole !== undefined) latest.state = stateOf(whole)
    else if (delta !== undefined && latest.state !== undefined && !applyDelta(latest.state, delta))
      latest.state = undefined
  },
}

/** A request of a path that is replayed. It is good until the next one, which is made of it. */
export interface ReplayedRequest {
  readonly entry: Entry
  /** The place of the entry on the path. */
  readonly at: number
  readonly facts: Omit<RequestRecord, 'report'>
  /** Messages of the report, as they are stored; so many at the beginning are those of the request before. */
  readonly messages: readonly string[]
  readonly kept: number
  record(): RequestRecord
}

/** Every request of a path, at the cost of what is stored of it. */
export function* replayRequests(entries: readonly Entry[]): Generator<ReplayedRequest> {
  let state: RequestState | undefined
  for (const [at, entry] of entries.entries()) {
    const whole = wholeOf(entry)
    const delta = whole === undefined ? deltaIn(entry) : undefined
    if (whole !== undefined) {
      state = stateOf(whole)
      const messages = state?.messages.items ?? storedMessages(whole)
      yield { entry, at, facts: whole, messages, kept: 0, record: () => whole }
    } else if (delta !== undefined && state !== undefined && applyDelta(state, delta)) {
      const now = state
      const { record: facts, messages } = now
      yield {
        entry,
        at,
        facts,
        messages: messages.items,
        kept: Math.min(delta.m[0], delta.d?.[0] ?? Infinity),
        record: () => recordOfState(now),
      }
    }
  }
}

const storedMessages = ({ report }: RequestRecord): readonly string[] =>
  isCompactReport(report) ? report.m.split(' ') : []

export function requestRecords(entries: readonly Entry[]): readonly RequestRecord[] {
  return Array.from(replayRequests(entries), (request) => request.record())
}

function wholeOf(entry: Entry | undefined): RequestRecord | undefined {
  if (entry?.type !== 'custom' || entry.customType !== REQUEST_ENTRY_TYPE) return undefined
  return isRequestRecord(entry.data) ? entry.data : undefined
}

function deltaIn(entry: Entry | undefined): RequestDelta | undefined {
  if (entry?.type !== 'custom' || entry.customType !== REQUEST_ENTRY_TYPE) return undefined
  return isRequestDelta(entry.data) ? entry.data : undefined
}

/** Whom the request went to, as far as the record says. */
export function providerOfRecord({ input }: Pick<RequestRecord, 'input'>): string {
  return isTarget(input.target) ? input.target.provider : 'unknown'
}

/** The budget it was prepared for; undefined where another program, or an earlier version, recorded less. */
export function budgetOfRecord({ input }: Pick<RequestRecord, 'input'>): HistoryInput['budget'] | undefined {
  return hasShapeOf(MODEL_BUDGET, input.budget) ? input.budget : undefined
}

function isInput(input: unknown): boolean {
  if (!isRecord(input)) return false
  const { target, budget, historyLimit, now } = input
  return isTarget(target) && hasShapeOf(MODEL_BUDGET, budget) && Number.isFinite(historyLimit) && Number.isFinite(now)
}

function isTarget(target: unknown): boolean {
  return isRecord(target) && ['provider', 'api', 'model'].every((field) => typeof target[field] === 'string')
}

const MODEL_BUDGET = createBudget({ contextWindow: 1 })

function hasShapeOf(model: unknown, value: unknown): boolean {
  if (Array.isArray(model)) return Array.isArray(value) && value.every((item) => typeof item === 'string')
  if (!isRecord(model)) return typeof value === typeof model
  return isRecord(value) && Object.entries(model).every(([field, inner]) => hasShapeOf(inner, value[field]))
}

const SAMPLES = 5
const MIN_RATIO = 0.25
const MAX_RATIO = 4

/**
 * Real tokens per estimated one for this model: the median over its latest requests of what the provider reported
 * against what we had counted. 1 while it has reported nothing.
 */
export function calibrationFrom(entries: readonly Entry[], target: ModelIdentity): number {
  const ratios = readPath(entries, RATIOS).byModel.get(nameOf(target)) ?? []
  return ratios.length === 0 ? 1 : Math.min(MAX_RATIO, Math.max(MIN_RATIO, median(ratios)))
}

interface Ratios {
  /** The latest ones of each model, oldest first. */
  readonly byModel: Map<string, readonly number[]>
  /** Of the request whose answer comes next. */
  estimate: number
}

const RATIOS: PathReader<Ratios> = {
  start: () => ({ byModel: new Map(), estimate: 0 }),
  add(ratios, entry) {
    if (entry.type === 'custom' && entry.customType === REQUEST_ENTRY_TYPE)
      ratios.estimate = factsOf(entry)?.estimate ?? 0
    if (entry.type !== 'message' || entry.message.role !== 'assistant') return
    const { estimate, byModel } = ratios
    const reported = inputTokens(entry.message.usage)
    const name = nameOf(entry.message)
    if (reported !== undefined && estimate > 0)
      byModel.set(name, [...(byModel.get(name) ?? []), reported / estimate].slice(-SAMPLES))
    ratios.estimate = 0
  },
}

const nameOf = ({ provider, model }: Pick<ModelIdentity, 'provider' | 'model'>): string => `${provider}\n${model}`

/** Everything the request held, whether the provider had it cached or not. */
function inputTokens({ input, cacheRead, cacheWrite }: Usage): number | undefined {
  const tokens = input + cacheRead + cacheWrite
  return Number.isFinite(tokens) && tokens > 0 ? tokens : undefined
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? 1
}
