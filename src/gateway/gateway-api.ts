import type { Clock } from '../base/clock.ts'
import type { JsonObject } from '../base/json.ts'
import { NEVER } from '../base/async.ts'
import type { Channel } from '../channel/channel.ts'
import { GatewayError } from '../core/errors.ts'
import type { MessageEntry } from '../core/entry.ts'
import type { SessionId, SessionKey } from '../core/ids.ts'
import { type Caller, type SessionRecord, holdsWords, mayUse } from '../core/inbound.ts'
import { textOf, type Message } from '../core/message.ts'
import { usdOf } from '../core/spent.ts'
import { activeCleanups } from '../history/view-records.ts'
import { factsOf } from '../history/request-record.ts'
import { activeEntries } from '../history/view.ts'
import type { CountMessages } from '../history/view-tokens.ts'
import type { Providers } from '../provider/registry.ts'
import type { Approvals } from '../session/approvals.ts'
import { savingsOf } from '../session/spending.ts'
import { type AgentDeps } from '../session/converse.ts'
import { findSession } from '../session/find-session.ts'
import type { SessionQuery, SessionRow, Storage } from '../storage/storage.ts'
import type { Transcript } from '../transcript/store.ts'
import { undoLatestCompaction } from '../turn/compact.ts'
import { findStoredResult } from '../turn/stored-result.ts'
import { countFor } from '../turn/count-messages.ts'
import { undoCleanup, undoLatestCleanup } from '../turn/undo-cleanup.ts'
import { describeRequest } from './describe-request.ts'
import { describeSteps } from './describe-steps.ts'
import type { Gateway } from './gateway.ts'
import { ArrivalOrder } from './intake.ts'
import type { Sessions } from '../session/sessions.ts'
import type { GatewayApi, ListQuery, RestoreQuery } from './http.ts'

export interface ApiDeps {
  readonly storage: Storage
  readonly agent: {
    readonly current: Pick<AgentDeps, 'modelsFor' | 'counter'> & { readonly providers: Providers }
  }
  readonly gateway: Gateway
  readonly sessions: Sessions
  readonly approvals: Approvals
  /** Rows of one list. */
  readonly maxList: number
  readonly clock: Clock
  status(): Promise<JsonObject>
  reload(): Promise<JsonObject>
  tools(): JsonObject
  channel(name: string): Channel | undefined
  /** A restore changed it: pages that show it load it anew. */
  changed?(key: SessionKey): void
}

/** A message that waits longer for a free turn is a sign that providers hang. */
const STUCK_AFTER_MS = 30_000

/** The JSON API, for the HTTP side and for commands that work on a stopped gateway's files. */
export function createGatewayApi(deps: ApiDeps): GatewayApi {
  const { storage, agent, gateway, sessions, approvals, maxList, status, tools, channel } = deps
  const { sessions: index, transcripts } = storage
  /** Of each session one after the other: what two of them undo is not the same. */
  const restores = new ArrivalOrder()
  const findRow = async (key: string, caller: Caller | undefined): Promise<SessionRow> => {
    await gateway.bringBack(key)
    return findSession(storage, { key, sessionId: key }, caller)
  }
  const runningChannel = (name: string): Channel => {
    const known = channel(name)
    if (known !== undefined) return known
    throw new GatewayError('CHANNEL_NOT_FOUND', `no channel "${name}" is running`, { field: 'channel' })
  }
  return {
    isOpen: () => gateway.isOpen && storage.isReachable !== false,
    isStorageAway: () => gateway.isOpen && storage.isReachable === false,
    isStuck: () => sessions.activity().longestWaitMs > STUCK_AFTER_MS,
    status,
    cluster: async () => {
      const cluster = await storage.cluster?.()
      return cluster === undefined
        ? undefined
        : {
            ...cluster,
            nodes: cluster.nodes.map((node) => ({ ...node })),
            lost: cluster.lost.map((node) => ({ ...node })),
          }
    },
    reload: deps.reload,
    tools,
    async list(query, caller) {
      const limit = Math.min(query.limit ?? 50, maxList)
      if (query.archived === true && isArchiveCursor(query.cursor)) return listArchive(storage, query, limit, caller)
      const { prefix, cursor } = query
      const page = await index.list({
        limit,
        ...(prefix === undefined ? {} : { prefix }),
        ...(cursor === undefined ? {} : { cursor }),
        ...(caller && { caller }),
        ...filterOf(query, sessions),
      })
      const { total, nextCursor } = page
      const rows =
        query.archived === true
          ? page.sessions.flatMap((row) => archivedRows(row, query.q))
          : await Promise.all(page.sessions.map((row) => listRow(row, deps)))
      const hasMore = query.archived === true && (await index.hasArchived())
      const next = nextCursor ?? (hasMore ? ARCHIVE_CURSOR : undefined)
      return { sessions: rows, count: rows.length, total, ...(next === undefined ? {} : { nextCursor: next }) }
    },
    async row(key) {
      const record = await index.get(key)
      return record === undefined ? undefined : listRow({ key, record }, deps)
    },
    async show(key, query, caller) {
      const row = await findRow(key, caller)
      const transcript = await transcripts.open(row.record.sessionId, NEVER)
      try {
        const branch = await transcript.branch()
        if (query.request !== undefined) {
          return describeRequest(branch, query.request, row.record.sessionId, agent.current.providers)
        }
        const summary = {
          session: { ...rowOf(row.key, row.record), ...(await costOf(storage, row.record.sessionId)) },
          activity: { ...sessions.activityOf(row.key) },
          requests: branch.filter((entry) => factsOf(entry) !== undefined).length,
          usage: await usageOf(storage, row.record.sessionId),
          cleanup: { ...(await storage.usage.savedBy(row.record.sessionId)) },
          repairs: transcript.repairs.map((note) => ({ ...note })),
        }
        if (query.limit === 0) return summary
        const hidden = new Set(activeCleanups(branch).flatMap(({ record }) => record.hidden))
        const active = new Set(activeEntries(branch))
        const messages = branch.filter((entry): entry is MessageEntry => entry.type === 'message')
        return {
          ...summary,
          steps: describeSteps(branch),
          messages: messages.slice(-(query.limit ?? 1_000)).map((entry) => ({
            ...messageView(entry),
            ...(hidden.has(entry.id) ? { hidden: true } : {}),
            ...(active.has(entry) ? {} : { summarised: true }),
          })),
        }
      } finally {
        await transcript.close()
      }
    },
    async steps(key, caller) {
      const row = await findRow(key, caller)
      const transcript = await transcripts.open(row.record.sessionId, NEVER)
      try {
        const steps = describeSteps(await transcript.branch())
        return { key: row.key, cleanup: { ...(await storage.usage.savedBy(row.record.sessionId)) }, steps }
      } finally {
        await transcript.close()
      }
    },
    async blob(key, id, caller) {
      const row = await findRow(key, caller)
      const transcript = await transcripts.open(row.record.sessionId, NEVER)
      try {
        const found = await findStoredResult(transcript, id)
        if (found === undefined)
          throw new GatewayError('BLOB_NOT_FOUND', 'no tool result of this session has this id', { field: 'id' })
        return { key: row.key, id, characters: found.text.length, ...found }
      } finally {
        await transcript.close()
      }
    },
    async usage({ from, to, by, bucket }) {
      const rows = await storage.usage.report({ from, to, by, bucket })
      const nameOf = async (group: string): Promise<string> =>
        by === 'session' ? ((await index.byId(group))?.key ?? group) : group
      return {
        usage: await Promise.all(rows.map(async (row) => ({ ...row, group: await nameOf(row.group) }))),
        pricesDate: agent.current.providers.pricesDate,
      }
    },
    async approvals(caller) {
      const waiting = await approvals.list()
      const seen = await Promise.all(waiting.map(({ session }) => isSeenBy(storage, session, caller)))
      return { approvals: waiting.filter((_, at) => seen[at] === true) }
    },
    async approve(id, approve, caller) {
      const key = await approvals.sessionOf(id)
      if (!(await isSeenBy(storage, key, caller)))
        throw new GatewayError('APPROVAL_NOT_FOUND', 'no tool call waits for approval under this id', { field: 'id' })
      await approvals.decide(id, approve)
      return { success: true, id, session: key, approved: approve }
    },
    async reset(key, caller) {
      const result = await gateway.control({ type: 'reset', key: (await findRow(key, caller)).key })
      return { success: true, key: result.type === 'reset' ? result.key : key }
    },
    async cancel(key, caller) {
      const result = await gateway.control({ type: 'cancel', key: (await findRow(key, caller)).key })
      return { success: true, key, cancelled: result.type === 'cancel' ? result.cancelled : 0 }
    },
    async delete(key, caller) {
      const row = await findRow(key, caller)
      await gateway.control({ type: 'delete', key: row.key })
      return { success: true, key: row.key }
    },
    async trust(name) {
      return { channel: name, accepted: (await runningChannel(name).trust?.()) ?? 0 }
    },
    linkHistory: (name) => (runningChannel(name).linkHistory?.() ?? []).map((row) => ({ ...row })),
    reconnect: (name) => ({ success: true, channel: name, links: runningChannel(name).reconnect?.() ?? 0 }),
    async restore(key, what, caller) {
      const isNamed = what.archive !== undefined || what.compaction === true || what.cleanup !== undefined
      const wasArchived = await gateway.bringBack(key)
      const row = await findRow(key, caller)
      const restore = (): Promise<JsonObject> =>
        wasArchived && !isNamed ? keepRestored(storage, row) : restoreNamed(deps, row, what)
      const restored = await restores.enterAndFind(row.key, restore, (done) => done)
      deps.changed?.(row.key)
      return restored
    },
  }
}

async function restoreNamed(
  deps: ApiDeps,
  row: SessionRow,
  { archive, compaction = false, cleanup }: RestoreQuery,
): Promise<JsonObject> {
  if (cleanup !== undefined) return restoreCleanup(deps.storage, row, cleanup)
  if (archive === undefined) return restoreView(deps, row, compaction)
  await deps.sessions.restoreArchive(row.key, archive as SessionId)
  return { success: true, key: row.key, message: `${row.key} goes on with ${archive}` }
}

async function restoreView(
  { storage, agent, clock }: Pick<ApiDeps, 'storage' | 'agent' | 'clock'>,
  { key, record }: SessionRow,
  compaction: boolean,
): Promise<JsonObject> {
  const transcript = await storage.transcripts.open(record.sessionId, NEVER)
  try {
    const count = async (): Promise<CountMessages> =>
      countFor(agent.current.modelsFor(record)[0], { counter: agent.current.counter, clock }, await transcript.branch())
    const undone = await (compaction
      ? restoreSummarised(transcript, await count())
      : restoreCleaned({ transcript, savings: savingsOf(record.sessionId) }))
    if (undone !== undefined) return { success: true, key, ...undone }
    const what = compaction ? 'compaction' : 'cleanup'
    throw new GatewayError('FIELD_INVALID', `there is no ${what} left to undo in this session`, { field: 'key' })
  } finally {
    await transcript.close()
  }
}

async function restoreCleanup(storage: Storage, { key, record }: SessionRow, cleanup: string): Promise<JsonObject> {
  const transcript = await storage.transcripts.open(record.sessionId, NEVER)
  try {
    const undone = await undoCleanup({ transcript, savings: savingsOf(record.sessionId) }, cleanup)
    if (undone === undefined) throw new GatewayError('ENTRY_NOT_FOUND', 'this session has no such cleanup', {})
    if (undone === 'gone') throw new GatewayError('ALREADY_RESTORED', 'this cleanup was undone before', {})
    return { success: true, key, cleanup, stepId: undone }
  } finally {
    await transcript.close()
  }
}

async function restoreCleaned(deps: Parameters<typeof undoLatestCleanup>[0]): Promise<JsonObject | undefined> {
  const stepId = await undoLatestCleanup(deps)
  if (stepId === undefined) return undefined
  return { stepId, message: `the rounds of step ${stepId} are in the model's view again` }
}

async function restoreSummarised(transcript: Transcript, count: CountMessages): Promise<JsonObject | undefined> {
  const undone = await undoLatestCompaction(transcript, count)
  if (undone === undefined) return undefined
  const { tokensBefore, tokensAfter, estimated } = undone
  const message = `what the latest summary replaced is in the model's view again: about ${tokensAfter} tokens instead of ${tokensBefore}`
  return { tokensBefore, tokensAfter, estimated, message }
}

/** An archived conversation counts as used now: the next pass does not archive it again. */
async function keepRestored(storage: Storage, { key }: SessionRow): Promise<JsonObject> {
  await storage.transact([{ kind: 'change-session', key, touched: true }])
  return { success: true, key, message: `${key} is in the list again` }
}

/** A row of the list: the record, and what runs. No transcript is opened for it. */
async function listRow({ key, record }: SessionRow, { sessions, agent, storage }: ApiDeps): Promise<JsonObject> {
  const { queued } = sessions.activityOf(key)
  return {
    ...rowOf(key, record),
    state: stateOf(sessions, key),
    queued,
    model: agent.current.modelsFor(record)[0].name,
    ...(await costOf(storage, record.sessionId)),
    ...(await cleanupOf(storage, record)),
  }
}

/** The earlier conversations of a key, newest first. */
function archivedRows({ key, record }: SessionRow, wanted = ''): JsonObject[] {
  return (record.archived ?? [])
    .filter((earlier) => holdsWords(key, earlier, wanted.toLowerCase()))
    .map(({ at, ...earlier }) => ({
      ...earlier,
      key: `${key}#${earlier.sessionId}`,
      of: key,
      updatedAt: at,
      archived: true,
    }))
    .toReversed()
}

/** Conversations that left the index come behind those in it; what follows the word is the archive's own cursor. */
const ARCHIVE_CURSOR = 'archive:'

function isArchiveCursor(cursor: string | undefined): cursor is string {
  return cursor?.startsWith(ARCHIVE_CURSOR) === true
}

async function listArchive(
  { sessions }: Storage,
  query: ListQuery,
  limit: number,
  caller: Caller | undefined,
): Promise<JsonObject> {
  const after = query.cursor?.slice(ARCHIVE_CURSOR.length) ?? ''
  const { rows, next } = await sessions.archived({ limit, after })
  const isBack = await Promise.all(rows.map(async ({ key }) => (await sessions.get(key)) !== undefined))
  const listed = rows
    .filter(({ key, record }, at) => isBack[at] === false && mayUse(caller, record) && isMatch(key, record, query))
    .map(({ key, record }) => ({ ...rowOf(key, record), of: key, archived: true, state: 'archived' }))
  const nextCursor = next === undefined ? {} : { nextCursor: `${ARCHIVE_CURSOR}${next}` }
  return { sessions: listed, count: listed.length, total: await sessions.count(), ...nextCursor }
}

function isMatch(key: SessionKey, record: SessionRecord, { channel, q, prefix }: ListQuery): boolean {
  if (prefix !== undefined && !key.startsWith(prefix)) return false
  if (channel !== undefined && record.lastChannel !== channel) return false
  return q === undefined || holdsWords(key, record, q.toLowerCase())
}

/** What a page of the list is asked for besides its place. */
function filterOf({ state, channel, q, archived }: ListQuery, sessions: Sessions): Omit<SessionQuery, 'limit'> {
  return {
    ...(channel === undefined ? {} : { channel }),
    ...(q === undefined ? {} : { search: q }),
    ...(archived === true ? { archived: true as const } : {}),
    ...(state === undefined ? {} : keysIn(state, sessions)),
  }
}

function keysIn(state: string, sessions: Sessions): Pick<SessionQuery, 'only' | 'without'> {
  const busy = sessions.keys()
  if (state === 'idle') return { without: new Set(busy) }
  return { only: new Set(busy.filter((key) => stateOf(sessions, key) === state)) }
}

function stateOf(sessions: Sessions, key: SessionKey): string {
  const { running, queued } = sessions.activityOf(key)
  return running !== null ? 'running' : queued > 0 ? 'queued' : 'idle'
}

/** One that a caller may not see is as if it were not there. */
async function isSeenBy({ sessions }: Storage, key: SessionKey, caller: Caller | undefined): Promise<boolean> {
  const record = await sessions.get(key)
  return record !== undefined && mayUse(caller, record)
}

function rowOf(key: SessionKey, record: SessionRecord): JsonObject {
  return { key, ...(record as unknown as JsonObject) }
}

/** What cleanups saved, where there were any. */
async function cleanupOf({ usage }: Storage, { sessionId }: SessionRecord): Promise<JsonObject> {
  const totals = await usage.savedBy(sessionId)
  return totals.steps === 0 && totals.netTokensSaved === 0 ? {} : { cleanup: { ...totals } }
}

function messageView(entry: MessageEntry): JsonObject {
  return {
    id: entry.id,
    role: entry.message.role,
    text: textOfMessage(entry.message),
    ...contextOf(entry.message),
    ...endingOf(entry.message),
    timestamp: entry.timestamp,
    ...(entry.stepId === undefined ? {} : { stepId: entry.stepId }),
    ...(entry.round === undefined ? {} : { round: entry.round }),
  }
}

/** How an answer ended, so that a stopped or failed one does not look finished. */
function endingOf(message: Message): JsonObject {
  if (message.role !== 'assistant') return {}
  const { stopReason, errorMessage } = message
  return { stopReason, ...(errorMessage === undefined ? {} : { error: errorMessage }) }
}

/** Apart from the text: the model read it, and the user did not write it. */
function contextOf(message: Message): JsonObject {
  const given: unknown = message.role === 'user' ? message.prependContext : undefined
  return typeof given === 'string' ? { prependContext: given } : {}
}

function textOfMessage(message: Message): string {
  switch (message.role) {
    case 'user':
    case 'custom':
    case 'system':
      return textOf(message.content)
    case 'assistant': {
      const calls = message.content.flatMap((block) =>
        block.type === 'toolCall' ? [`[calls ${block.name} ${JSON.stringify(block.arguments)}]`] : [],
      )
      return [textOf(message.content), ...calls].filter((line) => line !== '').join('\n')
    }
    case 'toolResult':
      return `[${message.toolName}${message.isError ? ', failed' : ''}] ${textOf(message.content)}`
    case 'bashExecution':
      return `$ ${message.command}\n${message.output}`
    case 'compactionSummary':
    case 'branchSummary':
      return message.summary
  }
}

async function usageOf({ usage }: Storage, sessionId: SessionId): Promise<JsonObject> {
  const spent = await usage.ofSession(sessionId)
  return { ...spent, usd: usdOf(spent) }
}

/** Beside a row of a list: what its conversation has used in all. */
async function costOf({ usage }: Storage, sessionId: SessionId): Promise<JsonObject> {
  const spent = await usage.ofSession(sessionId)
  return { tokens: spent.tokens, usd: usdOf(spent) }
}
