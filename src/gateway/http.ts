import type { ListenOptions, Peer, UpgradeDecision, UpgradeRequest } from '../base/http.ts'
import { isOneOf, type JsonObject } from '../base/json.ts'
import type { Log } from '../base/log.ts'
import { METRICS_CONTENT_TYPE, type Metrics } from '../base/metrics.ts'
import { usageQuery } from './usage-query.ts'
import type { UsageQuery } from '../core/spent.ts'
import type { WebhookChannel } from '../channel/webhook/channel.ts'
import { GatewayError, toGatewayError } from '../core/errors.ts'
import type { SessionKey } from '../core/ids.ts'
import type { Caller } from '../core/inbound.ts'
import type { Access, Identity } from './access.ts'
import {
  dispatch,
  json,
  jsonBody,
  pageOf,
  plain,
  problemOf,
  retryAfter,
  showProblem,
  wholeNumber,
  wrongMethod,
  type Route,
  type ShowProblem,
} from './http-routes.ts'
import { identityOf } from './sender-identity.ts'

/** What the HTTP side offers besides the socket: the CLI and the dashboard read and steer through it. */
export interface GatewayApi {
  isOpen(): boolean
  /** Not open only because the storage does not answer. */
  isStorageAway(): boolean
  /** Messages have been waiting for a free turn for long: something behind the gateway hangs. */
  isStuck(): boolean
  status(): Promise<JsonObject>
  /** The nodes that share the storage; undefined where this one is alone. */
  cluster(): Promise<JsonObject | undefined>
  /** Reads the configuration again; says what took effect and what needs a restart. */
  reload(): Promise<JsonObject>
  /** What the model is offered, and the servers some of it comes from. */
  tools(): JsonObject
  /** A caller gets to see what it may; without one it is the operator. */
  list(query: ListQuery, caller?: Caller): Promise<JsonObject>
  /** One row of the list as it is now; undefined when there is none. */
  row(key: SessionKey): Promise<JsonObject | undefined>
  show(key: string, query: ShowQuery, caller?: Caller): Promise<JsonObject>
  /** What was asked, done and answered, step by step. */
  steps(key: string, caller?: Caller): Promise<JsonObject>
  /** A tool result as the tool gave it, by the id of a blob, a call or an entry. */
  blob(key: string, id: string, caller?: Caller): Promise<JsonObject>
  /** Tool calls that wait for a person. */
  approvals(caller?: Caller): Promise<JsonObject>
  approve(id: string, approve: boolean, caller?: Caller): Promise<JsonObject>
  reset(key: string, caller?: Caller): Promise<JsonObject>
  cancel(key: string, caller?: Caller): Promise<JsonObject>
  delete(key: string, caller?: Caller): Promise<JsonObject>
  /** Undoes the latest cleanup, or what is named. */
  restore(key: string, what: RestoreQuery, caller?: Caller): Promise<JsonObject>
  /** What requests cost, by time and group. */
  usage(query: UsageQuery): Promise<{ readonly usage: readonly JsonObject[]; readonly pricesDate: string }>
  /** Accepts what a channel refused because it had changed. */
  trust(channel: string): Promise<JsonObject>
  /** What happened to a channel's links, oldest first. */
  linkHistory(channel: string): readonly JsonObject[]
  reconnect(channel: string): JsonObject
}

export interface ListQuery {
  readonly limit?: number
  readonly cursor?: string
  readonly prefix?: string
  /** Only conversations in this state. */
  readonly state?: string
  readonly channel?: string
  /** Only those whose key, title or preview contains it. */
  readonly q?: string
  /** Archived conversations, as rows of their own, instead of present ones. */
  readonly archived?: boolean
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
  /** This cleanup, whichever came after it. */
  readonly cleanup?: string
}

export interface HttpDeps {
  readonly access: Access
  readonly api: GatewayApi
  readonly webhook: WebhookChannel
  readonly metrics: Metrics
  readonly log: Log
  /** Unix ms. */
  now(): number
  /** Routes of other rooms, tried after the gateway's own. */
  readonly routes?: readonly Route[]
  /** Groups of routes that report errors in a form of their own. */
  readonly doors?: readonly Door[]
  /** Buys a cookie with a code or a token; the only way in that needs neither. */
  readonly signIn?: (request: Request, peer: Peer) => Promise<Response>
  /** Files that hold no data and need no token: the page. Undefined when there is none at this address. */
  readonly page?: (request: Request, url: URL) => Promise<Response | undefined>
  /** Answered before access is decided: what everyone may have. Undefined for everything else. */
  readonly open?: (request: Request, url: URL) => Promise<Response | undefined>
}

/** Addresses below which problems have a form of their own. */
export interface Door {
  readonly below: string
  readonly show: ShowProblem
}

/** The gateway's one address: health, metrics, the JSON API and the webhook socket. */
export function createHttpHandlers(deps: HttpDeps): Pick<ListenOptions, 'handle' | 'upgrade'> {
  const routes = [...createRoutes(deps), ...(deps.routes ?? [])]
  return {
    async handle(request, peer) {
      const url = new URL(request.url)
      const show = deps.doors?.find(({ below }) => url.pathname.startsWith(below))?.show ?? showProblem
      try {
        const { method, headers } = request
        if (url.pathname === '/healthz')
          return method === 'GET' || method === 'HEAD' ? health(deps.api) : show(wrongMethod('GET, HEAD'))
        const page = await deps.page?.(request, url)
        if (page !== undefined) return page
        const open = await deps.open?.(request, url)
        if (open !== undefined) return open
        const head = { method, url, headers, peer }
        const signIn = deps.signIn
        if (signIn !== undefined && url.pathname === '/api/login') {
          if (method !== 'POST') return show(wrongMethod('POST'))
          const refusal = deps.access.refusesOrigin(head)
          return refusal === undefined ? await signIn(request, peer) : show(refusal)
        }
        const access = deps.access.decide(head)
        if (!access.allowed) return show(access)
        return await dispatch(routes, request, url, { principal: access.principal, peer }, show)
      } catch (thrown) {
        return show(problemOf(thrown, deps.log))
      }
    },
    upgrade: (request) => decideUpgrade(request, deps),
  }
}

/** Of a month, hour by hour, for a dozen groups. */
const MAX_USAGE_ROWS = 10_000
const MAX_HISTORY_ROWS = 500

function createRoutes({ api, metrics, now }: HttpDeps): readonly Route[] {
  const session = /^\/api\/sessions\/([^/]+)$/u
  const action = (verb: string): RegExp => new RegExp(`^/api/sessions/([^/]+)/${verb}$`, 'u')
  return [
    { method: 'GET', path: /^\/$/u, answer: async () => plain(FRONT_PAGE, 'text/plain; charset=utf-8') },
    {
      method: 'GET',
      path: /^\/metrics$/u,
      needs: 'all',
      answer: async () => plain(await metrics.expose(), METRICS_CONTENT_TYPE),
    },
    { method: 'GET', path: /^\/api\/status$/u, needs: 'admin', answer: async () => json(await api.status()) },
    {
      method: 'GET',
      path: /^\/api\/cluster$/u,
      needs: 'admin',
      answer: async () => clusterAnswer(await api.cluster()),
    },
    { method: 'POST', path: /^\/api\/reload$/u, needs: 'admin', answer: async () => json(await api.reload()) },
    { method: 'GET', path: /^\/api\/tools$/u, needs: 'admin', answer: async () => json(api.tools()) },
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
    {
      method: 'GET',
      path: /^\/api\/usage$/u,
      needs: 'all',
      answer: async ({ url }) => {
        const { usage, ...rest } = await api.usage(usageQuery(url, now()))
        return json({ ...pageOf(url, 'usage', usage, MAX_USAGE_ROWS), ...rest })
      },
    },
    {
      method: 'GET',
      path: /^\/api\/approvals$/u,
      answer: async ({ caller }) => json(await api.approvals(caller)),
    },
    {
      method: 'POST',
      path: /^\/api\/approvals\/([^/]+)$/u,
      answer: async ({ name, request, caller }) => json(await api.approve(name, await approveQuery(request), caller)),
    },
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
    {
      method: 'GET',
      path: /^\/api\/channels\/([^/]+)\/history$/u,
      needs: 'admin',
      answer: async ({ name, url }) => json(pageOf(url, 'history', api.linkHistory(name), MAX_HISTORY_ROWS)),
    },
    {
      method: 'POST',
      path: /^\/api\/channels\/([^/]+)\/reconnect$/u,
      needs: 'admin',
      answer: async ({ name }) => json(api.reconnect(name)),
    },
  ]
}

const FRONT_PAGE = `Clew is running.

  POST /api/messages  curl -d '{"content":"hello"}' and the answer comes as JSON
  POST /v1/chat/completions, /v1/responses  for clients of OpenAI's API; GET /v1/models
  GET /ws          webhook channel (WebSocket): send {"id":"msg-1","content":"hello"}
  GET /healthz     200 once messages are accepted
  GET /metrics     Prometheus
  GET /api/status  what runs
  GET /api/cluster  the nodes that share one database

In a terminal: clew chat
`

/** 200 as long as messages are accepted; `degraded` says that they are not answered in time. */
function health(api: GatewayApi): Response {
  if (!api.isOpen()) return json({ status: 'unavailable' }, 503)
  return json({ status: api.isStuck() ? 'degraded' : 'ok' }, 200)
}

function decideUpgrade(request: UpgradeRequest, { access, api, webhook }: HttpDeps): UpgradeDecision {
  const refuse = (
    status: number,
    error: string,
    code: string,
    headers: Readonly<Record<string, string>> = {},
  ): UpgradeDecision => ({
    accept: false,
    status,
    body: JSON.stringify({ error, code, ...(code === 'STORAGE_UNAVAILABLE' ? { retryable: true } : {}) }),
    headers: { 'content-type': 'application/json', ...retryAfter(status), ...headers },
  })
  const decision = access.decide({ ...request, method: 'GET' })
  if (!decision.allowed) return refuse(decision.status, decision.error, decision.code, decision.headers)
  if (request.url.pathname !== '/ws') return refuse(404, 'the socket is at /ws', 'NOT_FOUND')
  if (api.isStorageAway())
    return refuse(503, 'the storage does not answer at the moment; try again', 'STORAGE_UNAVAILABLE')
  if (!api.isOpen()) return refuse(503, 'the gateway is not accepting connections right now', 'SHUTTING_DOWN')
  if (webhook.isFull) return refuse(503, 'too many connections', 'RATE_LIMITED')
  const query = request.url.searchParams
  let identity: Identity
  try {
    identity = identityOf(access, decision.principal, request.url)
  } catch (thrown) {
    const { message, code } = toGatewayError(thrown)
    return refuse(400, message, code)
  }
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
        fromDashboard: query.get('client') === 'dashboard',
      })
    },
  }
}

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
    ...stateParameter(url),
    ...textParameter(url, 'channel'),
    ...textParameter(url, 'q'),
    ...(url.searchParams.get('archived') === '1' ? { archived: true } : {}),
  }
}

const STATES = ['running', 'queued', 'idle'] as const

function stateParameter(url: URL): ListQuery {
  const state = url.searchParams.get('state')
  if (state === null || state === '') return {}
  if (isOneOf(state, STATES)) return { state }
  throw new GatewayError('FIELD_INVALID', `state must be one of ${STATES.join(', ')}`, { field: 'state' })
}

function textParameter(url: URL, name: 'channel' | 'q'): ListQuery {
  const value = url.searchParams.get(name)
  return value === null || value === '' ? {} : { [name]: value.slice(0, 200) }
}

function showQuery(url: URL): ShowQuery {
  const request = wholeNumber(url, 'request')
  const limit = wholeNumber(url, 'limit', 0)
  return { ...(request === undefined ? {} : { request }), ...(limit === undefined ? {} : { limit }) }
}

/** Anything but a plain yes or no decides nothing. */
async function approveQuery(request: Request): Promise<boolean> {
  const { approve } = await jsonBody(request)
  if (typeof approve === 'boolean') return approve
  throw new GatewayError('FIELD_INVALID', 'the body must be {"approve": true} or {"approve": false}', {
    field: 'approve',
  })
}

/** A body that is not understood restores nothing: the default would be something else than what was meant. */
async function restoreQuery(request: Request): Promise<RestoreQuery> {
  const { archive, compaction, cleanup } = await jsonBody(request)
  if (archive !== undefined && typeof archive !== 'string')
    throw new GatewayError('FIELD_INVALID', 'archive must be the id of a conversation', { field: 'archive' })
  if (compaction !== undefined && typeof compaction !== 'boolean')
    throw new GatewayError('FIELD_INVALID', 'compaction must be true or false', { field: 'compaction' })
  if (cleanup !== undefined && typeof cleanup !== 'string')
    throw new GatewayError('FIELD_INVALID', 'cleanup must be the id of a cleanup', { field: 'cleanup' })
  if ([archive, compaction === true ? true : undefined, cleanup].filter((one) => one !== undefined).length > 1)
    throw new GatewayError('FIELD_INVALID', 'only one of archive, compaction and cleanup', { field: 'compaction' })
  return {
    ...(archive === undefined ? {} : { archive }),
    ...(compaction === undefined ? {} : { compaction }),
    ...(cleanup === undefined ? {} : { cleanup }),
  }
}

function clusterAnswer(cluster: JsonObject | undefined): Response {
  if (cluster !== undefined) return json(cluster)
  return json(
    { error: 'this gateway keeps its conversations alone (storage.kind "files")', code: 'FIELD_INVALID' },
    404,
  )
}
