import { BodyRefused, type Peer } from '../base/http.ts'
import { parseForeignJson, isRecord, type JsonObject } from '../base/json.ts'
import type { Log } from '../base/log.ts'
import { ERRORS, GatewayError, toGatewayError, type ErrorCode } from '../core/errors.ts'
import type { Caller } from '../core/inbound.ts'
import type { Principal } from './access.ts'

/** What a route is answered from. */
export interface Call {
  readonly request: Request
  readonly url: URL
  /** The part of the path that names a session or channel, decoded. */
  readonly name: string
  /** What it is asked about of it, where a route names that too. */
  readonly second: string
  readonly caller: Caller
  readonly principal: Principal
  readonly peer: Peer
}

/** Why a request is not answered. */
export interface Problem {
  readonly status: number
  readonly code: string
  readonly error: string
  /** What of the request it is about. */
  readonly field?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** The form in which a group of routes reports an error. */
export type ShowProblem = (problem: Problem) => Response

export interface Route {
  readonly method: string
  readonly path: RegExp
  /** `admin`: about the gateway itself. `all`: shows something of every conversation. */
  readonly needs?: 'admin' | 'all'
  answer(call: Call): Promise<Response>
}

export async function dispatch(
  routes: readonly Route[],
  request: Request,
  url: URL,
  { principal, peer }: Pick<Call, 'principal' | 'peer'>,
  show: ShowProblem = showProblem,
): Promise<Response> {
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
    const [name, second] = [decodeKey(match[1] ?? ''), decodeKey(match[2] ?? '')]
    return route.answer({ request, url, name, second, caller, principal, peer })
  }
  if (url.pathname === '/ws') return show({ error: 'open a WebSocket here', code: 'UPGRADE_REQUIRED', status: 426 })
  if (methods.length === 0) return show({ error: 'Not found', code: 'NOT_FOUND', status: 404 })
  return show(wrongMethod([...new Set(methods)].join(', ')))
}

export function wrongMethod(allow: string): Problem {
  return {
    error: `Method not allowed (allowed: ${allow})`,
    code: 'METHOD_NOT_ALLOWED',
    status: 405,
    headers: { allow },
  }
}

/** In the gateway's own form. */
export function showProblem({ error, code, field, status, headers }: Problem): Response {
  // Nothing was done, and the same request may be sent again.
  const retryable = code === 'STORAGE_UNAVAILABLE' ? { retryable: true } : {}
  return json({ error, code, ...(field === undefined ? {} : { field }), ...retryable }, status, headers)
}

function checkRight({ needs }: Route, { admin, sees }: Principal): void {
  if (needs === undefined || admin || (needs === 'all' && sees === 'all')) return
  throw new GatewayError('FORBIDDEN', 'this token may not see the gateway itself; see listen.tokens and "admin"')
}

export function wholeNumber(url: URL, name: string, least: 0 | 1 = 1): number | undefined {
  const value = url.searchParams.get(name)
  if (value === null) return undefined
  if (!/^(?:0|[1-9]\d{0,8})$/u.test(value) || Number(value) < least) {
    const range = least === 0 ? 'of 0 or more' : 'above 0'
    throw new GatewayError('FIELD_INVALID', `${name} must be a whole number ${range}`, { field: name })
  }
  return Number(value)
}

/** One page of a list that is at hand as a whole; a cursor is a place in it. */
export function pageOf(url: URL, name: string, rows: readonly JsonObject[], most: number): JsonObject {
  const from = wholeNumber(url, 'cursor', 0) ?? 0
  const end = from + Math.min(wholeNumber(url, 'limit') ?? most, most)
  return { [name]: rows.slice(from, end), ...(end < rows.length ? { nextCursor: String(end) } : {}) }
}

/** The body as a JSON object; an absent one is an empty object. */
export async function jsonBody(request: Request): Promise<Readonly<Record<string, unknown>>> {
  const text = await request.text()
  const body = text === '' ? {} : parseForeignJson(text)
  if (!isRecord(body)) throw new GatewayError('FIELD_INVALID', 'the body must be a JSON object', { field: 'body' })
  return body
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
  ENTRY_NOT_FOUND: 404,
  BLOB_NOT_FOUND: 404,
  RUN_NOT_FOUND: 404,
  CHANNEL_NOT_FOUND: 404,
  FILE_NOT_FOUND: 404,
  FRAME_MALFORMED: 400,
  FRAME_TOO_LARGE: 413,
  CONTENT_TYPE_UNSUPPORTED: 415,
  IDEMPOTENCY_CONFLICT: 409,
  CONFIG_INVALID: 400,
  TOKEN_REQUIRED: 400,
  MODEL_UNKNOWN: 400,
  HOOK_INVALID: 400,
  PLUGIN_INVALID: 400,
  STORAGE_FULL: 503,
  STORAGE_UNAVAILABLE: 503,
  TOO_MANY_OPEN_FILES: 503,
  SESSION_LOCKED: 503,
  SESSION_LOCK_LOST: 503,
  OWNERSHIP_LOST: 503,
  APPROVAL_NOT_FOUND: 404,
  ALREADY_RESTORED: 409,
  UNAUTHORIZED: 401,
  FIELD_INVALID: 400,
  FORBIDDEN: 403,
  SHUTTING_DOWN: 503,
  XIAOYI_LINK_DOWN: 503,
  QUEUE_FULL: 503,
  SESSION_LIMIT: 503,
  RATE_LIMITED: 429,
}

export function problemOf(thrown: unknown, log: Log): Problem {
  if (thrown instanceof BodyRefused) {
    const { message: error, status } = thrown
    return { error, code: status === 413 ? 'FRAME_TOO_LARGE' : 'RATE_LIMITED', status, headers: retryAfter(status) }
  }
  const error = toGatewayError(thrown)
  const status = STATUS_OF[error.code] ?? (ERRORS[error.code].kind === 'caller' ? 400 : 500)
  if (status === 500)
    log.error('a request could not be answered', {
      code: error.code,
      cause: error.cause instanceof Error ? error.cause.name : undefined,
    })
  const { field } = error.facts
  const about = typeof field === 'string' ? { field } : {}
  return { error: error.message, code: error.code, ...about, status, headers: retryAfter(status) }
}

export function retryAfter(status: number): Readonly<Record<string, string>> {
  return status === 429 || status === 503 ? { 'retry-after': '1' } : {}
}

export function plain(text: string, type: string): Response {
  return new Response(text, { headers: { 'content-type': type } })
}

export function json(body: JsonObject, status = 200, headers: Readonly<Record<string, string>> = {}): Response {
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

/** Server-sent events that are made as they are read. */
export function eventStream(
  body: ReadableStream<Uint8Array>,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return new Response(body, {
    headers: {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      // A proxy that collects the events would show them all at once.
      'x-accel-buffering': 'no',
      ...headers,
    },
  })
}
