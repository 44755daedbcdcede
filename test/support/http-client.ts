import type { MemoryGateway } from './gateway.ts'

export type Body = Record<string, unknown>

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  readonly body: Body
}

export interface RequestInit {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  /** An object is sent as JSON. */
  readonly body?: string | Uint8Array | Body
}

const TIMEOUTS = { connectTimeoutMs: 1_000, firstByteTimeoutMs: 600_000, idleTimeoutMs: 600_000 }

/** One request to a gateway in memory; its time runs until the answer is there. */
export async function callHttp(gateway: MemoryGateway, path: string, init: RequestInit = {}): Promise<Answer> {
  const begun = beginHttp(gateway, path, init)
  await gateway.clock.runUntil(() => begun.isDone())
  return begun.answer
}

/** A request under way. */
export interface Begun {
  readonly answer: Promise<Answer>
  isDone(): boolean
  /** What has arrived of the body. */
  received(): string
  /** The client goes away. */
  drop(): void
}

export function beginHttp(gateway: MemoryGateway, path: string, init: RequestInit = {}): Begun {
  const { method = init.body === undefined ? 'GET' : 'POST', headers = {}, body } = init
  const isJson = body !== undefined && typeof body !== 'string' && !(body instanceof Uint8Array)
  const gone = new AbortController()
  let received = ''
  let done = false
  const answer = (async (): Promise<Answer> => {
    const request = {
      method,
      url: `${gateway.url}${path}`,
      headers: { ...(isJson ? { 'content-type': 'application/json' } : {}), ...headers },
      ...TIMEOUTS,
      ...(body === undefined ? {} : { body: isJson ? JSON.stringify(body) : body }),
    }
    const response = await gateway.network.request(request, gone.signal)
    for await (const piece of response.body) received += Buffer.from(piece).toString()
    const isObject = response.headers.get('content-type')?.startsWith('application/json') === true
    return {
      status: response.status,
      headers: response.headers,
      text: received,
      body: isObject ? (JSON.parse(received) as Body) : {},
    }
  })().finally(() => {
    done = true
  })
  answer.catch(() => undefined)
  return { answer, isDone: () => done, received: () => received, drop: () => gone.abort() }
}

export interface ServerEvent {
  readonly event: string
  readonly id: number
  readonly data: Body
}

/** The events of a stream, comments left out. */
export function eventsOf(text: string): readonly ServerEvent[] {
  return text
    .split('\n\n')
    .filter((block) => block.startsWith('event: '))
    .map((block) => {
      const fields = new Map(block.split('\n').map((line) => splitOnce(line)))
      return {
        event: fields.get('event') ?? '',
        id: Number(fields.get('id')),
        data: JSON.parse(fields.get('data') ?? '{}') as Body,
      }
    })
}

function splitOnce(line: string): [string, string] {
  const at = line.indexOf(': ')
  return [line.slice(0, at), line.slice(at + 2)]
}
