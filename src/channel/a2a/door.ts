import { toJsonRpcError, VersionNotSupportedError } from '@a2a-js/sdk/errors'
import { isLegacyJsonRpcMethod, isV1JsonRpcMethod } from '@a2a-js/sdk/compat/v0_3'
import { LegacyJsonRpcTransportHandler } from '@a2a-js/sdk/compat/v0_3/server'
import { JsonRpcTransportHandler, ServerCallContext, type A2ARequestHandler } from '@a2a-js/sdk/server'
import type { Clock } from '../../base/clock.ts'
import { parseForeignJson, isRecord, type JsonObject } from '../../base/json.ts'
import type { Ids } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { loopWork } from '../../base/loop-work.ts'
import type { GatewayError } from '../../core/errors.ts'
import type { Caller } from '../../core/inbound.ts'
import type { A2aChannel, A2aSender } from './channel.ts'
import { busyStatus, translating } from './errors.ts'
import { errorInfo } from './error-info.ts'
import { eventBody } from './event-body.ts'
import { RunRequestHandler, type A2aLimits } from './request-handler.ts'

export interface A2aCall {
  readonly request: Request
  readonly url: URL
  readonly sender: A2aSender
  readonly caller: Caller
  readonly card: JsonObject
  readonly extendedCard: JsonObject
  /** Where the client reached us, without a slash at its end. */
  readonly base: string
}

export interface DoorDeps {
  readonly channel: A2aChannel
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  /** Hosts of this machine or network that push notifications may go to. */
  readonly privateHosts: readonly string[]
  readonly limits: A2aLimits
}

/** An answer of the protocol before it has a wire: one value, or the first of many. */
export type Outcome =
  | { readonly kind: 'one'; readonly value: Envelope; readonly status?: number }
  | { readonly kind: 'many'; readonly first: unknown; readonly rest: AsyncGenerator; stop(): void }

export interface Envelope {
  readonly id: string | number | null
  readonly result?: unknown
  readonly error?: RpcError
}

export interface RpcError {
  readonly code: number
  readonly message: string
  readonly data?: unknown
}

export const PARSE_ERROR = -32_700
export const VERSION_NOT_SUPPORTED = -32_009
export const METHOD_NOT_FOUND = -32_601
export const CONTENT_TYPE_REFUSED: RpcError = { code: -32_005, message: 'send application/json' }
const INVALID_REQUEST = -32_600
const INVALID_PARAMS = -32_602
const INTERNAL_ERROR = -32_603
/** In the range that JSON-RPC leaves to servers: a passing condition. */
const BUSY = -32_000

/** `POST /a2a`: JSON-RPC of version 1.0 and, by the SDK's compatibility layer, of 0.3. */
export async function answerJsonRpc(call: A2aCall, deps: DoorDeps): Promise<Response> {
  const text = await call.request.text()
  if (text !== '' && !isJsonType(call.request.headers)) return respond(failed(null, CONTENT_TYPE_REFUSED), deps, 415)
  const body = loopWork('frame', () => parseForeignJson(text))
  if (body === undefined) return respond(refusal(null, PARSE_ERROR, 'the body is not JSON'), deps, 400)
  const fault = faultOf(body)
  if (!isRecord(body) || fault !== undefined)
    return respond(refusal(idOf(body), INVALID_REQUEST, fault ?? 'not a request'), deps)
  return respond(await invoke(body, call, deps), deps)
}

/** Performs one request of JSON-RPC; the other wire uses it too. */
export async function invoke(body: Readonly<Record<string, unknown>>, call: A2aCall, deps: DoorDeps): Promise<Outcome> {
  const id = idOf(body)
  const version = versionOf(call)
  if (version === undefined)
    return failed(id, toJsonRpcError(new VersionNotSupportedError('this agent speaks A2A 1.0 and 0.3')))
  const failure = new Failure()
  const { handler, stop } = openHandler(call, deps, failure)
  try {
    deps.channel.limitRate(call.sender)
  } catch (thrown) {
    failure.note(thrown as GatewayError)
    return failure.outcome(id, { code: BUSY, message: 'too many requests; slow down' }, deps.log)
  }
  const method = String(body['method'])
  const wrong = wrongText(body['params'])
  if (wrong !== undefined) return refusal(id, INVALID_PARAMS, `"${wrong}" must be a text`)
  const isLegacy = version === '0.3' && (isLegacyJsonRpcMethod(method) || !isV1JsonRpcMethod(method))
  const transport = isLegacy ? new LegacyJsonRpcTransportHandler(handler) : new JsonRpcTransportHandler(handler)
  const answer = await transport.handle({ ...body }, new ServerCallContext({ requestedVersion: version }))
  if (!(Symbol.asyncIterator in answer)) {
    const { error, result } = answer as Envelope
    return error === undefined ? { kind: 'one', value: { id, result } } : failure.outcome(id, error, deps.log)
  }
  // An early failure is a plain answer: an open stream would look like success.
  try {
    const first = await answer.next()
    return { kind: 'many', first: first.value, rest: answer, stop }
  } catch (thrown) {
    return failure.outcome(id, toJsonRpcError(thrown), deps.log)
  }
}

function openHandler(
  { request, sender, caller, card, extendedCard, base }: A2aCall,
  { channel, ids, privateHosts, limits }: DoorDeps,
  failure: Failure,
): { readonly handler: A2ARequestHandler; stop(): void } {
  const gone = new AbortController()
  const signal = AbortSignal.any([request.signal, gone.signal])
  const newId = (): string => ids.uuid()
  const deps = { channel, sender, caller, signal, card, extendedCard, base, privateHosts, limits, newId }
  const handler = translating(new RunRequestHandler(deps), (error) => failure.note(error))
  return { handler, stop: () => gone.abort() }
}

/** Why a request failed, as far as the operations themselves tell. */
class Failure {
  #isNoted = false
  #error: GatewayError | undefined

  note(error: GatewayError | undefined): void {
    this.#isNoted = true
    this.#error = error
  }

  outcome(id: Envelope['id'], error: RpcError, log: Log): Outcome {
    const data = [...(Array.isArray(error.data) ? (error.data as unknown[]) : []), ...this.#reason()]
    const shown: RpcError = data.length === 0 ? error : { ...error, data }
    const status = busyStatus(this.#error)
    if (status !== undefined) return { ...failed(id, { ...shown, code: BUSY }), status }
    if (error.code !== INTERNAL_ERROR) return failed(id, shown)
    // The operations were not reached: the SDK's decoder stumbled over the parameters.
    if (!this.#isNoted) return failed(id, { code: INVALID_PARAMS, message: 'the parameters cannot be read' })
    log.error('an A2A request could not be answered', { code: this.#error?.code })
    return failed(id, shown)
  }

  /** Our own code, beside the protocol's. */
  #reason(): readonly JsonObject[] {
    return this.#error === undefined ? [] : [errorInfo(this.#error.code)]
  }
}

/** `1.0` or `0.3`; undefined for one we do not speak. Without the header it is 0.3. */
export function versionOf({ request, url }: Pick<A2aCall, 'request' | 'url'>): '1.0' | '0.3' | undefined {
  const given = (request.headers.get('a2a-version') ?? url.searchParams.get('A2A-Version') ?? '').trim()
  if (given === '') return '0.3'
  const [major, minor] = given.split('.')
  if (major === '1' && (minor ?? '0') === '0') return '1.0'
  return major === '0' && minor === '3' ? '0.3' : undefined
}

/** `curl -d` calls every body a form; what people send with it is JSON. */
const JSON_TYPES = ['application/json', 'application/a2a+json', 'application/x-www-form-urlencoded']

export function isJsonType(headers: Headers): boolean {
  return JSON_TYPES.includes((headers.get('content-type') ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '')
}

function faultOf(body: unknown): string | undefined {
  if (Array.isArray(body)) return 'batches are not taken; send one request at a time'
  if (!isRecord(body)) return 'a request must be an object'
  const { jsonrpc, method, id } = body
  if (jsonrpc !== '2.0') return '"jsonrpc" must be "2.0"'
  if (typeof method !== 'string' || method === '') return '"method" must be a text'
  if (id === undefined || id === null || typeof id === 'string' || Number.isInteger(id)) return undefined
  return '"id" must be a text, a whole number or null'
}

/** Names that the SDK's decoder would turn into a text, whatever they are. */
const TEXTS = ['id', 'taskId', 'contextId', 'messageId', 'pageToken', 'url', 'token', 'text', 'filename', 'mediaType']
const NESTED = ['message', 'configuration', 'taskPushNotificationConfig', 'pushNotificationConfig', 'parts']

/** The name of the first field that must be a text and is something else. */
function wrongText(value: unknown): string | undefined {
  const items: readonly unknown[] = Array.isArray(value) ? value : [value]
  for (const item of items.filter((one) => isRecord(one))) {
    const wrong = TEXTS.find((name) => !['string', 'undefined'].includes(typeof (item[name] ?? undefined)))
    if (wrong !== undefined) return wrong
    for (const name of NESTED) {
      const inside = item[name] === undefined ? undefined : wrongText(item[name])
      if (inside !== undefined) return `${name}.${inside}`
    }
  }
  return undefined
}

function idOf(body: unknown): Envelope['id'] {
  const id = isRecord(body) ? body['id'] : undefined
  return typeof id === 'string' || (typeof id === 'number' && Number.isInteger(id)) ? id : null
}

function refusal(id: Envelope['id'], code: number, message: string): Outcome {
  return failed(id, { code, message })
}

function failed(id: Envelope['id'], error: RpcError): Extract<Outcome, { kind: 'one' }> {
  return { kind: 'one', value: { id, error } }
}

function respond(outcome: Outcome, { clock }: DoorDeps, status = 200): Response {
  if (outcome.kind === 'one')
    return jsonResponse({ jsonrpc: '2.0', ...outcome.value }, outcome.status ?? status, 'application/json')
  const failure = (thrown: unknown): unknown => ({ jsonrpc: '2.0', id: null, error: toJsonRpcError(thrown) })
  return eventResponse(outcome, { clock, failure })
}

export function jsonResponse(body: unknown, status: number, type: string): Response {
  return new Response(JSON.stringify(body), {
    status,
    headers: {
      'content-type': type,
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      ...(status === 429 || status === 503 ? { 'retry-after': '1' } : {}),
    },
  })
}

export function eventResponse(
  { first, rest, stop }: Extract<Outcome, { kind: 'many' }>,
  { clock, failure }: { readonly clock: Clock; failure(thrown: unknown): unknown },
): Response {
  return new Response(eventBody(first, rest, { clock, failure, onCancel: stop }), {
    headers: {
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      // A proxy that collects the events would show them all at once.
      'x-accel-buffering': 'no',
    },
  })
}
