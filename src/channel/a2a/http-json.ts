import { fromJsonRpcErrorResponse, restStatusFor, toRestErrorBody } from '@a2a-js/sdk/errors'
import { parseForeignJson, isRecord } from '../../base/json.ts'
import { loopWork } from '../../base/loop-work.ts'
import { HTTP_JSON_PATH } from './agent-card.ts'
import {
  CONTENT_TYPE_REFUSED,
  eventResponse,
  invoke,
  isJsonType,
  jsonResponse,
  METHOD_NOT_FOUND,
  PARSE_ERROR,
  VERSION_NOT_SUPPORTED,
  versionOf,
  type A2aCall,
  type DoorDeps,
  type Outcome,
  type RpcError,
} from './door.ts'

interface Operation {
  readonly verb: string
  readonly path: RegExp
  readonly method: string
  /** Of a success. */
  readonly status?: number
}

/** The addresses of version 1.0; a name in one is a parameter of the operation, the first a task, the second a config. */
const OPERATIONS: readonly Operation[] = [
  { verb: 'POST', path: /^\/message:send$/u, method: 'SendMessage' },
  { verb: 'POST', path: /^\/message:stream$/u, method: 'SendStreamingMessage' },
  { verb: 'GET', path: /^\/tasks$/u, method: 'ListTasks' },
  { verb: 'GET', path: /^\/tasks\/([^/:]+)$/u, method: 'GetTask' },
  { verb: 'POST', path: /^\/tasks\/([^/:]+):cancel$/u, method: 'CancelTask' },
  // The specification has both verbs, in two places.
  { verb: 'GET', path: /^\/tasks\/([^/:]+):subscribe$/u, method: 'SubscribeToTask' },
  { verb: 'POST', path: /^\/tasks\/([^/:]+):subscribe$/u, method: 'SubscribeToTask' },
  {
    verb: 'POST',
    path: /^\/tasks\/([^/:]+)\/pushNotificationConfigs$/u,
    method: 'CreateTaskPushNotificationConfig',
    status: 201,
  },
  {
    verb: 'GET',
    path: /^\/tasks\/([^/:]+)\/pushNotificationConfigs$/u,
    method: 'ListTaskPushNotificationConfigs',
  },
  {
    verb: 'GET',
    path: /^\/tasks\/([^/:]+)\/pushNotificationConfigs\/([^/]+)$/u,
    method: 'GetTaskPushNotificationConfig',
  },
  {
    verb: 'DELETE',
    path: /^\/tasks\/([^/:]+)\/pushNotificationConfigs\/([^/]+)$/u,
    method: 'DeleteTaskPushNotificationConfig',
    status: 204,
  },
  { verb: 'GET', path: /^\/extendedAgentCard$/u, method: 'GetExtendedAgentCard' },
]

/** Everything below `/a2a/v1`: each address stands for one operation of JSON-RPC. */
export async function answerHttpJson(call: A2aCall, deps: DoorDeps): Promise<Response> {
  const { request, url } = call
  const address = url.pathname.slice(HTTP_JSON_PATH.length)
  const here = OPERATIONS.filter(({ path }) => path.test(address))
  const operation = here.find(({ verb }) => verb === request.method)
  if (operation === undefined) return nothingHere(here)
  // The SDK's compatibility layer for this wire needs express: clients of version 0.3 use JSON-RPC.
  if (versionOf(call) === '0.3')
    return restError({ code: VERSION_NOT_SUPPORTED, message: 'send "A2A-Version: 1.0"; version 0.3 is spoken at /a2a' })
  const text = request.method === 'POST' ? await request.text() : ''
  if (text !== '' && !isJsonType(request.headers)) return restError(CONTENT_TYPE_REFUSED, 415)
  const body = text === '' ? {} : loopWork('frame', () => parseForeignJson(text))
  const names = decodeNames(operation, address)
  if (!isRecord(body) || names === undefined)
    return restError({ code: PARSE_ERROR, message: 'the body or the address cannot be read' })
  const params = { ...queryOf(url), ...body, ...namesOf(operation.method, names) }
  const outcome = await invoke({ jsonrpc: '2.0', id: 1, method: operation.method, params }, call, deps)
  return respond(outcome, operation, deps)
}

function nothingHere(others: readonly Operation[]): Response {
  const allow = [...new Set(others.map(({ verb }) => verb))].join(', ')
  if (allow === '') return restError({ code: METHOD_NOT_FOUND, message: 'Not found' }, 404)
  const response = restError({ code: METHOD_NOT_FOUND, message: `Method not allowed (allowed: ${allow})` }, 405)
  response.headers.set('allow', allow)
  return response
}

/** Undefined when they are not encoded correctly. */
function decodeNames({ path }: Operation, address: string): readonly string[] | undefined {
  try {
    return (path.exec(address) ?? []).slice(1).map((name) => decodeURIComponent(name))
  } catch {
    return undefined
  }
}

function respond(outcome: Outcome, { status = 200 }: Operation, { clock }: DoorDeps): Response {
  if (outcome.kind === 'one') {
    const { error, result } = outcome.value
    if (error !== undefined) return restError(error, outcome.status)
    if (status === 204) return new Response(null, { status })
    return jsonResponse(result, status, 'application/a2a+json')
  }
  const { first, rest, stop } = outcome
  const failure = (thrown: unknown): unknown => toRestErrorBody(thrown, restStatusFor(thrown))
  return eventResponse({ kind: 'many', first: resultOf(first), rest: results(rest), stop }, { clock, failure })
}

function restError(error: RpcError, status?: number): Response {
  const { code, message, data } = error
  const known = fromJsonRpcErrorResponse({ jsonrpc: '2.0', id: null, error: { code, message } })
  const answered = status ?? restStatusFor(known)
  const { error: body } = toRestErrorBody(known, answered)
  const ours = (Array.isArray(data) ? (data as unknown[]) : []).filter(
    (one) => isRecord(one) && one['domain'] === 'clew',
  )
  const details = [...body.details, ...ours]
  return jsonResponse({ error: { ...body, details } }, answered, 'application/a2a+json')
}

async function* results(stream: AsyncGenerator): AsyncGenerator {
  for await (const one of stream) yield resultOf(one)
}

function resultOf(envelope: unknown): unknown {
  return isRecord(envelope) ? envelope['result'] : undefined
}

const NUMBERS = ['pageSize', 'historyLength']

function queryOf(url: URL): Readonly<Record<string, unknown>> {
  const pairs = [...url.searchParams].filter(([name]) => name !== 'token' && name !== 'uid' && name !== 'A2A-Version')
  return Object.fromEntries(
    pairs.map(([name, value]) => {
      if (NUMBERS.includes(name)) return [name, /^-?\d{1,9}$/u.test(value) ? Number(value) : Number.NaN]
      return [name, name === 'includeArtifacts' ? value === 'true' : value]
    }),
  )
}

function namesOf(method: string, [task, config]: readonly string[]): Readonly<Record<string, unknown>> {
  if (task === undefined) return {}
  if (!method.includes('PushNotification')) return { id: task }
  return { taskId: task, ...(config === undefined ? {} : { id: config }) }
}
