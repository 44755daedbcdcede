import { describe, expect, it } from 'vitest'
import type { Frame, GatewayOptions, TestClient } from '../support/gateway.ts'
import { gatewaysOfThisFile } from '../support/gateways.ts'

/**
 * Document 001, “Session Control Messages”: every JSON example and the client, named by the line it stands at. A frame is
 * sent as the document has it; what it says about the answer is asserted.
 */
const gateways = gatewaysOfThisFile()

async function connect(options: GatewayOptions = {}): Promise<TestClient> {
  const gateway = await gateways.open(options)
  return gateway.connect('?uid=abc-123-def')
}

const dataOf = (frame: Frame): Frame => frame['data'] as Frame

describe('001: messages', () => {
  it.each([
    [
      'L24',
      { id: 'msg-001', content: '继续我们之前的对话', session: 'my-custom-session-key' },
      'my-custom-session-key',
    ],
    ['L48', { id: 'msg-123', content: '开始新对话' }, 'webhook:msg-123'],
    ['L234', { id: 'msg-001', content: 'Hello', session: 'user-123-conversation' }, 'user-123-conversation'],
    [
      'L261',
      { id: 'msg-1001', content: '群里聊新话题', peerKind: 'group', peerId: '-1001234567890', topicId: '42' },
      'agent:main:webhook:group:-1001234567890:topic:42',
    ],
    [
      'L275',
      { id: 'msg-1002', content: '继续这个私聊线程', peerKind: 'dm', peerId: 'user-abc', threadId: '99' },
      'agent:main:webhook:dm:user-abc:thread:99',
    ],
  ])('%s goes to its session and is answered there', async (_line, frame, key) => {
    const client = await connect()
    const answer = await client.ask(frame)
    expect(answer).toMatchObject({ type: 'complete', messageId: frame.id, session: key })
    expect(String(answer['content'])).not.toBe('')
    expect(dataOf(await client.ask({ type: 'session.get', key }))['key']).toBe(key)
  })

  it('L61: in the global scope all messages share one session', async () => {
    const client = await connect({ config: { session_scope: 'global' } })
    expect(await client.ask({ id: 'msg-456', content: '在全局会话中发言' })).toMatchObject({ session: 'global' })
    expect(await client.ask({ id: 'msg-457', content: '在全局会话中发言' })).toMatchObject({ session: 'global' })
    expect(dataOf(await client.ask({ type: 'session.list' }))['count']).toBe(1)
  })
})

describe('001: reset', () => {
  it.each([
    ['L78', { id: 'msg-789', content: '/new' }],
    ['L87', { id: 'msg-790', content: '/new 开始新的话题' }],
  ])('%s begins anew: nothing from before is known', async (_line, frame) => {
    const client = await connect({ config: { session_scope: 'global' } })
    await client.ask({ id: 'before', content: 'I like green tea.' })
    const before = dataOf(await client.ask({ type: 'session.get', key: 'global' }))['sessionId']
    expect(await client.ask(frame)).toMatchObject({ type: 'complete', messageId: frame.id, session: 'global' })
    expect(dataOf(await client.ask({ type: 'session.get', key: 'global' }))['sessionId']).not.toBe(before)
    const answer = await client.ask({ id: 'after', content: 'What did I say?' })
    expect(answer['content']).not.toContain('green tea')
  })

  it('L96 is answered as L105 says, and the conversation begins anew', async () => {
    const client = await connect()
    await client.ask({ id: 'msg-123', content: 'I like green tea.' })
    expect(await client.ask({ type: 'session.reset', key: 'webhook:msg-123' })).toMatchObject({
      type: 'session.reset',
      data: { success: true, key: 'webhook:msg-123' },
    })
    const answer = await client.ask({ id: '2', content: 'What did I say?', session: 'webhook:msg-123' })
    expect(answer['content']).not.toContain('green tea')
  })
})

describe('001: look-ups', () => {
  it('L121 and L130 find the same row, with the fields of L139', async () => {
    const client = await connect()
    await client.ask({ id: 'msg-123', content: 'Hello' })
    const byKey = await client.ask({ type: 'session.get', key: 'webhook:msg-123' })
    expect(byKey).toMatchObject({
      type: 'session.get',
      data: {
        key: 'webhook:msg-123',
        sessionId: expect.stringMatching(/^sess_/u),
        updatedAt: expect.any(Number),
        deliveryContext: { channel: 'webhook', to: 'msg-123', accountId: 'abc-123-def' },
        lastChannel: 'webhook',
        lastTo: 'msg-123',
      },
    })
    const byId = await client.ask({ type: 'session.get', id: dataOf(byKey)['sessionId'] })
    expect(dataOf(byId)).toEqual(dataOf(byKey))
  })

  it('L163 lists all of them, with the fields of L171', async () => {
    const client = await connect()
    for (const id of ['msg-001', 'msg-002']) await client.ask({ id, content: 'Hello' })
    const row = (id: string): Frame => ({
      key: `webhook:${id}`,
      sessionId: expect.stringMatching(/^sess_/u),
      updatedAt: expect.any(Number),
      lastChannel: 'webhook',
      lastTo: id,
    })
    const answer = await client.ask({ type: 'session.list' })
    expect(answer).toMatchObject({ type: 'session.list', data: { count: 2, total: 2 } })
    expect(dataOf(answer)['sessions']).toEqual(
      expect.arrayContaining([expect.objectContaining(row('msg-001')), expect.objectContaining(row('msg-002'))]),
    )
  })

  it('L202 is answered as L211 says, and the session is gone', async () => {
    const client = await connect()
    await client.ask({ id: 'msg-123', content: 'Hello' })
    expect(await client.ask({ type: 'session.delete', key: 'webhook:msg-123' })).toMatchObject({
      type: 'session.delete',
      data: { success: true, key: 'webhook:msg-123' },
    })
    expect(dataOf(await client.ask({ type: 'session.list' }))).toMatchObject({ sessions: [], count: 0 })
  })
})

describe('001: what lies on the disk', () => {
  it('L296: the file is adopted and written in the same shape, and a restart brings its sessions back', async () => {
    const row = {
      sessionId: 'sess_1234567890',
      updatedAt: 1_699_000_000_000,
      deliveryContext: { channel: 'webhook', to: 'msg-001' },
      webhookMessageId: 'msg-001',
      webhookSessionId: 'webhook:msg-001',
    }
    const first = await gateways.open()
    await first.stop()
    first.files.plant('/home/clew/sessions.json', JSON.stringify({ 'webhook:msg-001': row }))
    const gateway = await gateways.restart(first, { kill: true })
    const client = await gateway.connect()
    expect(dataOf(await client.ask({ type: 'session.get', id: 'sess_1234567890' }))).toMatchObject({
      key: 'webhook:msg-001',
      updatedAt: row.updatedAt,
      deliveryContext: row.deliveryContext,
    })
    await gateway.stop()
    const file = JSON.parse(gateway.files.text('/home/clew/sessions.json') ?? '') as Record<string, Frame>
    expect(file['webhook:msg-001']).toMatchObject(row)
    const again = await gateways.restart(gateway, { kill: true })
    const later = await again.connect()
    expect(dataOf(await later.ask({ type: 'session.list' }))).toMatchObject({
      count: 1,
      sessions: [{ key: 'webhook:msg-001', sessionId: 'sess_1234567890' }],
    })
  })

  it('L391: the configuration is taken as it stands, comment included', async () => {
    const first = await gateways.open()
    await first.stop()
    first.files.plant(
      '/home/clew/bridge.json',
      `{
  "webhook_url": "ws://localhost:8080/ws",
  "agent_id": "main",
  "session_scope": "per-sender"  // 或 "global"
}`,
    )
    const gateway = await gateways.restart(first, { kill: true })
    expect(gateway.serving.port).toBe(8080)
    const client = await gateway.connect()
    expect(await client.ask({ id: 'x', content: 'Hello' })).toMatchObject({ session: 'webhook:x' })
  })
})

describe('001: L319, the client', () => {
  it('gets one frame for each frame it sends, in order', async () => {
    const gateway = await gateways.open()
    const client = await gateway.connect()
    const received: Frame[] = []
    for (const [index, frame] of [
      { id: 'msg-001', content: '你好，我是新用户' },
      { id: 'msg-002', content: '你刚才说了什么？', session: 'webhook:msg-001' },
      { id: 'msg-003', content: '/new 让我们重新开始' },
      { type: 'session.get', key: 'webhook:msg-001' },
      { type: 'session.list' },
    ].entries()) {
      await client.send(frame)
      await gateway.clock.runUntil(() => client.frames.length > index)
      received.push(client.frames[index] ?? {})
    }
    // A client that calls `recv` once per message must never find a preview in its place.
    expect(client.frames).toEqual(received)
    expect(received).toMatchObject([
      { type: 'complete', messageId: 'msg-001', session: 'webhook:msg-001' },
      { type: 'complete', messageId: 'msg-002', session: 'webhook:msg-001' },
      { type: 'complete', messageId: 'msg-003', session: 'webhook:msg-003' },
      { type: 'session.get', data: { key: 'webhook:msg-001' } },
      { type: 'session.list', data: { count: 2 } },
    ])
    // The answer to the second message quotes the answer to the first.
    expect(received[1]?.['content']).toContain(String(received[0]?.['content']).slice(0, 20))
  })
})
