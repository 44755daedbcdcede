import type { FetchLike } from '@modelcontextprotocol/client'
import type { Clock } from '../../base/clock.ts'
import type { HttpClient, HttpResponse } from '../../base/http.ts'
import { JsonGauge } from '../../base/json.ts'
import { NEVER } from '../../base/async.ts'
import { FloodGuard, type FloodLimits } from './flood-guard.ts'

export interface HttpFetchOptions {
  readonly http: HttpClient
  readonly clock: Clock
  readonly timeoutMs: number
  /** Of the answer to one request; a stream of notifications may be longer. */
  readonly maxAnswerBytes: number
  readonly flood?: FloodLimits
}

/** Between two notifications of a server hours may pass. */
const STREAM_IDLE_MS = 24 * 60 * 60 * 1000
const BODILESS = [101, 204, 205, 304]

/** The `fetch` the SDK asks for, on our own HTTP port: bounded in time and in what the server may send. */
export function createHttpFetch(options: HttpFetchOptions): FetchLike {
  const guard = new FloodGuard(options.clock, options.flood)
  return async (url, init) => {
    const method = init?.method ?? 'GET'
    const { body } = init ?? {}
    const headers = Object.fromEntries(new Headers(init?.headers).entries())
    const response = await options.http.request(
      {
        method,
        url: String(url),
        headers,
        ...(typeof body === 'string' && { body }),
        connectTimeoutMs: Math.min(options.timeoutMs, 15_000),
        firstByteTimeoutMs: options.timeoutMs,
        idleTimeoutMs: method === 'GET' ? STREAM_IDLE_MS : options.timeoutMs,
      },
      init?.signal ?? NEVER,
    )
    const stream = BODILESS.includes(response.status)
      ? null
      : toStream(response, guard, method === 'GET' ? Infinity : options.maxAnswerBytes)
    return new Response(stream, { status: response.status, headers: response.headers })
  }
}

function toStream(response: HttpResponse, guard: FloodGuard, maxBytes: number): ReadableStream<Uint8Array> {
  const iterator = response.body[Symbol.asyncIterator]()
  const gauge = new JsonGauge({ isEventStream: /event-stream/i.test(response.headers.get('content-type') ?? '') })
  let total = 0
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const next = await iterator.next()
      if (next.done === true) return controller.close()
      total += next.value.length
      const isSmall = total <= maxBytes && guard.allows(next.value.length, 0)
      if (isSmall && gauge.allows(next.value)) return controller.enqueue(next.value)
      await iterator.return?.()
      controller.error(new Error(isSmall ? 'a message of the server is nested too deep' : 'the server sends too much'))
    },
    async cancel() {
      await iterator.return?.()
    },
  })
}
