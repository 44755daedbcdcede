import { BodyRefused, type ListenOptions, type UpgradeDecision, type UpgradeRequest } from '../base/http.ts'
import { parseForeignJson } from '../base/foreign-json.ts'
import { isRecord, type JsonObject } from '../base/json.ts'
import type { Log } from '../base/log.ts'
import { METRICS_CONTENT_TYPE, type Metrics } from '../base/metrics.ts'
import { hasControlCharacters } from '../channel/id-field.ts'
import type { WebhookChannel } from '../channel/webhook/channel.ts'
import { ERRORS, GatewayError, toGatewayError, type ErrorCode } from '../core/errors.ts'
import { isEphemeralAccount, type Caller } from '../core/inbound.ts'
import type { Access, Principal } from './access.ts'

/** What the HTTP side offers besides the socket: the CLI and the dashboard read and steer through it. */
export interface GatewayApi {
  isOpen(): boolean
  /** Messages have been waiting for a free turn for long: something behind the gateway hangs. */
  isStuck(): boolean
  status(): JsonObject
  /** A caller gets to see what it may; without one it is the operator. */
  list(query: ListQuery, caller?: Caller): Promise<JsonObject>
  show(key: string, query: ShowQuery, caller?: Caller): Promise<JsonObject>
  /** What was asked, done and answered, step by step. */
  steps(key: string, caller?: Caller): Promise<JsonObject>
  /** A tool result as the tool gave it, by the id of a blob, a call or an entry. */
  blob(key: string, id: string, caller?: Caller): Promise<JsonObject>
  reset(key: string, caller?: Caller): Promise<JsonObject>
  cancel(key: string, caller?: Caller): Promise<JsonObject>
  delete(key: string, caller?: Caller): Promise<JsonObject>
  /** Undoes the latest cleanup, or what is named. */
  restore(key: string, what: RestoreQuery, caller?: Caller): Promise<JsonObject>
  /** Accepts what a channel refused because it had changed. */
  trust(channel: string): Promise<JsonObject>
}

export interface ListQuery {
  readonly limit?: number
  readonly cursor?: string
  readonly prefix?: string
}

export interface ShowQuery {
  readonly request?: number
  readonly limit?: number
}

export interface RestoreQuery {
  /** A conversation that was reset. */
  readonly archive?: string
  /** The latest summary instead of the latest cleanup. */
  readonly compaction?: boolean
}

export interface HttpParts {
  readonly access: Access
  readonly api: GatewayApi
  readonly webhook: WebhookChannel
  readonly metrics: Metrics
  readonly log: Log
}

/** What a route is answered from. */
interface Call {
  readonly request: Request
  readonly url: URL
  /** The part of the path that names a session or channel, decoded. */
  readonly name: string
  /** What it is asked about of it, where a route names that too. */
  readonly second: string
  readonly caller: Caller
}

interface Route {
  readonly method: string
  readonly path: RegExp
  /** `admin`: about the gateway itself. `all`: shows something of every conversation. */
  readonly needs?: 'admin' | 'all'
  answer(call: Call): Promise<Response>
}

/** The gateway's one address: health, metrics, the JSON API and the webhook socket. */
export function createHttpHandlers(parts: HttpParts): Pick<ListenOptions, 'handle' | 'upgrade'> {
  const routes = createRoutes(parts)
  return {
    async handle(request, peer) {
      const url = new URL(request.url)
      try {
        if (url.pathname === '/healthz') return health(parts.api)
        const { method, headers } = request
        const access = parts.access.decide({ method, url, headers, peer })
        if (!access.allowed) return json({ error: access.error, code: access.code }, access.status, access.headers)
        return await dispatch(routes, request, url, access.principal)
      } catch (thrown) {
        return errorResponse(thrown, parts.log)
      }
    },
    upgrade: (request) => decideUpgrade(request, parts),
  }
}

function createRoutes({ api, metrics }: HttpParts): readonly Route[] {
  const session = /^\/api\/sessions\/([^/]+)$/u
  const action = (verb: string): RegExp => new RegExp(`^/api/sessions/([^/]+)/${verb}$`, 'u')
  return [
    { method: 'GET', path: /^\/$/u, answer: async () => plain(FRONT_PAGE, 'text/plain; charset=utf-8') },
    {
      method: 'GET',
      path: /^\/metrics$/u,
      needs: 'all',
      answer: async () => plain(metrics.expose(), METRICS_CONTENT_TYPE),
    },
    { method: 'GET', path: /^\/api\/status$/u, needs: 'admin', answer: async () => json(api.status()) },
    {
      method: 'GET',
      path: /^\/api\/sessions$/u,
      answer: async ({ url, caller }) => json(await api.list(listQuery(url), caller)),
    },
    {
      method: 'GET',
      path: session,
      answer: async ({ name, url, caller }) => json(await api.show(name, showQuery(url), caller)),
    },
    {
      method: 'GET',
      path: /^\/api\/sessions\/([^/]+)\/blobs\/([^/]+)$/u,
      answer: async ({ name, second, caller }) => json(await api.blob(name, second, caller)),
    },
    { method: 'GET', path: action('steps'), answer: async ({ name, caller }) => json(await api.steps(name, caller)) },
    { method: 'DELETE', path: session, answer: async ({ name, caller }) => json(await api.delete(name, caller)) },
    { method: 'POST', path: action('reset'), answer: async ({ name, caller }) => json(await api.reset(name, caller)) },
    {
      method: 'POST',
      path: action('cancel'),
      answer: async ({ name, caller }) => json(await api.cancel(name, caller)),
    },
    {
      method: 'POST',
      path: action('restore'),
      answer: async ({ name, request, caller }) => json(await api.restore(name, await restoreQuery(request), caller)),
    },
    {
      method: 'POST',
      path: /^\/api\/channels\/([^/]+)\/trust$/u,
      needs: 'admin',
      answer: async ({ name }) => json(await api.trust(name)),
    },
  ]
}

const FRONT_PAGE = `Clew is running.

  GET /ws          webhook channel (WebSocket): send {"id":"msg-1","content":"hello"}
  GET /healthz     200 once messages are accepted
  GET /metrics     Prometheus
  GET /api/status  what runs

In a terminal: clew chat
`

async function dispatch(routes: readonly Route[], request: Request, url: URL, principal: Principal): Promise<Response> {
  const methods: string[] = []
  for (const route of routes) {
    const match = route.path.exec(url.pathname)
    if (match === null) continue
    if (route.method !== request.method) {
      methods.push(route.method)
      continue
    }
    checkRight(route, principal)
    // A principal without a name sees everything: whose it is does not matter.
    const caller: Caller = { owner: principal.name ?? '', sees: principal.sees }
    return route.answer({ request, url, name: decodeKey(match[1] ?? ''), second: decodeKey(match[2] ?? ''), caller })
  }
  if (url.pathname === '/ws') return json({ error: 'open a WebSocket here', code: 'UPGRADE_REQUIRED' }, 426)
  if (methods.length === 0) return json({ error: 'there is nothing at this address', code: 'NOT_FOUND' }, 404)
  const allowed = methods.join(', ')
  return json({ error: `only ${allowed} here`, code: 'METHOD_NOT_ALLOWED' }, 405, { allow: allowed })
}

function checkRight({ needs }: Route, { admin, sees }: Principal): void {
  if (needs === undefined || admin || (needs === 'all' && sees === 'all')) return
  throw new GatewayError('FORBIDDEN', 'this token may not see the gateway itself; see listen.tokens and "admin"')
}

/** 200 as long as messages are accepted; `degraded` says that they are not answered in time. */
function health(api: GatewayApi): Response {
  if (!api.isOpen()) return json({ status: 'unavailable' }, 503)
  return json({ status: api.isStuck() ? 'degraded' : 'ok' }, 200)
}

function decideUpgrade(request: UpgradeRequest, { access, api, webhook }: HttpParts): UpgradeDecision {
  const refuse = (
    status: number,
    error: string,
    code: string,
    headers: Readonly<Record<string, string>> = {},
  ): UpgradeDecision => ({
    accept: false,
    status,
    body: JSON.stringify({ error, code }),
    headers: { 'content-type': 'application/json', ...headers },
  })
  const decision = access.decide({ ...request, method: 'GET' })
  if (!decision.allowed) return refuse(decision.status, decision.error, decision.code, decision.headers)
  if (request.url.pathname !== '/ws') return refuse(404, 'the socket is at /ws', 'NOT_FOUND')
  if (!api.isOpen()) return refuse(503, 'the gateway is not accepting connections right now', 'SHUTTING_DOWN')
  if (webhook.isFull) return refuse(503, 'too many connections', 'RATE_LIMITED')
  const query = request.url.searchParams
  const uid = query.get('uid')?.trim() ?? ''
  if (uid.length > MAX_UID_CHARS) return refuse(400, `uid has more than ${MAX_UID_CHARS} characters`, 'FIELD_INVALID')
  if (hasControlCharacters(uid)) return refuse(400, 'uid holds a control character', 'FIELD_INVALID')
  if (isEphemeralAccount(uid)) return refuse(400, 'a uid of this form is made by the gateway itself', 'FIELD_INVALID')
  const identity = access.identify(decision.principal, uid)
  if (identity === 'taken') return refuse(400, 'this uid is the name of a token', 'FIELD_INVALID')
  const resume = query.get('resume')
  if (resume !== null && !/^\d{1,15}$/u.test(resume))
    return refuse(400, 'resume must be a whole number', 'FIELD_INVALID')
  return {
    accept: true,
    opened: (socket) => {
      webhook.connect(socket, {
        ...identity,
        ...(resume === null ? {} : { resume: Number(resume) }),
        stream: isTruthy(query.get('stream')),
      })
    },
  }
}

const MAX_UID_CHARS = 256

function isTruthy(value: string | null): boolean {
  return value === '1' || value === 'true'
}

function listQuery(url: URL): ListQuery {
  const limit = wholeNumber(url, 'limit')
  const cursor = url.searchParams.get('cursor')
  const prefix = url.searchParams.get('prefix')
  return {
    ...(limit === undefined ? {} : { limit }),
    ...(cursor === null ? {} : { cursor }),
    ...(prefix === null ? {} : { prefix }),
  }
}

function showQuery(url: URL): ShowQuery {
  const request = wholeNumber(url, 'request')
  const limit = wholeNumber(url, 'limit')
  return { ...(request === undefined ? {} : { request }), ...(limit === undefined ? {} : { limit }) }
}

function wholeNumber(url: URL, name: string): number | undefined {
  const value = url.searchParams.get(name)
  if (value === null) return undefined
  if (!/^[1-9]\d{0,8}$/u.test(value))
    throw new GatewayError('FIELD_INVALID', `${name} must be a whole number above 0`, { field: name })
  return Number(value)
}

/** A body that is not understood restores nothing: the default would be something else than what was meant. */
async function restoreQuery(request: Request): Promise<RestoreQuery> {
  const text = await request.text()
  const body = text === '' ? {} : parseForeignJson(text)
  if (!isRecord(body)) throw new GatewayError('FIELD_INVALID', 'the body must be a JSON object', { field: 'body' })
  const { archive, compaction } = body
  if (archive !== undefined && typeof archive !== 'string')
    throw new GatewayError('FIELD_INVALID', 'archive must be the id of a conversation', { field: 'archive' })
  if (compaction !== undefined && typeof compaction !== 'boolean')
    throw new GatewayError('FIELD_INVALID', 'compaction must be true or false', { field: 'compaction' })
  if (archive !== undefined && compaction === true)
    throw new GatewayError('FIELD_INVALID', 'either archive or compaction, not both', { field: 'compaction' })
  return { ...(archive === undefined ? {} : { archive }), ...(compaction === undefined ? {} : { compaction }) }
}

function decodeKey(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    throw new GatewayError('FIELD_INVALID', 'the key in the address is not encoded correctly', { field: 'key' })
  }
}

const STATUS_OF: { readonly [code in ErrorCode]?: number } = {
  SESSION_NOT_FOUND: 404,
  BLOB_NOT_FOUND: 404,
  FIELD_INVALID: 400,
  FORBIDDEN: 403,
  SHUTTING_DOWN: 503,
  QUEUE_FULL: 503,
  SESSION_LIMIT: 503,
  RATE_LIMITED: 429,
}

function errorResponse(thrown: unknown, log: Log): Response {
  if (thrown instanceof BodyRefused) {
    const code = thrown.status === 413 ? 'FRAME_TOO_LARGE' : 'RATE_LIMITED'
    return json({ error: thrown.message, code }, thrown.status, retryAfter(thrown.status))
  }
  const error = toGatewayError(thrown)
  const status = STATUS_OF[error.code] ?? (ERRORS[error.code].kind === 'caller' ? 400 : 500)
  if (status === 500)
    log.error('a request could not be answered', {
      code: error.code,
      cause: error.cause instanceof Error ? error.cause.name : undefined,
    })
  return json({ error: error.message, code: error.code }, status, retryAfter(status))
}

function retryAfter(status: number): Readonly<Record<string, string>> {
  return status === 429 || status === 503 ? { 'retry-after': '1' } : {}
}

function plain(text: string, type: string): Response {
  return new Response(text, { headers: { 'content-type': type } })
}

function json(body: JsonObject, status = 200, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(`${JSON.stringify(body)}\n`, {
    status,
    headers: {
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      ...headers,
    },
  })
}
