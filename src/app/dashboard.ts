import type { JsonObject } from '../base/json.ts'
import { NEVER, sleep } from '../base/async.ts'
import type { LinkHistoryRow } from '../channel/channel.ts'
import type { FileLinks } from '../channel/files/file-links.ts'
import { encodeEvent, encodeReply } from '../channel/webhook/codec.ts'
import type { Config } from '../config/config.ts'
import type { Environment } from '../config/environment.ts'
import { checkText, describeValues } from '../config/values.ts'
import type { SessionId, SessionKey } from '../core/ids.ts'
import { type Caller, mayUse } from '../core/inbound.ts'
import { LIVE_LIMITS, LiveEvents } from '../dashboard/live-events.ts'
import type { LogLines } from '../dashboard/log-lines.ts'
import { createPhoneRoutes, type PhoneControls } from '../dashboard/phone-routes.ts'
import { createDashboardRoutes, type DashboardDeps, type OpenedBranch } from '../dashboard/routes.ts'
import { exportText, type ExportFormat } from '../dashboard/export.ts'
import { searchTranscripts, type FoundEntries, type SearchPage, type SearchQuery } from '../dashboard/search.ts'
import { SignIn } from '../dashboard/sign-in.ts'
import { TurnWatch } from '../dashboard/turn-watch.ts'
import type { Principal } from '../gateway/access.ts'
import type { GatewayApi } from '../gateway/http.ts'
import type { Route } from '../gateway/http-routes.ts'
import { choose } from '../session/chosen-settings.ts'
import { findSession } from '../session/find-session.ts'
import { findInFile } from '../transcript/find-in-file.ts'
import type { LiveAgent } from './agent.ts'
import type { HomePaths } from './home.ts'
import type { Platform } from './platform.ts'
import { testProvider } from './provider-test.ts'
import type { SessionRow, Storage } from '../storage/storage.ts'
import { VisibleSessions } from './visible-sessions.ts'

/** The pages' side of a running gateway. */
export interface Dashboard {
  readonly routes: readonly Route[]
  readonly watch: TurnWatch
  readonly signIn: SignIn<Principal>
  /** For commands on a stopped gateway's files. */
  search(query: SearchQuery): Promise<JsonObject>
  exportTo(key: string, format: ExportFormat, write: (piece: string) => void): Promise<void>
  /** A channel's link opened, went down or tries again. */
  linkChanged(channel: string, row: LinkHistoryRow): void
  close(): void
}

const OPERATOR: Caller = { owner: '', sees: 'all' }

export interface DashboardOptions {
  config(): Config
  readonly paths: HomePaths
  readonly storage: Storage
  readonly agent: LiveAgent
  readonly api: GatewayApi
  readonly links: FileLinks
  readonly logs: LogLines
  readonly env: Environment
  /** While XiaoYi is simulated. */
  readonly phone?: PhoneControls
  /** Whether this node works on the run. */
  isRunning(key: SessionKey, run: string): boolean
  /** What changes often in the status; the page has the rest. */
  status(): Promise<JsonObject>
}

const SEARCHED_AT_ONCE = 20

export function createDashboard(platform: Platform, options: DashboardOptions): Dashboard {
  const { storage, api, logs } = options
  const { clock, ids } = platform
  const visible = new VisibleSessions(storage, () => live.isFollowed)
  const status = async (): Promise<JsonObject> => ({
    ...(await options.status()),
    turns: watch.running(),
    rates: watch.rates(),
  })
  const live = new LiveEvents(
    { clock, heartbeat: status },
    { ...LIVE_LIMITS, streams: options.config().limits.live_streams },
  )
  const watch = new TurnWatch({
    clock,
    live,
    row: (key) => api.row(key),
    status,
    isRunning: (key, run) => options.isRunning(key, run),
    frameOf: (event) => frame(encodeEvent(event, { session: event.session, messageId: '', runId: event.run, seq: 0 })),
    replyFrame: (reply) => frame(encodeReply(reply, (id) => options.links.urlOf(id))) ?? { type: 'complete' },
  })
  logs.live = live
  const signIn = new SignIn<Principal>({ clock, ids })
  const questions = questionsOf(platform, options, watch)
  const deps: DashboardDeps = {
    ...questions,
    live,
    watch,
    signIn,
    logs,
    maySee: (key, caller) => visible.maySee(key, caller),
    mayOpen: (key, caller) => visible.mayOpen(key, caller),
  }
  return {
    routes: [...createDashboardRoutes(deps), ...(options.phone === undefined ? [] : createPhoneRoutes(options.phone))],
    watch,
    signIn,
    search: (query) => questions.search(query, OPERATOR),
    async exportTo(key, format, write) {
      if (format !== 'jsonl') {
        const { entries, title } = await openBranch(key, OPERATOR, options)
        return write(exportText(entries, title, format))
      }
      const decoder = new TextDecoder()
      for await (const piece of await storedLines(key, OPERATOR, options))
        write(decoder.decode(piece, { stream: true }))
    },
    linkChanged: (channel, row) => live.emit('link', { channel, ...row }),
    close: () => {
      visible.close()
      watch.close()
    },
  }
}

type Questions = Omit<DashboardDeps, 'live' | 'watch' | 'signIn' | 'logs' | 'maySee' | 'mayOpen'>

/** What pages ask about conversations, models and the configuration. */
function questionsOf(platform: Platform, options: DashboardOptions, watch: TurnWatch): Questions {
  return {
    branch: (key, caller) => openBranch(key, caller, options),
    undelivered: async (key) => {
      const now = platform.clock.now()
      return (await options.storage.outbox.undeliveredOf(key)).flatMap(({ message, state, endedAt }) =>
        state === 'waiting' || state === 'unknown'
          ? [
              {
                stepId: message.run,
                channel: message.channel,
                state,
                ageMs: Math.max(0, now - (endedAt ?? message.acceptedAt)),
              },
            ]
          : [],
      )
    },
    provider: (ref) => options.agent.current.providers.resolve(ref).provider,
    pause: () => sleep(platform.clock, 0, NEVER),
    lines: (key, caller) => storedLines(key, caller, options),
    rename: (key, title, caller) => rename(key, title, caller, options, watch),
    models: () => modelRows(options.agent),
    chooseModel: (key, model, caller) => chooseModel(key, model, caller, options, watch),
    testProvider: (body, signal) => testProvider(body, platform, signal),
    search: (query, caller) =>
      searchTranscripts(query, {
        clock: platform.clock,
        sessions: (cursor) => searchRows(options, cursor, caller),
        find: (sessionId, wanted, before) => findEntries(platform, options, { sessionId, wanted, before }),
      }),
    config: () => describeValues(platform.files, options.paths.config, options.config(), options.env),
    checkConfig: async (text) => checkText(text, options.env),
  }
}

/** A frame of the webhook wire without its address: the event that carries it has one of its own. */
function frame(text: string | undefined): JsonObject | undefined {
  if (text === undefined) return undefined
  const { session: _s, runId: _r, seq: _q, messageId: _m, ...rest } = JSON.parse(text) as JsonObject
  return rest
}

async function findRow(
  { storage }: DashboardOptions,
  key: string,
  caller: Caller,
): Promise<{ key: SessionKey; sessionId: SessionId; title: string }> {
  if (await storage.sessions.hasArchived()) await storage.sessions.bringBack(key)
  const earlier = await findEarlier(storage, key, caller)
  if (earlier !== undefined) return earlier
  const row = await findSession(storage, { key, sessionId: key }, caller)
  return { key: row.key, sessionId: row.record.sessionId, title: row.record.title ?? row.key }
}

/** An earlier conversation of a key, under the name that the list gives it. */
async function findEarlier(
  storage: Storage,
  name: string,
  caller: Caller,
): Promise<{ key: SessionKey; sessionId: SessionId; title: string } | undefined> {
  const [, key, id] = /^(.+)#(sess_\w+)$/su.exec(name) ?? []
  if (key === undefined || (await storage.sessions.resolve(name)) !== undefined) return undefined
  const row = await findSession(storage, { key }, caller)
  const found = row.record.archived?.find(({ sessionId }) => sessionId === id)
  return found === undefined ? undefined : { key: row.key, sessionId: found.sessionId, title: found.title ?? row.key }
}

async function openBranch(key: string, caller: Caller, options: DashboardOptions): Promise<OpenedBranch> {
  const row = await findRow(options, key, caller)
  return { ...row, entries: (await branchOf(options, row.sessionId)).entries }
}

async function branchOf({ storage }: DashboardOptions, sessionId: SessionId): Promise<Pick<OpenedBranch, 'entries'>> {
  const transcript = await storage.transcripts.open(sessionId, NEVER)
  try {
    return { entries: await transcript.branch() }
  } finally {
    await transcript.close()
  }
}

/** The transcript's lines, in file order. */
async function storedLines(
  key: string,
  caller: Caller,
  options: DashboardOptions,
): Promise<ReadableStream<Uint8Array>> {
  const { sessionId } = await findRow(options, key, caller)
  const transcript = await options.storage.transcripts.open(sessionId, NEVER)
  const encoder = new TextEncoder()
  const entries = transcript.entries()[Symbol.asyncIterator]()
  let isHeaderSent = false
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (!isHeaderSent) {
        isHeaderSent = true
        return controller.enqueue(encoder.encode(`${JSON.stringify(transcript.header)}\n`))
      }
      const { done, value } = await entries.next()
      if (done === true) {
        await transcript.close()
        return controller.close()
      }
      controller.enqueue(encoder.encode(`${JSON.stringify(value.type === 'unknown' ? value.raw : value)}\n`))
    },
    async cancel() {
      await entries.return?.()
      await transcript.close()
    },
  })
}

async function rename(
  key: string,
  title: string,
  caller: Caller,
  options: DashboardOptions,
  watch: TurnWatch,
): Promise<JsonObject> {
  const row = await findRow(options, key, caller)
  const { transcripts } = options.storage
  const transcript = await transcripts.open(row.sessionId, NEVER)
  try {
    await transcript.append([{ type: 'session_info', name: title }], {
      changes: [{ kind: 'change-session', key: row.key, fields: { title } }],
    })
  } finally {
    await transcript.close()
  }
  watch.changed(row.key)
  return { success: true, key: row.key, title }
}

function modelRows({ current: { providers } }: LiveAgent): readonly JsonObject[] {
  return providers.list().map(({ ref, info }) => ({
    ref,
    contextWindow: info.contextWindow,
    price: info.isPriced ? { ...info.prices } : null,
    images: info.images,
    reasoning: info.thinking,
  }))
}

async function chooseModel(
  key: string,
  model: string | null,
  caller: Caller,
  { storage, agent, ...rest }: DashboardOptions,
  watch: TurnWatch,
): Promise<JsonObject> {
  const row = await findRow({ storage, agent, ...rest }, key, caller)
  const resolved = model === null ? undefined : agent.current.providers.resolve(model)
  const [provider = '', ...name] = resolved?.ref.split('/') ?? []
  await choose(
    storage,
    row.key,
    resolved === undefined ? {} : { providerOverride: provider, modelOverride: name.join('/') },
  )
  watch.changed(row.key)
  return { success: true, key: row.key, model: resolved?.ref ?? null }
}

/** How much of a transcript is looked at before the search asks for the time. */
const SEARCHED_BYTES = 4 * 1024 * 1024

/** In the transcript's file where there is one; another storage, or a file of an older format, is opened as a whole. */
async function findEntries(
  { files }: Platform,
  options: DashboardOptions,
  { sessionId, wanted, before }: { sessionId: SessionId; wanted: string; before: number | undefined },
): Promise<FoundEntries> {
  const path = `${options.paths.transcripts}/${sessionId}.jsonl`
  const limits = { wanted, maxBytes: SEARCHED_BYTES, ...(before === undefined ? {} : { before }) }
  const found = await findInFile(files, path, limits).catch(() => undefined)
  if (found !== undefined) return found
  const entries = (await branchOf(options, sessionId).catch(() => undefined))?.entries ?? []
  const newestFirst = entries.map((entry, offset) => ({ entry, offset: offset + 1 })).toReversed()
  return { found: newestFirst.filter(({ offset }) => before === undefined || offset < before), rest: 0 }
}

/** Conversations that left the index come last; what follows the word is the archive's own cursor. */
const ARCHIVE_CURSOR = 'archive:'

async function searchRows(
  { storage }: DashboardOptions,
  cursor: string | undefined,
  caller: Caller,
): Promise<SearchPage> {
  const { sessions } = storage
  if (cursor?.startsWith(ARCHIVE_CURSOR) === true) {
    const page = await sessions.archived({ limit: SEARCHED_AT_ONCE, after: cursor.slice(ARCHIVE_CURSOR.length) })
    const isBack = await Promise.all(page.rows.map(async ({ key }) => (await sessions.get(key)) !== undefined))
    const rows = page.rows.filter(({ record }, at) => isBack[at] === false && mayUse(caller, record))
    const next = page.next === undefined ? undefined : ARCHIVE_CURSOR + page.next
    return { rows: rows.map(searchRow), next, total: 0 }
  }
  const page = await sessions.list({ limit: SEARCHED_AT_ONCE, caller, ...(cursor === undefined ? {} : { cursor }) })
  const next = page.nextCursor ?? ((await sessions.hasArchived()) ? ARCHIVE_CURSOR : undefined)
  return { rows: page.sessions.map(searchRow), next, total: page.total }
}

function searchRow({ key, record }: SessionRow): SearchPage['rows'][number] {
  return { key, sessionId: record.sessionId }
}
