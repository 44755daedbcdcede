import type { MemoryGateway } from './gateway.ts'
import { beginHttp, type Begun, type Body, type RequestInit } from './http-client.ts'

// The product loads these when they are first asked for; loaded already, they answer within virtual time.
await Promise.all([
  import('../../src/channel/a2a/door.ts'),
  import('../../src/channel/a2a/http-json.ts'),
  import('../../src/channel/a2a/legacy-push.ts'),
])

export interface RpcAnswer {
  readonly status: number
  readonly headers: Headers
  readonly result: Body
  readonly error: { readonly code: number; readonly message: string; readonly data?: readonly Body[] } | undefined
  /** The results of a stream. */
  readonly events: readonly Body[]
}

export interface RpcOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly query?: string
}

const VERSION = { 'a2a-version': '1.0' }
let count = 0

export function beginRpc(gateway: MemoryGateway, method: string, params: Body, options: RpcOptions = {}): Begun {
  const body = { jsonrpc: '2.0', id: ++count, method, params }
  return beginHttp(gateway, `/a2a${options.query ?? ''}`, { body, headers: { ...VERSION, ...options.headers } })
}

/** One request of JSON-RPC to a gateway in memory. */
export async function rpc(
  gateway: MemoryGateway,
  method: string,
  params: Body,
  options: RpcOptions = {},
): Promise<RpcAnswer> {
  const begun = beginRpc(gateway, method, params, options)
  await gateway.clock.runUntil(() => begun.isDone())
  return answerOf(begun)
}

export async function answerOf(begun: Begun): Promise<RpcAnswer> {
  const { status, headers, body, text } = await begun.answer
  const envelope = body as { result?: Body; error?: RpcAnswer['error'] }
  return { status, headers, result: envelope.result ?? {}, error: envelope.error, events: eventsOf(text) }
}

export function eventsOf(text: string): readonly Body[] {
  return text
    .split('\n\n')
    .filter((event) => event.startsWith('data: '))
    .map((event) => (JSON.parse(event.slice('data: '.length)) as { result: Body }).result)
}

type RestInit = Pick<RequestInit, 'method' | 'headers'> & { readonly body?: Body }

export function beginRest(gateway: MemoryGateway, path: string, init: RestInit = {}): Begun {
  return beginHttp(gateway, `/a2a/v1${path}`, { ...init, headers: { ...VERSION, ...init.headers } })
}

/** One request of the other wire. */
export async function rest(
  gateway: MemoryGateway,
  path: string,
  init: RestInit = {},
): Promise<{ readonly status: number; readonly headers: Headers; readonly body: Body; readonly text: string }> {
  const begun = beginRest(gateway, path, init)
  await gateway.clock.runUntil(() => begun.isDone())
  const answer = await begun.answer
  const isObject = answer.text.startsWith('{')
  return { ...answer, body: isObject ? (JSON.parse(answer.text) as Body) : {} }
}

export function userMessage(text: string, more: Body = {}): Body {
  return { messageId: `m-${++count}`, role: 'ROLE_USER', parts: [{ text }], ...more }
}

interface Task extends Body {
  readonly id: string
  readonly contextId: string
  readonly status: { readonly state: string; readonly timestamp: string }
  readonly history?: readonly Body[]
  readonly artifacts?: readonly { readonly parts: readonly { readonly text?: string }[] }[]
  readonly metadata: Body
}

export async function ask(
  gateway: MemoryGateway,
  text: string,
  { message = {}, ...options }: RpcOptions & { readonly message?: Body } = {},
): Promise<Task> {
  return taskOf(await rpc(gateway, 'SendMessage', { message: userMessage(text, message) }, options))
}

/** A task that is at work. */
export async function begin(gateway: MemoryGateway, text: string, options: RpcOptions = {}): Promise<Task> {
  const params = { message: userMessage(text), configuration: { returnImmediately: true } }
  return taskOf(await rpc(gateway, 'SendMessage', params, options))
}

export function taskOf({ result, error }: RpcAnswer): Task {
  if (error !== undefined) throw new Error(`${error.code} ${error.message}`)
  return ('task' in result ? result['task'] : result) as Task
}

export function textOf({ artifacts = [] }: Task): string {
  return artifacts.flatMap(({ parts }) => parts.map(({ text = '' }) => text)).join('')
}
