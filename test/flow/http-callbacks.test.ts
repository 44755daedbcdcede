import { createHmac } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import type { MemoryGateway } from '../support/gateway.ts'
import { gatewaysOfThisFile } from '../support/gateways.ts'
import { receiveCallbacks as receive } from '../support/callback-receiver.ts'
import { callHttp, type Body } from '../support/http-client.ts'

const { open: openGateway, restart } = gatewaysOfThisFile()

/** Messages are remembered for longer than their callbacks are tried. */
const config = { limits: { callback_hosts: ['hooks.internal'], redelivery_ms: 2 * 24 * 3_600_000 } }
const HOOK = 'http://hooks.internal:9000/hook'

const post = (gateway: MemoryGateway, callback: unknown, content = 'Hello') =>
  callHttp(gateway, '/api/messages', { body: { id: '1', content, callback } })

const runOf = async (gateway: MemoryGateway, body: Body): Promise<Body> =>
  (await callHttp(gateway, `/api/runs/${String(body['runId'])}`)).body

describe('a callback', () => {
  it('gets the terminal frame, signed, also when the client waits', async () => {
    const gateway = await openGateway({ config })
    const received = await receive(gateway)
    const answer = await post(gateway, { url: HOOK, secret: 's3cret' })
    await gateway.clock.runUntil(() => received.length === 1)
    const [first] = received
    expect(JSON.parse(first?.body ?? '')).toEqual(answer.body)
    expect(first?.headers.get('x-clew-delivery')).toBe(answer.body['runId'])
    const hmac = createHmac('sha256', 's3cret')
      .update(first?.body ?? '')
      .digest('hex')
    expect(first?.headers.get('x-clew-signature')).toBe(`sha256=${hmac}`)
    await gateway.clock.advance(3_600_000)
    expect(received).toHaveLength(1)
    expect(await runOf(gateway, answer.body)).toMatchObject({
      callback: { state: 'delivered' },
      delivery: 'delivered',
    })
  })

  it('is not signed without a secret, and is told of a cancelled run', async () => {
    const gateway = await openGateway({ config })
    const received = await receive(gateway)
    const path = '/api/messages?wait=0'
    const { body } = await callHttp(gateway, path, { body: { content: 'count to 100', callback: { url: HOOK } } })
    await callHttp(gateway, `/api/runs/${String(body['runId'])}`, { method: 'DELETE' })
    await gateway.clock.runUntil(() => received.length === 1)
    expect(JSON.parse(received[0]?.body ?? '')).toMatchObject({ type: 'error', code: 'TURN_CANCELLED' })
    expect(received[0]?.headers.get('x-clew-signature')).toBeNull()
  })

  it('is tried again with growing pauses until it is taken', async () => {
    const gateway = await openGateway({ config })
    const received = await receive(gateway, [500, 302, 429, 404])
    const answer = await post(gateway, { url: HOOK })
    await gateway.clock.runUntil(() => received.length === 2)
    expect(await runOf(gateway, answer.body)).toMatchObject({
      callback: { state: 'pending', error: expect.any(String) },
      delivery: 'unknown',
    })
    await gateway.clock.runUntil(() => received.length === 5)
    const pauses = received.slice(1).map(({ at }, index) => at - (received[index]?.at ?? 0))
    expect(pauses).toEqual([2_000, 4_000, 8_000, 16_000])
    expect(new Set(received.map(({ body }) => body)).size).toBe(1)
  })

  it('is tried over a restart, and given up a day after the answer', async () => {
    const gateway = await openGateway({ config })
    const received = await receive(
      gateway,
      Array.from({ length: 1_000 }, () => 503),
    )
    const { body } = await post(gateway, { url: HOOK })
    await gateway.clock.runUntil(() => received.length === 2)
    const again = await restart(gateway)
    const later = await receive(
      again,
      Array.from({ length: 1_000 }, () => 503),
    )
    await again.clock.runUntil(() => later.length >= 1)
    expect(later[0]?.body).toBe(received[0]?.body)
    expect(await runOf(again, body)).toMatchObject({ callback: { state: 'pending' } })
    for (let hour = 0; hour < 24; hour++) await again.clock.advance(3_600_000)
    const count = later.length
    expect(count).toBeGreaterThan(100)
    for (let hour = 0; hour < 3; hour++) await again.clock.advance(3_600_000)
    expect(later).toHaveLength(count)
    expect(await runOf(again, body)).toMatchObject({ callback: { state: 'failed' } })
  })

  it.each([
    ['no object', 'http://hooks.internal/x'],
    ['no address', { url: 7 }],
    ['a private address', { url: 'http://127.0.0.1/x' }],
    ['a private name', { url: 'http://other.internal/x' }],
    ['another scheme', { url: 'ftp://example.com/x' }],
    ['a password in it', { url: 'https://a:b@example.com/' }],
    ['an empty secret', { url: 'https://example.com/', secret: '' }],
  ])('is refused with %s', async (_, callback) => {
    const gateway = await openGateway({ config })
    expect(await post(gateway, callback)).toMatchObject({
      status: 400,
      body: { code: 'FIELD_INVALID', field: 'callback' },
    })
  })
})
