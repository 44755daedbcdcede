import { describe, expect, it } from 'vitest'
import type { Intake } from '../../src/channel/channel.ts'
import type { SessionId, SessionKey } from '../../src/core/ids.ts'
import { UNKNOWN_OWNER } from '../../src/core/inbound.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../src/testing/memory-files.ts'
import { openWaiting } from '../support/waiting-model.ts'
import type { MemoryGateway } from '../support/gateway.ts'
import { gatewaysOfThisFile } from '../support/gateways.ts'

const { open: openGateway, restart } = gatewaysOfThisFile()

type Row = Record<string, unknown>

async function call(gateway: MemoryGateway, path: string, token?: string, method = 'GET'): Promise<Row> {
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const { status, text } = await gateway.request(path, { method, headers })
  return { status, ...(JSON.parse(text) as Row) }
}

describe('two strangers', () => {
  it('whose messages have the same id do not meet, and each reply names its conversation', async () => {
    const gateway = await openGateway()
    const [ann, bob] = [await gateway.connect(), await gateway.connect()]
    expect(await ann.ask({ id: '1', content: 'I like green tea' })).toMatchObject({ session: 'webhook:1' })
    const answer = await bob.ask({ id: '1', content: 'What did I say?' })
    expect(answer['session']).toMatch(/^webhook:1~[0-9a-f]{6}$/u)
    expect(answer['content']).not.toContain('green tea')
    const again = await bob.ask({ id: '1', content: 'And now?' })
    expect(again['session']).toBe(answer['session'])
    expect((await ann.ask({ id: '1', content: 'What did I say?' }))['session']).toBe('webhook:1')
  })

  it('do not meet either while the first message is being made durable', async () => {
    const gateway = await openGateway()
    const clients = await Promise.all(['ann', 'bob', 'cem'].map((uid) => gateway.connect(`?uid=${uid}`)))
    const answers = await Promise.all(clients.map((client) => client.ask({ id: '7', content: 'hello' })))
    expect(new Set(answers.map(({ session }) => session)).size).toBe(3)
  })

  it('who send the same message are both answered; the same one again is a redelivery, also after a restart', async () => {
    const gateway = await openGateway()
    const frame = { id: '1', content: 'hello' }
    const first = await (await gateway.connect('?uid=ann')).ask(frame)
    const second = await (await gateway.connect('?uid=bob')).ask(frame)
    expect(second).not.toHaveProperty('redelivered')
    expect(second['runId']).not.toBe(first['runId'])
    const again = await restart(gateway)
    expect(await (await again.connect('?uid=bob')).ask(frame)).toEqual({ ...second, redelivered: true })
    expect(await (await again.connect('?uid=ann')).ask(frame)).toEqual({ ...first, redelivered: true })
  })

  it('meet where they say so: an explicit session is shared on purpose', async () => {
    const gateway = await openGateway()
    await (await gateway.connect('?uid=ann')).ask({ id: '1', content: 'I like green tea', session: 'kitchen' })
    const answer = await (
      await gateway.connect('?uid=bob')
    ).ask({ id: '1', content: 'What did I say?', session: 'kitchen' })
    expect(answer).toMatchObject({ session: 'kitchen', content: expect.stringContaining('green tea') })
  })

  it('without any identity begin a conversation each time, and nothing of theirs is taken for a redelivery', async () => {
    const clock = new ManualClock()
    const accepted: { key: string; duplicate: boolean }[] = []
    const send = async (intake: Intake): Promise<void> => {
      for (let times = 0; times < 3; times++) {
        accepted.push(
          await intake.accept({
            channel: 'early',
            account: UNKNOWN_OWNER,
            messageId: '1',
            text: 'hello',
            attachments: [],
            route: {},
            replyTo: {},
          }),
        )
      }
    }
    const gateway = await openWaiting({
      clock,
      files: new MemoryFiles({ now: () => clock.now() }),
      duringStart: send,
    })
    expect(new Set(accepted.map(({ key }) => key)).size).toBe(3)
    expect(accepted.some(({ duplicate }) => duplicate)).toBe(false)
    await gateway.stop()
  })
})

describe('tokens with names', () => {
  const [APP, SHOP, BOSS, WATCH] = [
    'app-0123456789abcdef',
    'shop-0123456789abcdef',
    'boss-0123456789abcdef',
    'watch-0123456789abcd',
  ]
  const config = {
    listen: {
      tokens: {
        app: { token: APP, sessions: 'own' },
        shop: { token: SHOP, sessions: 'own' },
        boss: { token: BOSS, sessions: 'all', admin: true },
        watch: { token: WATCH, sessions: 'all' },
      },
    },
  }

  it('see, continue, reset and delete only what they began', async () => {
    const gateway = await openGateway({ config })
    const [app, shop] = [await gateway.connect(`?token=${APP}`), await gateway.connect(`?token=${SHOP}`)]
    await app.ask({ id: '1', content: 'I like green tea', session: 'kitchen' })
    await shop.ask({ id: '2', content: 'hello', session: 'counter' })
    expect(await shop.ask({ id: '3', content: 'What did I say?', session: 'kitchen' })).toMatchObject({
      type: 'error',
      code: 'SESSION_NOT_FOUND',
      messageId: '3',
    })
    for (const type of ['session.get', 'session.reset', 'session.delete', 'session.cancel'])
      expect(await shop.ask({ type, key: 'kitchen' })).toMatchObject({
        data: { success: false, code: 'SESSION_NOT_FOUND', key: 'kitchen' },
      })
    const { sessionId } = (await call(gateway, '/api/sessions/kitchen', APP))['session'] as { sessionId: string }
    expect(await shop.ask({ type: 'session.get', id: sessionId })).toMatchObject({
      data: { code: 'SESSION_NOT_FOUND' },
    })
    expect(await shop.ask({ type: 'session.list' })).toMatchObject({
      data: { count: 1, total: 1, sessions: [{ key: 'counter' }] },
    })
    for (const [method, path] of [
      ['GET', '/api/sessions/kitchen'],
      ['GET', `/api/sessions/${sessionId}`],
      ['POST', '/api/sessions/kitchen/reset'],
      ['POST', '/api/sessions/kitchen/cancel'],
      ['POST', '/api/sessions/kitchen/restore'],
      ['DELETE', '/api/sessions/kitchen'],
    ] as const)
      expect(await call(gateway, path, SHOP, method)).toMatchObject({ status: 404, code: 'SESSION_NOT_FOUND' })
    expect(await call(gateway, '/api/sessions', SHOP)).toMatchObject({ count: 1, total: 1 })
    expect(await call(gateway, '/api/sessions', WATCH)).toMatchObject({ count: 2, total: 2 })
    expect(await app.ask({ type: 'session.delete', key: 'kitchen' })).toMatchObject({ data: { success: true } })
  })

  it('do not continue a conversation without an owner, as another program leaves one', async () => {
    const gateway = await openGateway({ config })
    const record = { sessionId: 'sess_old' as SessionId, updatedAt: gateway.clock.now() }
    await gateway.app.storage.transact([{ kind: 'put-session', key: 'old' as SessionKey, record }])
    const app = await gateway.connect(`?token=${APP}`)
    expect(await app.ask({ type: 'session.get', key: 'old' })).toMatchObject({ data: { code: 'SESSION_NOT_FOUND' } })
    const refused = await app.ask({ id: '1', content: 'What was said here?', session: 'old' })
    expect(refused).toMatchObject({ type: 'error', code: 'SESSION_NOT_FOUND' })
    const watch = await gateway.connect(`?token=${WATCH}`)
    expect(await watch.ask({ id: '2', content: 'hello', session: 'old' })).toMatchObject({ session: 'old' })
    expect(await app.ask({ type: 'session.get', key: 'old' })).toMatchObject({ data: { code: 'SESSION_NOT_FOUND' } })
  })

  it('own what they began after a restart too, and do not meet in the global conversation', async () => {
    const gateway = await openGateway({ config: { ...config, session_scope: 'global' } })
    await (await gateway.connect(`?token=${APP}&uid=u`)).ask({ id: '1', content: 'I like green tea' })
    const again = await restart(gateway)
    const own = await (await again.connect(`?token=${APP}`)).ask({ id: '2', content: 'What did I say?' })
    expect(own).toMatchObject({ session: 'global', content: expect.stringContaining('green tea') })
    const other = await (await again.connect(`?token=${SHOP}&uid=u`)).ask({ id: '2', content: 'What did I say?' })
    expect(other['session']).toMatch(/^global~[0-9a-f]{6}$/u)
    expect(other['content']).not.toContain('green tea')
  })

  it('may look at the gateway itself only as admin', async () => {
    const gateway = await openGateway({ config })
    for (const token of [APP, WATCH]) {
      expect(await call(gateway, '/api/status', token)).toMatchObject({ status: 403, code: 'FORBIDDEN' })
      expect(await call(gateway, '/api/channels/webhook/trust', token, 'POST')).toMatchObject({ status: 403 })
    }
    expect(await call(gateway, '/api/status', BOSS)).toMatchObject({ status: 200, state: 'open' })
    expect(await call(gateway, '/api/status')).toMatchObject({ status: 401, code: 'UNAUTHORIZED' })
    const metrics = (token: string): Promise<{ status: number }> =>
      gateway.request('/metrics', { headers: { authorization: `Bearer ${token}` } })
    expect(await metrics(APP)).toMatchObject({ status: 403 })
    expect(await metrics(WATCH)).toMatchObject({ status: 200 })
  })

  it('are not impersonated by a uid, and the local token of the home opens everything', async () => {
    const gateway = await openGateway({ config: { listen: { ...config.listen, token: 'single-0123456789abcdef' } } })
    await expect(gateway.connect('?token=single-0123456789abcdef&uid=app')).rejects.toMatchObject({ status: 400 })
    const contact = JSON.parse(gateway.files.text('/home/clew/gateway.json') ?? '') as { token: string }
    expect(contact.token).toMatch(/^[0-9a-f]{64}$/u)
    expect(await call(gateway, '/api/status', contact.token)).toMatchObject({ status: 200 })
  })
})

describe('control characters', () => {
  it.each(['id', 'session', 'peerKind', 'peerId', 'chatType', 'chatId', 'senderId', 'topicId', 'threadId'])(
    'in %s are refused by name',
    async (field) => {
      const gateway = await openGateway()
      const client = await gateway.connect()
      for (const character of ['\u0000', '\u001b', '\n', '\u007f', '\u0085'])
        expect(await client.ask({ id: 'x', content: 'hello', [field]: `a${character}b` })).toMatchObject({
          type: 'error',
          code: 'FIELD_INVALID',
          field,
        })
      expect(await client.ask({ type: 'session.list' })).toMatchObject({ data: { total: 0 } })
    },
  )

  it('in a uid are refused before the socket opens', async () => {
    const gateway = await openGateway()
    await expect(gateway.connect('?uid=a%1Bb')).rejects.toMatchObject({ status: 400 })
  })
})

describe('a command that is answered without the model', () => {
  it.each([
    '/help',
    '/status',
    '/stop',
    '/model',
    '/model demo',
    '/new',
    '/reset',
    '/compact',
    '/cleanup',
    '/restore',
    '/nosuch',
  ])('%s begins no conversation', async (content) => {
    const gateway = await openGateway()
    const client = await gateway.connect('?uid=ann')
    expect(await client.ask({ id: '1', content })).toMatchObject({ type: 'complete' })
    expect(await client.ask({ id: '2', content, session: 's' })).toMatchObject({ type: 'complete', session: 's' })
    expect(await client.ask({ type: 'session.list' })).toMatchObject({ data: { count: 0, total: 0 } })
    const again = await restart(gateway)
    expect(await again.api('/api/sessions')).toMatchObject({ total: 0 })
  })

  it('/new with text begins one', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect()
    await client.ask({ id: '1', content: '/new hello', session: 's' })
    expect(await client.ask({ type: 'session.list' })).toMatchObject({ data: { total: 1 } })
  })
})

describe('session.list', () => {
  it('without a limit returns all, with their number; beyond limits.list there is a cursor', async () => {
    const gateway = await openGateway({ config: { limits: { list: 70, frames_burst: 1_000 } } })
    const client = await gateway.connect('?uid=ann')
    for (let index = 0; index < 65; index++) await client.ask({ id: `${index}`, content: 'hello' })
    expect(await client.ask({ type: 'session.list' })).toMatchObject({ data: { count: 65, total: 65 } })
    expect(await client.ask({ type: 'session.list', prefix: 'webhook:6' })).toMatchObject({
      data: { count: 6, total: 6 },
    })
    for (let index = 65; index < 80; index++) await client.ask({ id: `${index}`, content: 'hello' })
    const page = (await client.ask({ type: 'session.list', limit: 5_000 }))['data'] as Row
    expect(page).toMatchObject({ count: 70, total: 80 })
    const rest = await client.ask({ type: 'session.list', cursor: page['nextCursor'] })
    expect(rest).toMatchObject({ data: { count: 10, total: 80 } })
    expect((rest['data'] as Row)['nextCursor']).toBeUndefined()
  })
})

it('a client that shares a gateway with others keeps its own conversation', async () => {
  const clock = new ManualClock()
  const gateway = await openWaiting({ clock, files: new MemoryFiles({ now: () => clock.now() }) })
  const [ann, bob] = [gateway.link(), gateway.link()]
  await Promise.all([ann, bob].map((client) => client.send({ id: 'x', content: 'hi' })))
  await clock.advance(100)
  expect(ann.terminal()[0]?.['session']).not.toBe(bob.terminal()[0]?.['session'])
  await gateway.stop()
})
