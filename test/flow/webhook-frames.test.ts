import { describe, expect, it } from 'vitest'
import { gatewaysOfThisFile } from '../support/gateways.ts'
import type { Frame, TestClient } from '../support/gateway.ts'
import { findSession } from '../../src/session/find-session.ts'

const gateways = gatewaysOfThisFile()

const dataOf = (frame: Frame): Frame => frame['data'] as Frame

describe('session keys, end to end', () => {
  const rows: readonly [string, Frame, string][] = [
    ['no routing field', { id: 'msg-123' }, 'webhook:msg-123'],
    ['a number as id', { id: 0 }, 'webhook:0'],
    ['session, trimmed and folded', { id: 'a', session: ' My-Custom-KEY ' }, 'my-custom-key'],
    ['session beats peer fields', { id: 'b', session: 'k', peerKind: 'group', peerId: 'g' }, 'k'],
    ['blank session', { id: 'c', session: '  ' }, 'webhook:c'],
    [
      'group topic of the seed',
      { id: 'msg-1001', peerKind: 'group', peerId: '-1001234567890', topicId: '42' },
      'agent:main:webhook:group:-1001234567890:topic:42',
    ],
    [
      'dm thread of the seed',
      { id: 'msg-1002', peerKind: 'dm', peerId: 'user-abc', threadId: '99' },
      'agent:main:webhook:dm:user-abc:thread:99',
    ],
    [
      'numbers as ids',
      { id: 'd', peerKind: 'group', peerId: -100, topicId: 7 },
      'agent:main:webhook:group:-100:topic:7',
    ],
    [
      'thread as topic',
      { id: 'e', peerKind: 'channel', peerId: 'C', threadId: '9' },
      'agent:main:webhook:channel:c:topic:9',
    ],
    ['aliases', { id: 'f', chatType: 'GROUP', chatId: 'G' }, 'agent:main:webhook:group:g'],
    ['a sender alone', { id: 'g', senderId: 'U7' }, 'agent:main:webhook:dm:u7'],
    ['peer zero', { id: 'h', peerId: 0 }, 'agent:main:webhook:dm:0'],
    ['topic in a dm', { id: 'i', peerKind: 'dm', peerId: 'u', topicId: '1' }, 'agent:main:webhook:dm:u'],
    ['unknown kind', { id: 'j', peerKind: 'private', peerId: 'u' }, 'webhook:j'],
    ['kind without peer', { id: 'k', peerKind: 'group', senderId: 'u' }, 'webhook:k'],
    ['a colon in an id', { id: 'l', peerId: 'a:b' }, 'agent:main:webhook:dm:a%3ab'],
  ]

  it('are the same in answers, in the index and for control messages', async () => {
    const gateway = await gateways.open()
    const client = await gateway.connect('?uid=abc-123-def')
    for (const [name, frame, key] of rows) {
      const answer = await client.ask({ content: 'hello', ...frame })
      expect([name, answer['session'], answer['messageId']]).toEqual([name, key, frame['id']])
      const row = dataOf(await client.ask({ type: 'session.get', key: key.toUpperCase() }))
      const to = String(frame['peerId'] ?? frame['chatId'] ?? frame['senderId'] ?? frame['id'])
      expect(row).toEqual({
        key,
        sessionId: expect.stringMatching(/^sess_[0-9a-f]{32}$/u),
        updatedAt: expect.any(Number),
        deliveryContext: expect.objectContaining({ channel: 'webhook', to, accountId: 'abc-123-def' }),
        lastChannel: 'webhook',
        lastTo: to,
      })
      expect(dataOf(await client.ask({ type: 'session.get', id: row['sessionId'] }))['key']).toBe(key)
    }
  })

  it('continue message MSG-1 when the session is named in any case', async () => {
    const gateway = await gateways.open()
    const client = await gateway.connect()
    await client.ask({ id: 'MSG-1', content: 'I like tea.' })
    const answer = await client.ask({ id: '2', content: 'What did I say?', session: 'webhook:MSG-1' })
    expect(answer).toMatchObject({ session: 'webhook:msg-1', content: expect.stringContaining('I like tea.') })
  })

  it.each([
    ['global', 'global'],
    ['per-connection', 'webhook:ann'],
  ])('follow the scope %s', async (scope, key) => {
    const gateway = await gateways.open({ config: { session_scope: scope } })
    const client = await gateway.connect('?uid=Ann')
    expect((await client.ask({ id: '1', content: 'hello' }))['session']).toBe(key)
    expect((await client.ask({ id: '2', content: 'hello', senderId: 'u' }))['session']).toBe('agent:main:webhook:dm:u')
  })

  it('keep their case with preserve_case, and a message without id gets one', async () => {
    const gateway = await gateways.open({ config: { preserve_case: true, agent_id: 'Bot' } })
    const client = await gateway.connect()
    expect((await client.ask({ id: '1', content: 'hello', peerId: 'oABC' }))['session']).toBe(
      'agent:Bot:webhook:dm:oABC',
    )
    expect((await client.ask({ id: '2', content: 'hello', peerId: 'oabc' }))['session']).toBe(
      'agent:Bot:webhook:dm:oabc',
    )
    const unnamed = await client.ask({ content: 'hello' })
    expect(unnamed['session']).toBe(`webhook:${String(unnamed['messageId'])}`)
  })
})

describe('an index another program wrote', () => {
  it('is adopted whole: its sessions go on under their own keys, fields we do not know are kept', async () => {
    const gateway = await gateways.open()
    await gateway.stop()
    const foreign = {
      'webhook:MSG-7': { sessionId: 'sess_1234567890', updatedAt: 1_699_000_000_000, color: 'blue' },
      'webhook:msg-8': { sessionId: 'sess_8', updatedAt: 1_699_000_100_000 },
    }
    gateway.files.plant('/home/clew/sessions.json', JSON.stringify(foreign))
    const again = await gateways.restart(gateway, { kill: true })
    const client = await again.connect()
    expect(dataOf(await client.ask({ type: 'session.get', id: 'sess_1234567890' }))).toMatchObject({
      key: 'webhook:MSG-7',
    })
    const listed = dataOf(await client.ask({ type: 'session.list' }))['sessions'] as Frame[]
    expect(listed.map(({ key }) => key)).toEqual(['webhook:msg-8', 'webhook:MSG-7'])
    expect((await client.ask({ id: '1', content: 'hello', session: 'webhook:msg-7' }))['session']).toBe('webhook:MSG-7')
    await again.stop()
    const file = JSON.parse(again.files.text('/home/clew/sessions.json') ?? '') as Record<string, Frame>
    expect(Object.keys(file).sort()).toEqual(['webhook:MSG-7', 'webhook:msg-8'])
    expect(file['webhook:MSG-7']).toMatchObject({ sessionId: 'sess_1234567890', color: 'blue', lastTo: '1' })
  })

  it('is written within two seconds while running, and exactly at a stop', async () => {
    const gateway = await gateways.open()
    const client = await gateway.connect()
    await client.ask({ id: '1', content: 'hello' })
    await gateway.clock.advance(2_000)
    expect(JSON.parse(gateway.files.text('/home/clew/sessions.json') ?? '')).toHaveProperty(['webhook:1'])
    const session = (key: string): Frame => ({ type: 'session.get', key })
    await client.ask({ id: '2', content: 'hello' })
    const rows = [dataOf(await client.ask(session('webhook:1'))), dataOf(await client.ask(session('webhook:2')))]
    await gateway.stop()
    const file = JSON.parse(gateway.files.text('/home/clew/sessions.json') ?? '') as Record<string, Frame>
    expect(Object.values(file).map(({ sessionId, updatedAt }) => [sessionId, updatedAt])).toEqual(
      rows.map(({ sessionId, updatedAt }) => [sessionId, updatedAt]),
    )
    expect(file['webhook:1']).toMatchObject({
      webhookMessageId: '1',
      webhookSessionId: 'webhook:1',
      deliveryContext: { channel: 'webhook', to: '1' },
    })
  })
})

describe('control messages', () => {
  it('answer in the seed’s form, with the request’s id, and say what is wrong', async () => {
    const gateway = await gateways.open()
    const client = await gateway.connect()
    await client.ask({ id: 'msg-123', content: 'hello' })
    const key = 'webhook:msg-123'
    for (const type of ['session.cancel', 'session.reset', 'session.delete']) {
      const extra = type === 'session.cancel' ? { cancelled: 0 } : {}
      expect(await client.ask({ type, key, requestId: 7 })).toEqual({
        type,
        data: { success: true, key, ...extra },
        requestId: 7,
      })
    }
    const wrong: readonly [Frame, Frame][] = [
      [
        { type: 'session.get', key: 'Nobody' },
        { code: 'SESSION_NOT_FOUND', key: 'Nobody' },
      ],
      [
        { type: 'session.get', id: 'sess_none' },
        { code: 'SESSION_NOT_FOUND', key: 'sess_none' },
      ],
      [
        { type: 'session.reset', key },
        { code: 'SESSION_NOT_FOUND', key },
      ],
      [
        { type: 'session.delete', key },
        { code: 'SESSION_NOT_FOUND', key },
      ],
      [
        { type: 'session.cancel', key },
        { code: 'SESSION_NOT_FOUND', key },
      ],
      [{ type: 'session.get' }, { code: 'FIELD_INVALID' }],
      [{ type: 'session.reset', key: '  ' }, { code: 'FIELD_INVALID' }],
      [{ type: 'session.delete', key: {} }, { code: 'FIELD_INVALID' }],
      [{ type: 'session.list', limit: 0 }, { code: 'FIELD_INVALID' }],
      [{ type: 'session.list', limit: 1.5 }, { code: 'FIELD_INVALID' }],
      [{ type: 'session.list', cursor: 'nonsense' }, { code: 'FIELD_INVALID' }],
      [{ type: 'session.list', prefix: 4 }, { code: 'FIELD_INVALID' }],
    ]
    for (const [frame, data] of wrong) {
      expect(await client.ask({ ...frame, requestId: 'r' })).toEqual({
        type: frame['type'],
        data: expect.objectContaining({ success: false, error: expect.any(String), ...data }),
        requestId: 'r',
      })
    }
    expect(dataOf(await client.ask({ type: 'session.list' }))).toEqual({ sessions: [], count: 0, total: 0 })
  })

  it('list newest first, in pages, by prefix', async () => {
    const gateway = await gateways.open()
    const client = await gateway.connect()
    for (const id of ['a1', 'a2', 'b1', 'a3']) {
      await client.ask({ id, content: 'hello', session: id })
      await gateway.clock.advance(10)
    }
    const keys = (frame: Frame): unknown[] => (dataOf(frame)['sessions'] as Frame[]).map(({ key }) => key)
    expect(keys(await client.ask({ type: 'session.list' }))).toEqual(['a3', 'b1', 'a2', 'a1'])
    const first = await client.ask({ type: 'session.list', limit: 2, prefix: 'a' })
    expect(keys(first)).toEqual(['a3', 'a2'])
    expect(dataOf(first)).toMatchObject({ count: 2, total: 3 })
    const rest = await client.ask({ type: 'session.list', limit: 2, prefix: 'a', cursor: dataOf(first)['nextCursor'] })
    expect(keys(rest)).toEqual(['a1'])
    expect(dataOf(rest)).not.toHaveProperty('nextCursor')
  })

  it('cancel stops the turn and drops what waits, each with its one terminal frame', async () => {
    const gateway = await gateways.open()
    const client = await gateway.connect()
    for (const id of ['1', '2', '3']) await client.send({ id, content: 'count to 300', session: 's' })
    await gateway.clock.advance(100)
    await client.send({ type: 'session.cancel', key: 's', requestId: 'c' })
    const frames = await client.waitFor(4)
    expect(frames.slice(0, 3).map(({ messageId, code, reason }) => [messageId, code, reason])).toEqual(
      ['1', '2', '3'].map((id) => [id, 'TURN_CANCELLED', 'user']),
    )
    expect(frames[3]).toMatchObject({ requestId: 'c', data: { success: true, key: 's', cancelled: 3 } })
    await gateway.clock.advance(30_000)
    expect(client.frames).toHaveLength(4)
  })
})

describe('reset', () => {
  const forms = [
    '/new',
    '/reset',
    '/NEW',
    ' /Reset ',
    '/new\n',
    '/new What did I say?',
    '/reset\tWhat did I say?',
    '/New\nWhat did I say?',
  ]

  it.each(forms)('as %j forgets, keeps delivery and settings, archives the old conversation', async (content) => {
    const gateway = await gateways.open()
    const client = await gateway.connect()
    await client.ask({ id: '1', content: 'My cat is called Mimi.', session: 's' })
    await client.ask({ id: '2', content: '/model demo', session: 's' })
    const { storage } = gateway.app
    const before = (await findSession(storage, { key: 's' })).record
    const answer = await client.ask({ id: '3', content, session: 's' })
    expect(answer).toMatchObject({ type: 'complete', session: 's', messageId: '3' })
    const hasText = content.trim().length > 7
    if (hasText) expect(answer['content']).toContain('beginning')
    const later = await client.ask({ id: '4', content: 'What did I say?', session: 's' })
    expect(later['content']).not.toContain('Mimi')
    const after = (await findSession(storage, { key: 's' })).record
    expect(after.sessionId).not.toBe(before.sessionId)
    expect(after.archived?.map(({ sessionId }) => sessionId)).toEqual([before.sessionId])
    expect(after.modelOverride).toBe(before.modelOverride)
  })
})

describe('other texts with a slash', () => {
  const ask = async (client: TestClient, content: string): Promise<Frame> =>
    client.ask({ id: content, content, session: 'x' })

  it('are local commands, hints or ordinary messages', async () => {
    const gateway = await gateways.open()
    const client = await gateway.connect()
    expect((await ask(client, '/help'))['content']).toContain('/cleanup')
    expect((await ask(client, '/STATUS'))['content']).toContain('session x')
    expect((await ask(client, '/stop'))['content']).toBe('Nothing is running.')
    expect((await ask(client, '/model'))['content']).toContain('demo')
    expect((await ask(client, '/model nobody/nothing'))['type']).toBe('complete')
    expect((await ask(client, '/hepl'))['content']).toContain('Did you mean /help?')
    expect((await ask(client, '/xyzzy123'))['content']).toContain('There is no command /xyzzy123.')
    expect((await ask(client, '/usr/bin/env node'))['content']).toContain('/usr/bin/env node')
    expect((await ask(client, '/etc/hosts'))['content']).toContain('/etc/hosts')
    expect((await ask(client, '/shrug what a day'))['content']).toContain('/shrug what a day')
    expect((await ask(client, '//help'))['content']).toContain('/help')
    expect((await ask(client, '//help'))['content']).not.toContain('//help')
    for (const content of ['/compact', '/cleanup', '/restore'])
      expect((await ask(client, content))['type']).toBe('complete')
  })

  it('/stop ends the running answer of its session only', async () => {
    const gateway = await gateways.open()
    const client = await gateway.connect()
    await client.send({ id: '1', content: 'count to 300', session: 's' })
    await client.send({ id: '2', content: 'count to 20', session: 't' })
    await gateway.clock.advance(50)
    await client.send({ id: '3', content: '/stop', session: 's' })
    const frames = await client.waitFor(3)
    const byId = Object.fromEntries(frames.map((frame) => [frame['messageId'], frame]))
    expect(byId['1']).toMatchObject({ code: 'TURN_CANCELLED', reason: 'user' })
    expect(byId['3']).toMatchObject({ content: 'Stopped 1 message.' })
    expect(byId['2']).toMatchObject({ type: 'complete' })
  })
})
