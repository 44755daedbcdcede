import { describe, expect, it } from 'vitest'
import { HttpFailure } from '../../../src/base/http.ts'
import { GatewayError } from '../../../src/core/errors.ts'
import { retryAfterOf } from '../../../src/provider/retry.ts'
import { collect, fixture, REQUEST, setUp, textOfEvents } from '../../support/provider-streams.ts'
import { StreamHttp, type ScriptedAnswer } from '../../support/stream-http.ts'

const GOOD: ScriptedAnswer = { body: fixture('anthropic-text') }
const OVERLOADED: ScriptedAnswer = {
  status: 529,
  body: '{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
}

function limited(headers: Readonly<Record<string, string>>): ScriptedAnswer {
  return { status: 429, headers, body: '{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}' }
}

async function ask(
  ...answers: readonly ScriptedAnswer[]
): Promise<Awaited<ReturnType<typeof collect>> & { http: StreamHttp }> {
  const http = new StreamHttp(...answers)
  return { ...(await collect(setUp('anthropic', http))), http }
}

describe('retries', () => {
  it('repeats a request that met an overloaded provider, and says so', async () => {
    const { events, message, http } = await ask(OVERLOADED, OVERLOADED, GOOD)
    expect(http.requests).toHaveLength(3)
    expect(events.filter((event) => event.type === 'retry')).toMatchObject([
      { attempt: 1, code: 'MODEL_OVERLOADED' },
      { attempt: 2, code: 'MODEL_OVERLOADED' },
    ])
    expect(message?.content).toEqual([{ type: 'text', text: 'Hello, 世界 👋!' }])
  })

  it('sends the same bytes each time', async () => {
    const { http } = await ask(OVERLOADED, GOOD)
    expect(http.requests.map(({ body }) => body)).toEqual([REQUEST.body, REQUEST.body])
  })

  it('gives up after the configured number of attempts', async () => {
    const { error, http } = await ask(OVERLOADED)
    expect(http.requests).toHaveLength(4)
    expect(error).toMatchObject({ code: 'MODEL_OVERLOADED', facts: { attempts: 4, status: 529, visible: false } })
  })

  it('waits at least as long as the provider asks, with some jitter on top', async () => {
    const { events } = await ask(limited({ 'retry-after': '7' }), GOOD)
    const [delayMs = 0] = events.flatMap((event) => (event.type === 'retry' ? [event.delayMs] : []))
    expect(delayMs).toBeGreaterThanOrEqual(7000)
    expect(delayMs).toBeLessThan(7500)
  })

  it('does not wait when the provider asks for too much, but tells how much', async () => {
    const { error, http } = await ask(limited({ 'retry-after': '3600' }))
    expect(http.requests).toHaveLength(1)
    expect(error).toMatchObject({ code: 'MODEL_RATE_LIMITED', facts: { retryAfterMs: 3_600_000 } })
  })

  it('honours the delay Google puts into the error body', async () => {
    const body = JSON.stringify({
      error: {
        code: 429,
        message: 'You exceeded your current quota, please check your plan and billing details.',
        status: 'RESOURCE_EXHAUSTED',
        details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '11.5s' }],
      },
    })
    const http = new StreamHttp({ status: 429, body }, { body: fixture('google-text') })
    const { events } = await collect(setUp('google', http))
    expect(events[0]).toMatchObject({ type: 'retry', code: 'MODEL_RATE_LIMITED' })
    expect(events[0]?.type === 'retry' && events[0].delayMs).toBeGreaterThanOrEqual(11_500)
  })

  it('obeys x-should-retry in both directions', async () => {
    const refused = { ...OVERLOADED, headers: { 'x-should-retry': 'false' } }
    expect((await ask(refused, GOOD)).http.requests).toHaveLength(1)
    const conflict = { status: 409, headers: { 'x-should-retry': 'true' }, body: '{}' }
    expect((await ask(conflict, GOOD)).message).toBeDefined()
  })

  it.each([400, 401, 402, 403, 404, 413, 422])('never repeats a request refused with %i', async (status) => {
    const { error, http } = await ask({ status, body: '{"error":{"message":"no"}}' })
    expect(http.requests).toHaveLength(1)
    expect(error).toBeInstanceOf(GatewayError)
  })

  it('repeats a stream cut during thinking, and none cut after text', async () => {
    const bytes = fixture('anthropic-thinking-tools')
    const inThinking = bytes.subarray(0, bytes.indexOf('signature_delta'))
    const again = await ask({ body: inThinking, ending: 'reset' }, GOOD)
    expect(again.message).toBeDefined()
    expect(textOfEvents(again.events, 'thinking-delta')).toBe('The user wants two cities.')

    const text = fixture('anthropic-text')
    const inText = text.subarray(0, text.indexOf('content_block_stop'))
    const cut = await ask({ body: inText, ending: 'reset' }, GOOD)
    expect(cut.http.requests).toHaveLength(1)
    expect(cut.error).toMatchObject({ code: 'MODEL_STREAM_CUT', facts: { visible: true } })
    expect((cut.error as GatewayError).message).toContain('only a part')
  })

  it('repeats after a connection that could not be made and after silence', async () => {
    const refused = new HttpFailure('connect', 'refused', 'ECONNREFUSED')
    const silent = new HttpFailure('first-byte-timeout', 'silence')
    const { events, message } = await ask({ failure: refused }, { failure: silent }, GOOD)
    expect(events.flatMap((event) => (event.type === 'retry' ? [event.code] : []))).toEqual([
      'MODEL_NETWORK',
      'MODEL_TIMEOUT',
    ])
    expect(message).toBeDefined()
  })

  it('stops waiting at once when aborted', async () => {
    const abort = new AbortController()
    const { provider, clock } = setUp('anthropic', new StreamHttp(OVERLOADED))
    const stream = provider.stream(REQUEST, abort.signal)[Symbol.asyncIterator]()
    expect(await stream.next()).toMatchObject({ value: { type: 'retry' } })
    const next = stream.next()
    const reason = new Error('the user stopped')
    abort.abort(reason)
    await expect(next).rejects.toBe(reason)
    expect(clock.pending).toBe(0)
  })
})

describe('a server that keeps the connection open behind a finished answer', () => {
  it.each([
    ['anthropic', 'anthropic-text'],
    ['completions', 'completions-text'],
    ['responses', 'responses-text'],
    ['google', 'google-text'],
  ] as const)('does not keep anybody waiting: %s', async (family, name) => {
    const http = new StreamHttp({ body: fixture(name), ending: 'hang' })
    const { message, error } = await collect(setUp(family, http))
    expect(error).toBeUndefined()
    expect(message?.stopReason).toBe('stop')
  })
})

describe('retry-after', () => {
  const now = Date.UTC(2026, 10, 15, 12, 0, 0)

  it.each([
    [{ 'retry-after-ms': '250' }, 250],
    [{ 'retry-after': '3' }, 3000],
    [{ 'retry-after': '1.5' }, 1500],
    [{ 'retry-after': 'Sun, 15 Nov 2026 12:00:10 GMT' }, 10_000],
    [{ 'retry-after': 'Sun, 15 Nov 2026 11:00:00 GMT' }, 0],
    [{ 'retry-after': 'soon' }, undefined],
    [{ 'retry-after': '' }, undefined],
    [{}, undefined],
  ])('reads %j as %s ms', (headers: Record<string, string>, expected) => {
    expect(retryAfterOf(new Headers(headers), now)).toBe(expected)
  })
})
