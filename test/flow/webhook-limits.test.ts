import { describe, expect, it } from 'vitest'
import { gatewaysOfThisFile } from '../support/gateways.ts'
import type { Frame } from '../support/gateway.ts'

const gateways = gatewaysOfThisFile()

const codes = (frames: readonly Frame[]): unknown[] =>
  frames.map(({ code }) => code).filter((code) => code !== undefined)

describe('limits', () => {
  it('frame_bytes: an error frame, then close 1009', async () => {
    const gateway = await gateways.open({ config: { limits: { frame_bytes: 2_000 } } })
    const client = await gateway.connect()
    expect(await client.ask({ id: '1', content: 'x'.repeat(2_000) })).toMatchObject({ code: 'FRAME_TOO_LARGE' })
    await client.settle()
    expect(client.closed?.code).toBe(1009)
  })

  it('frames_per_second and frames_burst: RATE_LIMITED names the message or request, and passes with time', async () => {
    const gateway = await gateways.open({ config: { limits: { frames_per_second: 2, frames_burst: 3 } } })
    const [flood, other] = [await gateway.connect(), await gateway.connect()]
    for (const id of ['1', '2', '3', '4']) await flood.send({ id, content: '/help', session: id })
    await flood.send({ type: 'session.get', key: '1', requestId: 'r' })
    await flood.send('not even JSON')
    const frames = await flood.waitFor(6)
    expect(frames.filter(({ type }) => type === 'complete').map(({ messageId }) => messageId)).toEqual(['1', '2', '3'])
    expect(frames.filter(({ code }) => code === 'RATE_LIMITED').map(({ messageId }) => messageId)).toEqual([
      '4',
      undefined,
    ])
    expect(frames.find(({ requestId }) => requestId === 'r')).toMatchObject({
      type: 'session.get',
      data: { success: false, code: 'RATE_LIMITED', key: '1' },
    })
    expect(await other.ask({ id: '5', content: '/help' })).toMatchObject({ type: 'complete' })
    await gateway.clock.advance(1_000)
    expect(await flood.ask({ id: '6', content: '/help' })).toMatchObject({ type: 'complete' })
    expect(flood.closed).toBeUndefined()
  })

  it('connections: the handshake is refused with 503', async () => {
    const gateway = await gateways.open({ config: { limits: { connections: 1 } } })
    const client = await gateway.connect()
    await expect(gateway.connect()).rejects.toMatchObject({ status: 503 })
    client.socket.close(1000, '')
    await client.settle()
    await gateway.connect()
  })

  it('queued_per_session: QUEUE_FULL for that session only, never for /stop', async () => {
    const gateway = await gateways.open({ config: { limits: { queued_per_session: 2 } } })
    const client = await gateway.connect()
    await client.send({ id: '1', content: 'count to 300', session: 's' })
    await gateway.clock.advance(50)
    for (const id of ['2', '3', '4', '5']) await client.send({ id, content: 'hello', session: 's' })
    await client.settle()
    expect(client.frames.map(({ messageId, code }) => [messageId, code])).toEqual([
      ['4', 'QUEUE_FULL'],
      ['5', 'QUEUE_FULL'],
    ])
    expect((await client.ask({ id: '6', content: '/help', session: 's' }))['type']).toBe('complete')
    await client.send({ id: '7', content: '/stop', session: 's' })
    const frames = await client.waitFor(7)
    expect(frames.find(({ messageId }) => messageId === '7')).toMatchObject({ content: 'Stopped 3 messages.' })
  })

  it('queued_total: counts messages that wait for a free turn in sessions of their own', async () => {
    const gateway = await gateways.open({ config: { limits: { queued_total: 3, concurrent_turns: 1 } } })
    const client = await gateway.connect()
    for (let id = 1; id <= 8; id++) await client.send({ id, content: 'count to 200' })
    await client.settle()
    expect(new Set(codes(client.frames))).toEqual(new Set(['QUEUE_FULL']))
    expect(client.frames.length).toBeGreaterThanOrEqual(4)
    const { running, queued } = gateway.app.sessions.activity()
    expect([running, queued]).toEqual([1, 8 - client.frames.length - 1])
  })

  it('concurrent_turns: sessions take turns, and a chatty one does not starve the others', async () => {
    const gateway = await gateways.open({ config: { limits: { concurrent_turns: 1 } } })
    const client = await gateway.connect()
    for (let index = 0; index < 10; index++) await client.send({ id: `c${index}`, content: 'hello', session: 'chatty' })
    await client.send({ id: 'a', content: 'hello', session: 'a' })
    await client.send({ id: 'b', content: 'hello', session: 'b' })
    const order = (await client.waitFor(12)).map(({ messageId }) => messageId)
    expect(order.indexOf('a')).toBeLessThanOrEqual(2)
    expect(order.indexOf('b')).toBeLessThanOrEqual(3)
    expect(order.filter((id) => String(id).startsWith('c'))).toEqual(Array.from({ length: 10 }, (_, i) => `c${i}`))
  })

  it('reply_buffer_bytes: progress is thinned out for a slow reader, then it is let go with 1013', async () => {
    const gateway = await gateways.open({ config: { limits: { reply_buffer_bytes: 20_000 } } })
    const [slow, other] = [await gateway.connect('?uid=slow'), await gateway.connect()]
    // The first turn loads code, which takes real time: afterwards the clock alone decides.
    await other.ask({ id: 'first', content: 'hello' })
    await slow.send({ type: 'ack', seq: 0 })
    slow.socket.pause()
    await slow.send({ id: 'long', content: 'count to 2000', stream: true })
    const server = gateway.network.connections().find(({ url }) => url.includes('uid=slow'))?.server
    for (let index = 0; index < 30 && server?.isOpen === true; index++) {
      await slow.send({ id: `${index}`, content: 'count to 400' })
      await gateway.clock.advance(3_000)
    }
    expect(slow.frames).toEqual([])
    expect(await other.ask({ id: 'other', content: 'hello' })).toMatchObject({ type: 'complete' })
    slow.socket.resume()
    await gateway.clock.advance(1_000)
    expect(slow.closed?.code).toBe(1013)
    const back = await gateway.connect('?uid=slow')
    await gateway.clock.advance(120_000)
    const answered = new Set([...slow.terminal(), ...back.terminal()].map(({ messageId }) => messageId))
    expect(answered.has('long')).toBe(true)
    expect((await gateway.app.storage.outbox.counts()).waiting).toBe(0)
  })

  it('ids and keys: a length that would burden every row is refused, naming the field', async () => {
    const gateway = await gateways.open()
    const client = await gateway.connect()
    for (const field of ['id', 'session', 'peerId', 'topicId'])
      expect(await client.ask({ id: 'x', content: 'hello', [field]: 'y'.repeat(600) })).toMatchObject({
        code: 'FIELD_INVALID',
        field,
      })
  })
})

describe('abuse', () => {
  it('half-open clients are found out and let go, and their replies wait', async () => {
    const gateway = await gateways.open()
    const client = await gateway.connect('?uid=u')
    await client.send({ type: 'ack', seq: 0 })
    await client.send({ id: '1', content: 'hello' })
    await client.settle()
    for (const { server } of gateway.network.connections()) server.goHalfOpen()
    await gateway.clock.advance(130_000)
    expect(gateway.app.webhook.status()).toMatchObject({ connections: 0 })
    const back = await gateway.connect('?uid=u')
    expect(await back.waitFor(1)).toMatchObject([{ messageId: '1', redelivered: true }])
  })

  it('frames that arrive while stopping are stored, and answered after the next start', async () => {
    const gateway = await gateways.open()
    const client = await gateway.connect('?uid=u')
    await client.ask({ id: '0', content: 'hello', session: 's' })
    await client.send({ id: '1', content: 'count to 300', session: 's' })
    await gateway.clock.advance(50)
    const ending = new AbortController()
    const stopping = gateway.serving.stop(ending.signal)
    await client.send({ id: '2', content: 'What did I say?', session: 's', ack: true })
    await client.send({ type: 'session.get', key: 's', requestId: 'during' })
    await client.settle()
    expect(client.frames.slice(1)).toMatchObject([{ type: 'accepted', messageId: '2' }, { requestId: 'during' }])
    expect((await gateway.request('/healthz')).status).toBe(503)
    await expect(gateway.connect()).rejects.toMatchObject({ status: 503 })
    ending.abort()
    let stopped = false
    void stopping.finally(() => {
      stopped = true
    })
    await gateway.clock.runUntil(() => stopped)
    const again = await gateways.restart(gateway, { kill: true })
    const back = await again.connect('?uid=u')
    const frames = await back.waitFor(2)
    expect(frames.map(({ messageId, type }) => [messageId, type])).toEqual([
      ['1', 'complete'],
      ['2', 'complete'],
    ])
  })
})
