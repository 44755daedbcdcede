import type { ListenOptions, UpgradeDecision, UpgradeRequest } from '../base/http.ts'
import { isRecord, parseJson, type JsonObject } from '../base/json.ts'
import type { Log } from '../base/log.ts'
import { METRICS_CONTENT_TYPE, type Metrics } from '../base/metrics.ts'
import type { WebhookChannel } from '../channel/webhook/channel.ts'
import { ERRORS, GatewayError, toGatewayError, type ErrorCode } from '../core/errors.ts'
import { isEphemeralAccount } from '../core/inbound.ts'
import { checkAccess, type AccessRules } from './access.ts'

/** What the HTTP side offers besides the socket: the CLI and the dashboard read and steer through it. */
export interface GatewayApi {
  isOpen(): boolean
  status(): JsonObject
  list(query: { readonly limit?: number; readonly cursor?: string; readonly prefix?: string }): Promise<JsonObject>
  show(key: string, query: { readonly request?: number; readonly limit?: number }): Promise<JsonObject>
  /** A tool result as the tool gave it, by the id of a blob, a call or an entry. */
  blob(key: string, id: string): Promise<JsonObject>
  reset(key: string): Promise<JsonObject>
  cancel(key: string): Promise<JsonObject>
  delete(key: string): Promise<JsonObject>
  /** Undoes the latest cleanup, or what is named. */
  restore(key: string, what: RestoreQuery): Promise<JsonObject>
  /** Accepts what a channel refused because it had changed. */
  trust(channel: string): Promise<JsonObject>
}

export interface RestoreQuery {
  /** A conversation that was reset. */
  readonly archive?: string
  /** The latest summary instead of the latest cleanup. */
  readonly compaction?: boolean
}

export interface HttpParts {
  readonly access: AccessRules
  readonly api: GatewayApi
  readonly webhook: WebhookChannel
  readonly metrics: Metrics
  readonly log: Log
}

type Route = (request: Request, match: RegExpExecArray, url: URL) => Promise<Response>

/** The gateway's one address: health, metrics, the JSON API and the webhook socket. */
export function createHttpHandlers(parts: HttpParts): Pick<ListenOptions, 'handle' | 'upgrade'> {
  const routes = createRoutes(parts)
  return {
    async handle(request) {
      const url = new URL(request.url)
      try {
        if (url.pathname === '/healthz') return health(parts.api.isOpen())
        const access = checkAccess({ url, headers: request.headers }, parts.access)
        if (!access.allowed) return json({ error: access.error, code: access.code }, access.status)
        return await dispatch(routes, request, url)
      } catch (thrown) {
        return errorResponse(thrown, parts.log)
      }
    },
    upgrade: (request) => decideUpgrade(request, parts),
  }
}

function createRoutes({ api, metrics }: HttpParts): readonly [method: string, path: RegExp, route: Route][] {
  const keyOf = (match: RegExpExecArray): string => decodeKey(match[1] ?? '')
  return [
    [
      'GET',
      /^\/$/u,
      async () => new Response(FRONT_PAGE, { headers: { 'content-type': 'text/plain; charset=utf-8' } }),
    ],
    [
      'GET',
      /^\/metrics$/u,
      async () => new Response(metrics.expose(), { headers: { 'content-type': METRICS_CONTENT_TYPE } }),
    ],
    ['GET', /^\/api\/status$/u, async () => json(api.status())],
    ['GET', /^\/api\/sessions$/u, async (_request, _match, url) => json(await api.list(listQuery(url)))],
    [
      'GET',
      /^\/api\/sessions\/([^/]+)$/u,
      async (_request, match, url) => json(await api.show(keyOf(match), showQuery(url))),
    ],
    [
      'GET',
      /^\/api\/sessions\/([^/]+)\/blobs\/([^/]+)$/u,
      async (_request, match) => json(await api.blob(keyOf(match), decodeKey(match[2] ?? ''))),
    ],
    ['DELETE', /^\/api\/sessions\/([^/]+)$/u, async (_request, match) => json(await api.delete(keyOf(match)))],
    ['POST', /^\/api\/sessions\/([^/]+)\/reset$/u, async (_request, match) => json(await api.reset(keyOf(match)))],
    ['POST', /^\/api\/sessions\/([^/]+)\/cancel$/u, async (_request, match) => json(await api.cancel(keyOf(match)))],
    ['POST', /^\/api\/channels\/([^/]+)\/trust$/u, async (_request, match) => json(await api.trust(keyOf(match)))],
    [
      'POST',
      /^\/api\/sessions\/([^/]+)\/restore$/u,
      async (request, match) => json(await api.restore(keyOf(match), await restoreQuery(request))),
    ],
  ]
}

const FRONT_PAGE = `Clew is running.

  GET /ws          webhook channel (WebSocket): send {"id":"msg-1","content":"hello"}
  GET /healthz     200 once messages are accepted
  GET /metrics     Prometheus
  GET /api/status  what runs

In a terminal: clew chat
`

async function dispatch(routes: ReturnType<typeof createRoutes>, request: Request, url: URL): Promise<Response> {
  const methods: string[] = []
  for (const [method, path, route] of routes) {
    const match = path.exec(url.pathname)
    if (match === null) continue
    if (method === request.method) return route(request, match, url)
    methods.push(method)
  }
  if (url.pathname === '/ws') return json({ error: 'open a WebSocket here', code: 'UPGRADE_REQUIRED' }, 426)
  if (methods.length === 0) return json({ error: 'there is nothing at this address', code: 'NOT_FOUND' }, 404)
  const allowed = methods.join(', ')
  return json({ error: `only ${allowed} here`, code: 'METHOD_NOT_ALLOWED' }, 405, { allow: allowed })
}

function health(isOpen: boolean): Response {
  return json({ status: isOpen ? 'ok' : 'unavailable' }, isOpen ? 200 : 503)
}

function decideUpgrade(request: UpgradeRequest, { access, api, webhook }: HttpParts): UpgradeDecision {
  const refuse = (status: number, error: string, code: string): UpgradeDecision => ({
    accept: false,
    status,
    body: JSON.stringify({ error, code }),
    headers: { 'content-type': 'application/json' },
  })
  const decision = checkAccess(request, access)
  if (!decision.allowed) return refuse(decision.status, decision.error, decision.code)
  if (request.url.pathname !== '/ws') return refuse(404, 'the socket is at /ws', 'NOT_FOUND')
  if (!api.isOpen()) return refuse(503, 'the gateway is not accepting connections right now', 'SHUTTING_DOWN')
  if (webhook.isFull) return refuse(503, 'too many connections', 'RATE_LIMITED')
  const query = request.url.searchParams
  const uid = query.get('uid')?.trim() ?? ''
  if (uid.length > MAX_UID_CHARS) return refuse(400, `uid has more than ${MAX_UID_CHARS} characters`, 'FIELD_INVALID')
  if (isEphemeralAccount(uid)) return refuse(400, 'a uid of this form is made by the gateway itself', 'FIELD_INVALID')
  const resume = query.get('resume')
  if (resume !== null && !/^\d{1,15}$/u.test(resume))
    return refuse(400, 'resume must be a whole number', 'FIELD_INVALID')
  return {
    accept: true,
    opened: (socket) => {
      webhook.connect(socket, {
        ...(uid === '' ? {} : { uid }),
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

function listQuery(url: URL): { limit?: number; cursor?: string; prefix?: string } {
  const limit = wholeNumber(url, 'limit')
  const cursor = url.searchParams.get('cursor')
  const prefix = url.searchParams.get('prefix')
  return {
    ...(limit === undefined ? {} : { limit: Math.min(limit, 1_000) }),
    ...(cursor === null ? {} : { cursor }),
    ...(prefix === null ? {} : { prefix }),
  }
}

function showQuery(url: URL): { request?: number; limit?: number } {
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
  const body = text === '' ? {} : parseJson(text)
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
  SHUTTING_DOWN: 503,
  QUEUE_FULL: 429,
  RATE_LIMITED: 429,
}

function errorResponse(thrown: unknown, log: Log): Response {
  const error = toGatewayError(thrown)
  const status = STATUS_OF[error.code] ?? (ERRORS[error.code].kind === 'caller' ? 400 : 500)
  if (status === 500)
    log.error('a request could not be answered', {
      code: error.code,
      cause: error.cause instanceof Error ? error.cause.name : undefined,
    })
  return json({ error: error.message, code: error.code }, status)
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
