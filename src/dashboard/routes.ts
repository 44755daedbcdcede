import type { JsonObject } from '../base/json.ts'
import { runSlices, type Slices } from '../base/loop-work.ts'
import type { Entry } from '../core/entry.ts'
import { GatewayError } from '../core/errors.ts'
import type { SessionKey } from '../core/ids.ts'
import type { Caller } from '../core/inbound.ts'
import type { Principal } from '../gateway/access.ts'
import { eventStream, json, jsonBody, pageOf, wholeNumber, type Call, type Route } from '../gateway/http-routes.ts'
import type { FindProvider } from '../turn/rebuild-request.ts'
import { EXPORT_FORMATS, EXPORT_TYPES, exportText, isExportFormat } from './export.ts'
import type { LiveEvents } from './live-events.ts'
import { isLogLevel, type LogLines } from './log-lines.ts'
import { entryImage, entryView, messagePage, type UndeliveredAnswer } from './message-views.ts'
import { requestDetail, requestRows } from './request-views.ts'
import type { SearchQuery } from './search.ts'
import { COOKIE_NAME, type SignIn } from './sign-in.ts'
import type { TurnWatch } from './turn-watch.ts'

/** What the pages read and change, of whatever stores and runs conversations. */
export interface DashboardDeps {
  readonly live: LiveEvents
  readonly watch: TurnWatch
  readonly signIn: SignIn<Principal>
  readonly logs: LogLines
  /** The conversation's path from its first entry to its last; throws for one the caller may not see. */
  branch(key: string, caller: Caller): Promise<OpenedBranch>
  /** Answers of the conversation that their recipient may not have. */
  undelivered(key: SessionKey): Promise<readonly UndeliveredAnswer[]>
  /** Who got a past request; throws for a model that is no longer configured. */
  readonly provider: FindProvider
  /** The stored lines as they are, for an export. */
  lines(key: string, caller: Caller): Promise<ReadableStream<Uint8Array>>
  /** Lets others have their turn. */
  pause(): Promise<void>
  rename(key: string, title: string, caller: Caller): Promise<JsonObject>
  models(): readonly JsonObject[]
  chooseModel(key: string, model: string | null, caller: Caller): Promise<JsonObject>
  testProvider(body: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<JsonObject>
  search(query: SearchQuery, caller: Caller): Promise<JsonObject>
  config(): Promise<JsonObject>
  checkConfig(text: string): Promise<JsonObject>
  maySee(key: string, caller: Caller): boolean
  /** The same for a conversation that is asked for by its name, whether it was in use lately or not. */
  mayOpen(key: string, caller: Caller): Promise<boolean>
}

export interface OpenedBranch {
  readonly key: SessionKey
  readonly sessionId: string
  readonly title: string
  readonly entries: readonly Entry[]
}

const MAX_MESSAGES = 500
const MAX_REQUESTS = 1_000
const MAX_HITS = 200
const MAX_MODELS = 1_000
const MAX_LOG_LINES = 1_000
const MAX_CONFIG_CHARS = 1024 * 1024

export function createDashboardRoutes(deps: DashboardDeps): readonly Route[] {
  return [...accessRoutes(deps), ...sessionRoutes(deps), ...gatewayRoutes(deps)]
}

const of = (rest: string): RegExp => new RegExp(`^/api/sessions/([^/]+)/${rest}$`, 'u')

function sessionRoutes(deps: DashboardDeps): readonly Route[] {
  return [
    {
      method: 'GET',
      path: of('messages'),
      answer: async ({ name, url, caller }) => {
        const { key, entries } = await deps.branch(name, caller)
        return json(messagePage(entries, pageQuery(url), await deps.undelivered(key)))
      },
    },
    {
      method: 'GET',
      path: of('entries/([^/]+)'),
      answer: async ({ name, second, caller }) => json(entryView((await deps.branch(name, caller)).entries, second)),
    },
    {
      method: 'GET',
      path: of('entries/([^/]+)/images'),
      answer: async ({ name, second, url, caller }) =>
        picture(entryImage((await deps.branch(name, caller)).entries, second, wholeNumber(url, 'n', 0) ?? 0)),
    },
    {
      method: 'GET',
      path: of('requests'),
      answer: async ({ name, url, caller }) => {
        const after = wholeNumber(url, 'after') ?? wholeNumber(url, 'cursor') ?? 0
        const limit = Math.min(wholeNumber(url, 'limit') ?? 200, MAX_REQUESTS)
        const { entries } = await deps.branch(name, caller)
        return json(await inSlices(requestRows(entries, { after, limit }), deps))
      },
    },
    {
      method: 'GET',
      path: of('requests/([^/]+)'),
      answer: async ({ name, second, url, caller }) => {
        const { entries, sessionId } = await deps.branch(name, caller)
        if (!/^[1-9]\d{0,8}$/u.test(second))
          throw new GatewayError('ENTRY_NOT_FOUND', 'requests are named by their number, from 1', { field: 'n' })
        const n = Number(second)
        const withBody = url.searchParams.get('body') === '1'
        return json(await inSlices(requestDetail(entries, n, { sessionId, find: deps.provider, withBody }), deps))
      },
    },
    { method: 'GET', path: of('export'), answer: (call) => exported(call, deps) },
    {
      method: 'PATCH',
      path: /^\/api\/sessions\/([^/]+)$/u,
      answer: async ({ name, request, caller }) => json(await deps.rename(name, await titleIn(request), caller)),
    },
    {
      method: 'POST',
      path: of('model'),
      answer: async ({ name, request, caller }) => {
        const { model } = await jsonBody(request)
        if (model !== null && typeof model !== 'string')
          throw new GatewayError('FIELD_INVALID', 'model must be a model, or null for the default', { field: 'model' })
        return json(await deps.chooseModel(name, model, caller))
      },
    },
  ]
}

/** Requests of a long conversation are read a little at a time. */
function inSlices<T>(slices: Slices<T>, { pause }: Pick<DashboardDeps, 'pause'>): Promise<T> {
  return runSlices(slices, 'dashboard', pause)
}

function picture({ mimeType, bytes }: ReturnType<typeof entryImage>): Response {
  return new Response(bytes, {
    headers: {
      'content-type': mimeType,
      'cache-control': 'private, max-age=3600',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; sandbox",
    },
  })
}

function gatewayRoutes(deps: DashboardDeps): readonly Route[] {
  return [
    { method: 'GET', path: /^\/api\/events$/u, answer: async (call) => openEvents(call, deps) },
    {
      method: 'GET',
      path: /^\/api\/models$/u,
      answer: async ({ url }) => json(pageOf(url, 'models', deps.models(), MAX_MODELS)),
    },
    {
      method: 'GET',
      path: /^\/api\/search$/u,
      answer: async ({ url, caller }) => {
        const cursor = url.searchParams.get('cursor')
        const limit = Math.min(wholeNumber(url, 'limit') ?? 50, MAX_HITS)
        const text = (url.searchParams.get('q') ?? '').slice(0, 1_000)
        return json(await deps.search({ text, limit, ...(cursor === null ? {} : { cursor }) }, caller))
      },
    },
    {
      method: 'POST',
      path: /^\/api\/providers\/test$/u,
      needs: 'admin',
      answer: async ({ request }) => json(await deps.testProvider(await jsonBody(request), request.signal)),
    },
    { method: 'GET', path: /^\/api\/config$/u, needs: 'admin', answer: async () => json(await deps.config()) },
    {
      method: 'POST',
      path: /^\/api\/config\/check$/u,
      needs: 'admin',
      answer: async ({ request }) => {
        const { text } = await jsonBody(request)
        if (typeof text !== 'string' || text.length > MAX_CONFIG_CHARS)
          throw new GatewayError('FIELD_INVALID', 'text must be the text of a configuration file', { field: 'text' })
        return json(await deps.checkConfig(text))
      },
    },
    {
      method: 'GET',
      path: /^\/api\/logs$/u,
      needs: 'admin',
      answer: async ({ url }) => {
        const level = url.searchParams.get('level') ?? 'debug'
        if (!isLogLevel(level))
          throw new GatewayError('FIELD_INVALID', 'level must be debug, info, warn or error', { field: 'level' })
        return json(deps.logs.latest(level, wholeNumber(url, 'limit') ?? MAX_LOG_LINES, wholeNumber(url, 'cursor', 0)))
      },
    },
  ]
}

function accessRoutes({ signIn }: Pick<DashboardDeps, 'signIn'>): readonly Route[] {
  return [
    {
      method: 'GET',
      path: /^\/api\/me$/u,
      answer: async ({ request, principal }) => {
        const expiresAt = signIn.holderOf(request.headers)?.expiresAt
        return json({
          account: principal.name ?? 'local',
          admin: principal.admin,
          expiresAt: expiresAt === undefined ? null : new Date(expiresAt).toISOString(),
        })
      },
    },
    {
      method: 'POST',
      path: /^\/api\/codes$/u,
      needs: 'admin',
      answer: async ({ principal }) => json({ code: signIn.createCode(principal) }, 201),
    },
    {
      method: 'POST',
      path: /^\/api\/logout$/u,
      answer: async ({ request }) => {
        signIn.signOut(request.headers)
        return json({ success: true }, 200, { 'set-cookie': cookie('', 0, request) })
      },
    },
  ]
}

/** Code or token buy a cookie; whichever it was is never stored in the page. */
export async function answerSignIn(
  request: Request,
  signIn: SignIn<Principal>,
  principalOf: (token: string) => Principal | undefined,
): Promise<Response> {
  const { code, token } = await jsonBody(request)
  const principal =
    typeof code === 'string' ? signIn.spend(code) : typeof token === 'string' ? principalOf(token) : undefined
  if (principal === undefined)
    return json({ error: 'the code or token is wrong, too old, or was used', code: 'UNAUTHORIZED' }, 401)
  const { value, maxAgeSeconds } = signIn.createCookie(principal)
  return json({ success: true }, 200, { 'set-cookie': cookie(value, maxAgeSeconds, request) })
}

function cookie(value: string, maxAgeSeconds: number, request: Request): string {
  const secure = isByHttps(request) ? '; Secure' : ''
  return `${COOKIE_NAME}=${value}; HttpOnly; SameSite=Strict; Path=/; Max-Age=${maxAgeSeconds}${secure}`
}

/** Behind a proxy that ends https, only the page's origin says how the browser came. */
function isByHttps({ url, headers }: Request): boolean {
  return new URL(url).protocol === 'https:' || headers.get('origin')?.startsWith('https:') === true
}

async function openEvents(
  { url, request, caller, principal }: Call,
  { live, watch, maySee, mayOpen }: DashboardDeps,
): Promise<Response> {
  if (live.isFull)
    return json({ error: 'too many event streams are open', code: 'RATE_LIMITED' }, 503, { 'retry-after': '5' })
  const session = url.searchParams.get('session') ?? undefined
  const since = sinceIn(url, request.headers)
  const shown = session !== undefined && (await mayOpen(session, caller)) ? session : undefined
  const options = {
    ...(shown === undefined ? {} : { session: shown }),
    ...(since === undefined ? {} : { since }),
    admin: principal.admin,
    logs: principal.admin && url.searchParams.get('logs') === '1',
    maySee: (key: string) => maySee(key, caller),
  }
  const first = (shown === undefined ? [] : watch.soFar(shown)).map((data) => ({ name: 'turn' as const, data }))
  return eventStream(live.open(options, first))
}

/** A browser that reconnects by itself says in a header what it saw last. */
function sinceIn(url: URL, headers: Headers): number | undefined {
  const value = headers.get('last-event-id') ?? url.searchParams.get('since')
  if (value === null || value === '') return undefined
  if (!/^\d{1,15}$/u.test(value)) throw new GatewayError('FIELD_INVALID', 'since must be a number', { field: 'since' })
  return Number(value)
}

function pageQuery(url: URL): { before?: string; after?: string; limit: number } {
  const before = url.searchParams.get('before')
  const after = url.searchParams.get('after')
  return {
    ...(before === null ? {} : { before }),
    ...(after === null ? {} : { after }),
    limit: Math.min(wholeNumber(url, 'limit') ?? 100, MAX_MESSAGES),
  }
}

async function exported({ name, url, caller }: Call, deps: DashboardDeps): Promise<Response> {
  const format = url.searchParams.get('format') ?? 'jsonl'
  if (!isExportFormat(format))
    throw new GatewayError('FIELD_INVALID', `format must be one of ${EXPORT_FORMATS.join(', ')}`, { field: 'format' })
  const { entries, title, key } = await deps.branch(name, caller)
  const body = format === 'jsonl' ? await deps.lines(name, caller) : exportText(entries, title, format)
  return new Response(body, {
    headers: {
      'content-type': EXPORT_TYPES[format],
      'content-disposition': `attachment; filename="${fileName(key)}.${format}"`,
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    },
  })
}

function fileName(key: string): string {
  return key.replaceAll(/[^\w.-]+/gu, '_').slice(0, 80)
}

const MAX_TITLE_CHARS = 200

async function titleIn(request: Request): Promise<string> {
  const { title } = await jsonBody(request)
  if (typeof title !== 'string' || title.trim() === '' || title.length > MAX_TITLE_CHARS)
    throw new GatewayError('FIELD_INVALID', `title must be a text of 1 to ${MAX_TITLE_CHARS} characters`, {
      field: 'title',
    })
  return title.trim()
}
