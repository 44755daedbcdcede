import type { JsonObject } from '../base/json.ts'
import { takeHead } from '../core/cut-text.ts'
import type { Entry, MessageEntry } from '../core/entry.ts'
import { GatewayError } from '../core/errors.ts'
import type { EntryId } from '../core/ids.ts'
import { textOf, type PreparedMessage } from '../core/message.ts'
import { storedUsd } from '../core/spent.ts'
import { estimateTokens } from '../core/tokens.ts'
import { activeCleanups } from '../history/cleanup-records.ts'
import type { Change } from '../history/item.ts'
import { prepareHistory } from '../history/prepare.ts'
import { decodeReport, type HistoryReport } from '../history/report.ts'
import {
  budgetOfRecord,
  inputOfRecord,
  providerOfRecord,
  recordsByEntry,
  REQUEST_ENTRY_TYPE,
  type RequestRecord,
} from '../history/request-record.ts'
import { activeEntries } from '../history/view.ts'
import { rebuildRequest, type FindProvider } from '../turn/rebuild-request.ts'
import { latestSetup, type Setup } from '../turn/setup.ts'
import { estimateStoredTokens } from './stored-tokens.ts'

const MAX_TEXT_CHARS = 20_000

/** A request of the conversation, with the path it was made from and the answer it got. */
interface PastRequest {
  readonly record: RequestRecord
  readonly entry: Entry
  /** System prompt and tools; stored when they change, in front of the request that first uses them. */
  readonly setup: Setup | undefined
  readonly answer: MessageEntry | undefined
  /** Entries up to the last one the history was prepared from. */
  path(): readonly Entry[]
}

/** Requests with a number above `after`, oldest first. */
export function requestRows(
  branch: readonly Entry[],
  query: { readonly after: number; readonly limit: number },
): JsonObject {
  const found = pastRequests(branch).filter(({ record }) => record.n > query.after)
  const shown = found.slice(0, query.limit)
  const last = shown.at(-1)
  return {
    requests: shown.map(rowOf),
    ...(found.length > shown.length && last !== undefined ? { nextCursor: String(last.record.n) } : {}),
  }
}

export function requestDetail(
  branch: readonly Entry[],
  n: number,
  {
    sessionId,
    find,
    withBody,
  }: { readonly sessionId: string; readonly find: FindProvider; readonly withBody: boolean },
): JsonObject {
  const requests = pastRequests(branch)
  const at = requests.findIndex(({ record }) => record.n === n)
  const request = requests[at]
  if (request === undefined) throw new GatewayError('ENTRY_NOT_FOUND', `this conversation has no request ${n}`, { n })
  const before = at > 0 ? requests[at - 1] : undefined
  const { setup } = request
  const built = rebuildRequest(request.record, { path: request.path(), setup, sessionId }, find)
  const same = before === undefined || built === undefined ? 0 : sameMessages(request, built.messages, before)
  const tools = setup?.tools ?? []
  return {
    ...rowOf(request),
    hash: request.record.hash.replace(/^sha256:/u, ''),
    hashMatches: built?.matches === true,
    bytes: built?.body === undefined ? 0 : Buffer.byteLength(built.body),
    system: takeHead(setup?.system ?? '', MAX_TEXT_CHARS),
    systemTokens: estimateTokens(setup?.system ?? ''),
    tools: tools.map(({ name, description }) => ({ name, description })),
    toolTokens: estimateTokens(JSON.stringify(tools)),
    same,
    messages: sentMessages(request, built?.messages ?? [], same, before),
    notSent: notSent(request),
    ...(withBody && built?.body !== undefined ? { body: built.body } : {}),
  }
}

function pastRequests(branch: readonly Entry[]): readonly PastRequest[] {
  const placeOf = new Map(branch.map((entry, at) => [entry.id, at]))
  const records = recordsByEntry(branch)
  const requests: PastRequest[] = []
  let setup: Setup | undefined
  for (const [at, entry] of branch.entries()) {
    if (entry.type !== 'custom') continue
    setup = latestSetup([entry]) ?? setup
    const record = records.get(entry.id)
    if (record === undefined) continue
    const { leaf } = record
    const end = leaf === null ? 0 : (placeOf.get(leaf) ?? at - 1) + 1
    const path = (): readonly Entry[] => branch.slice(0, end)
    requests.push({ record, entry, setup, answer: answerAfter(branch, at), path })
  }
  return requests
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

function rowOf(request: PastRequest): JsonObject {
  const { record, entry, answer } = request
  const budget = budgetOfRecord(record)
  const left = notSentEntries(request)
  const usage = answer?.message.role === 'assistant' ? answer.message.usage : undefined
  return {
    n: record.n,
    at: entry.timestamp,
    model: `${providerOfRecord(record)}/${record.model}`,
    ...(answer?.stepId === undefined ? {} : { stepId: answer.stepId }),
    ...(answer?.round === undefined ? {} : { round: answer.round }),
    estimate: record.estimate,
    fixed: budget?.fixedTokens ?? 0,
    window: budget?.contextWindow ?? 0,
    reserved: budget?.reservedTokens ?? 0,
    messages: reportOf(record).messages.length,
    leftOut: { messages: left.length, tokens: left.reduce((sum, one) => sum + estimateStoredTokens(one), 0) },
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
    ...timingOf(record),
  }
}

function timingOf({ startedAt, firstByteMs, durationMs }: RequestRecord): JsonObject {
  return {
    ...(startedAt === undefined ? {} : { startedAt }),
    ...(firstByteMs === undefined ? {} : { firstByteMs }),
    ...(durationMs === undefined ? {} : { durationMs }),
  }
}

const EMPTY_REPORT: HistoryReport = { messages: [], changes: [] }

/** Every part of a page asks for it, and one of a long conversation takes milliseconds to read. */
const reports = new WeakMap<RequestRecord, HistoryReport>()

function reportOf(record: RequestRecord): HistoryReport {
  const report = reports.get(record) ?? decodeReport(record.report) ?? EMPTY_REPORT
  reports.set(record, report)
  return report
}

/** What besides the messages decides whether a prefix can be the same bytes. */
function frameOf({ record: { model, api }, setup }: PastRequest): string {
  return `${api} ${model} ${setup?.hash ?? ''}`
}

/** Leading messages with the bytes they had in the request before. */
function sameMessages(now: PastRequest, messages: readonly PreparedMessage[], before: PastRequest): number {
  const input = inputOfRecord(before.record, before.path())
  if (input === undefined || frameOf(before) !== frameOf(now)) return 0
  const earlier = prepareHistory(input).messages
  const limit = Math.min(messages.length, earlier.length)
  for (let at = 0; at < limit; at++) {
    if (JSON.stringify(messages[at]) !== JSON.stringify(earlier[at])) return at
  }
  return limit
}

function sentMessages(
  { record }: PastRequest,
  messages: readonly PreparedMessage[],
  same: number,
  before: PastRequest | undefined,
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
function notSentEntries({ record, path }: PastRequest): readonly MessageEntry[] {
  const sent = new Set(reportOf(record).messages.flatMap((one) => one.entries))
  return path().filter((entry): entry is MessageEntry => entry.type === 'message' && !sent.has(entry.id))
}

function notSent(request: PastRequest): JsonObject[] {
  const { record } = request
  const path = request.path()
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
      reason: isSummarised ? 'summarised' : (dropped?.reason ?? 'not part of the model’s view'),
      ...(cleanup === undefined ? {} : { cleanup }),
      ...(next === undefined ? {} : { before: next }),
    }
  })
}

/** For each message left out, the sent one it stood before. */
function nextSentEntries(request: PastRequest): ReadonlyMap<EntryId, EntryId> {
  const { record } = request
  const path = request.path()
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
