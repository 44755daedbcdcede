import type { JsonObject } from '../base/json.ts'
import type { Slices } from '../base/loop-work.ts'
import { takeHead } from '../base/text.ts'
import type { Entry, MessageEntry } from '../core/entry.ts'
import { GatewayError } from '../core/errors.ts'
import type { EntryId } from '../core/ids.ts'
import { textOf, type PreparedMessage } from '../core/message.ts'
import { storedUsd } from '../core/spent.ts'
import { estimateTokens } from '../core/tokens.ts'
import { activeCleanups } from '../history/view-records.ts'
import type { Change } from '../history/item.ts'
import { prepareHistory } from '../history/prepare.ts'
import { decodeReport, type HistoryReport } from '../history/report.ts'
import {
  budgetOfRecord,
  inputOfRecord,
  providerOfRecord,
  replayRequests,
  REQUEST_ENTRY_TYPE,
  type ReplayedRequest,
  type RequestRecord,
  type RequestTiming,
} from '../history/request-record.ts'
import { activeEntries } from '../history/view.ts'
import { rebuildRequest, type FindProvider } from '../turn/rebuild-request.ts'
import { latestSetup, type Setup } from '../turn/setup.ts'
import { SentMessages } from './sent-messages.ts'
import { estimateStoredTokens } from './stored-tokens.ts'

const MAX_TEXT_CHARS = 20_000
/** So many are replayed before others get their turn: a few milliseconds. */
const REQUESTS_AT_ONCE = 200
/** A request of more entries than these is made in several turns of the event loop. */
const LONG_PATH = 1_000

/** A request of the conversation with what stands around it, as a row shows it. */
interface PastRequest extends ReplayedRequest {
  /** System prompt and tools; stored when they change, in front of the request that first uses them. */
  readonly setup: Setup | undefined
  readonly answer: MessageEntry | undefined
  readonly sent: SentMessages
  /** Behind the last entry its history was prepared from. */
  readonly end: number
}

/** A request with its whole record, which takes a copy of everything that was sent. */
interface WholeRequest {
  readonly record: RequestRecord
  readonly row: JsonObject
  readonly setup: Setup | undefined
  /** Entries up to the last one the history was prepared from. */
  readonly path: readonly Entry[]
}

/** Requests with a number above `after`, oldest first. */
export function* requestRows(
  branch: readonly Entry[],
  query: { readonly after: number; readonly limit: number },
): Slices<JsonObject> {
  const requests: JsonObject[] = []
  let last = 0
  let read = 0
  for (const request of pastRequests(branch)) {
    if (++read % REQUESTS_AT_ONCE === 0) yield
    const { n } = request.facts
    if (n <= query.after) continue
    if (requests.length === query.limit)
      return { requests, ...(requests.length > 0 ? { nextCursor: String(last) } : {}) }
    requests.push(rowOf(request))
    last = n
  }
  return { requests }
}

export function* requestDetail(
  branch: readonly Entry[],
  n: number,
  {
    sessionId,
    find,
    withBody,
  }: { readonly sessionId: string; readonly find: FindProvider; readonly withBody: boolean },
): Slices<JsonObject> {
  const { request, before } = yield* findRequest(branch, n)
  if (request === undefined) throw new GatewayError('ENTRY_NOT_FOUND', `this conversation has no request ${n}`, { n })
  const { setup, record } = request
  const isLong = request.path.length > LONG_PATH
  if (isLong) yield
  const built = rebuildRequest(record, { path: request.path, setup, sessionId }, find)
  if (isLong) yield
  const same = before === undefined || built === undefined ? 0 : sameMessages(request, built.messages, before)
  if (isLong) yield
  const tools = setup?.tools ?? []
  return {
    ...request.row,
    hash: record.hash.replace(/^sha256:/u, ''),
    hashMatches: built?.matches === true,
    bytes: built?.body === undefined ? 0 : Buffer.byteLength(built.body),
    system: takeHead(setup?.system ?? '', MAX_TEXT_CHARS),
    systemTokens: estimateTokens(setup?.system ?? ''),
    systemState: fixedState(request, before, (one) => one?.system),
    tools: tools.map(({ name, description }) => ({ name, description })),
    toolTokens: estimateTokens(JSON.stringify(tools)),
    toolsState: fixedState(request, before, (one) => JSON.stringify(one?.tools)),
    same,
    messages: sentMessages(request, built?.messages ?? [], same, before),
    notSent: notSent(request),
    ...(withBody && built?.body !== undefined ? { body: built.body } : {}),
  }
}

/** The request of a number, and the one before it. */
function* findRequest(
  branch: readonly Entry[],
  n: number,
): Slices<{ readonly request?: WholeRequest | undefined; readonly before?: WholeRequest | undefined }> {
  let at = -1
  let read = 0
  for (const { facts } of replayRequests(branch)) {
    if (++read % REQUESTS_AT_ONCE === 0) yield
    if (facts.n !== n) continue
    at = read - 1
    break
  }
  if (at === -1) return {}
  let before: WholeRequest | undefined
  read = 0
  // A record is made whole where the replay stands on it.
  for (const past of pastRequests(branch)) {
    if (++read % REQUESTS_AT_ONCE === 0) yield
    if (read === at) before = wholeRequest(branch, past)
    if (read === at + 1) return { before, request: wholeRequest(branch, past) }
  }
  return {}
}

function wholeRequest(branch: readonly Entry[], past: PastRequest): WholeRequest {
  return { record: past.record(), row: rowOf(past), setup: past.setup, path: branch.slice(0, past.end) }
}

function* pastRequests(branch: readonly Entry[]): Generator<PastRequest> {
  const placeOf = new Map(branch.map((entry, at) => [entry.id, at]))
  const sent = new SentMessages(branch, placeOf)
  let setup: Setup | undefined
  let read = 0
  for (const request of replayRequests(branch)) {
    const { at, facts } = request
    for (; read < at; read++) setup = latestSetup(branch.slice(read, read + 1)) ?? setup
    const end = facts.leaf === null ? 0 : (placeOf.get(facts.leaf) ?? at - 1) + 1
    sent.follow(request)
    yield { ...request, setup, answer: answerAfter(branch, at), sent, end }
  }
}

/** The answer is stored together with its request: it is the next message. */
function answerAfter(branch: readonly Entry[], at: number): MessageEntry | undefined {
  for (let next = at + 1; next < branch.length; next++) {
    const entry = branch[next]
    if (entry?.type === 'message') return entry.message.role === 'assistant' ? entry : undefined
    if (entry?.type === 'custom' && entry.customType === REQUEST_ENTRY_TYPE) return undefined
  }
  return undefined
}

function rowOf({ facts, entry, answer, sent, end }: PastRequest): JsonObject {
  const budget = budgetOfRecord(facts)
  const usage = answer?.message.role === 'assistant' ? answer.message.usage : undefined
  return {
    n: facts.n,
    at: entry.timestamp,
    model: `${providerOfRecord(facts)}/${facts.model}`,
    ...(answer?.stepId === undefined ? {} : { stepId: answer.stepId }),
    ...(answer?.round === undefined ? {} : { round: answer.round }),
    estimate: facts.estimate,
    fixed: budget?.fixedTokens ?? 0,
    window: budget?.contextWindow ?? 0,
    reserved: budget?.reservedTokens ?? 0,
    messages: sent.count,
    leftOut: sent.leftOut(end),
    ...(usage === undefined || usage.totalTokens === 0
      ? {}
      : {
          usage: {
            input: usage.input,
            output: usage.output,
            cacheRead: usage.cacheRead,
            cacheWrite: usage.cacheWrite,
            usd: storedUsd(usage),
          },
        }),
    ...timingOf(facts),
  }
}

function timingOf({ startedAt, firstByteMs, durationMs }: RequestTiming): JsonObject {
  return {
    ...(startedAt === undefined ? {} : { startedAt }),
    ...(firstByteMs === undefined ? {} : { firstByteMs }),
    ...(durationMs === undefined ? {} : { durationMs }),
  }
}

/** Why an older message is not in a request, where no step of its report says so. */
export const LEFT_OUT_REASONS = ['summarised', 'not part of the model’s view'] as const
const [SUMMARISED, NOT_IN_VIEW] = LEFT_OUT_REASONS

const EMPTY_REPORT: HistoryReport = { messages: [], changes: [] }

/** Every part of a page asks for it, and one of a long conversation takes milliseconds to read. */
const reports = new WeakMap<RequestRecord, HistoryReport>()

function reportOf(record: RequestRecord): HistoryReport {
  const report = reports.get(record) ?? decodeReport(record.report) ?? EMPTY_REPORT
  reports.set(record, report)
  return report
}

/** What besides the messages decides whether a prefix can be the same bytes. */
function frameOf({ record: { model, api }, setup }: WholeRequest): string {
  return `${api} ${model} ${setup?.hash ?? ''}`
}

/** Against the request before, for what stands in front of the messages; another model has read nothing of it yet. */
function fixedState(
  now: WholeRequest,
  before: WholeRequest | undefined,
  of: (setup: Setup | undefined) => string | undefined,
): 'same' | 'new' | 'changed' {
  if (before === undefined) return 'new'
  const isSameModel = before.record.api === now.record.api && before.record.model === now.record.model
  return isSameModel && of(before.setup) === of(now.setup) ? 'same' : 'changed'
}

/** Leading messages with the bytes they had in the request before. */
function sameMessages(now: WholeRequest, messages: readonly PreparedMessage[], before: WholeRequest): number {
  const input = inputOfRecord(before.record, before.path)
  if (input === undefined || frameOf(before) !== frameOf(now)) return 0
  const earlier = prepareHistory(input).messages
  const limit = Math.min(messages.length, earlier.length)
  for (let at = 0; at < limit; at++) {
    if (JSON.stringify(messages[at]) !== JSON.stringify(earlier[at])) return at
  }
  return limit
}

function sentMessages(
  { record }: WholeRequest,
  messages: readonly PreparedMessage[],
  same: number,
  before: WholeRequest | undefined,
): JsonObject[] {
  const report = reportOf(record)
  const changes = changesByEntry(report)
  const known = new Set(before === undefined ? [] : reportOf(before.record).messages.flatMap((one) => one.entries))
  const named = new Set<EntryId>()
  return report.messages.map((one, at) => ({
    role: one.role,
    kind: one.kind,
    ...nameOnce(one.entries, named),
    tokens: one.tokens,
    text: takeHead(textOfPrepared(messages[at]), MAX_TEXT_CHARS),
    ...toolOf(messages[at]),
    state: at < same ? 'same' : one.entries.some((entry) => known.has(entry)) ? 'changed' : 'new',
    changes: one.entries.flatMap((entry) =>
      (changes.get(entry) ?? []).map(({ step, action, reason }) => ({ step, action, reason })),
    ),
  }))
}

/** Where one stored message is sent as several (an answer with one call each), the first names it. */
function nameOnce(entries: readonly EntryId[], named: Set<EntryId>): JsonObject {
  const continued = entries.filter((entry) => named.has(entry))
  const first = entries.filter((entry) => !named.has(entry))
  for (const entry of first) named.add(entry)
  return { entries: first, ...(continued.length === 0 ? {} : { continues: continued }) }
}

function toolOf(message: PreparedMessage | undefined): JsonObject {
  return message?.role === 'toolResult' ? { tool: message.toolName } : {}
}

function textOfPrepared(message: PreparedMessage | undefined): string {
  if (message === undefined) return ''
  if (message.role !== 'assistant') return textOf(message.content)
  const calls = message.content.flatMap((block) =>
    block.type === 'toolCall' ? [`→ ${block.name} ${JSON.stringify(block.arguments)}`] : [],
  )
  return [textOf(message.content), ...calls].filter((line) => line !== '').join('\n')
}

function changesByEntry({ changes }: HistoryReport): ReadonlyMap<EntryId, readonly Change[]> {
  const byEntry = new Map<EntryId, Change[]>()
  for (const one of changes) {
    if (one.entry === undefined) continue
    const known = byEntry.get(one.entry)
    if (known === undefined) byEntry.set(one.entry, [one])
    else known.push(one)
  }
  return byEntry
}

/** Messages older than the request that no message of it stands for. */
function notSentEntries({ record, path }: WholeRequest): readonly MessageEntry[] {
  const sent = new Set(reportOf(record).messages.flatMap((one) => one.entries))
  return path.filter((entry): entry is MessageEntry => entry.type === 'message' && !sent.has(entry.id))
}

function notSent(request: WholeRequest): JsonObject[] {
  const { record, path } = request
  const changes = changesByEntry(reportOf(record))
  const cleanupOf = new Map(
    activeCleanups(path).flatMap(({ id, record: { hidden } }) => hidden.map((entry) => [entry, id] as const)),
  )
  const active = new Set(activeEntries(path))
  const following = nextSentEntries(request)
  return notSentEntries(request).map((entry) => {
    const dropped = changes.get(entry.id)?.find(({ action }) => action === 'dropped' || action === 'merged')
    const isSummarised = !active.has(entry)
    const cleanup = isSummarised ? undefined : cleanupOf.get(entry.id)
    const next = following.get(entry.id)
    return {
      entry: entry.id,
      role: entry.message.role,
      ...(entry.message.role === 'toolResult' ? { tool: entry.message.toolName } : {}),
      tokens: estimateStoredTokens(entry),
      by: isSummarised ? 'compaction' : cleanup === undefined ? (dropped?.step ?? 'view') : 'cleanup',
      reason: isSummarised ? SUMMARISED : (dropped?.reason ?? NOT_IN_VIEW),
      ...(cleanup === undefined ? {} : { cleanup }),
      ...(next === undefined ? {} : { before: next }),
    }
  })
}

/** For each message left out, the sent one it stood before. */
function nextSentEntries({ record, path }: WholeRequest): ReadonlyMap<EntryId, EntryId> {
  const sent = new Set(reportOf(record).messages.flatMap((one) => one.entries))
  const following = new Map<EntryId, EntryId>()
  let next: EntryId | undefined
  for (let at = path.length - 1; at >= 0; at--) {
    const entry = path[at]
    if (entry === undefined) continue
    if (sent.has(entry.id)) next = entry.id
    else if (next !== undefined) following.set(entry.id, next)
  }
  return following
}
