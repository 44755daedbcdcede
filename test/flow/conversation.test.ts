import { afterEach, describe, expect, it } from 'vitest'
import { findSession } from '../../src/session/find-session.ts'
import { MemoryGateway, type Frame, type GatewayOptions } from '../support/gateway.ts'
import { transcriptIds, transcriptText } from '../support/virtual-schemas.ts'

let open: MemoryGateway[] = []

async function openGateway(options?: GatewayOptions): Promise<MemoryGateway> {
  const gateway = await MemoryGateway.open(options)
  open.push(gateway)
  return gateway
}

afterEach(async () => {
  for (const gateway of open) if (!gateway.files.isCrashed) await gateway.stop()
  open = []
})

describe('the seed’s client', () => {
  it('gets exactly one frame for each of its five sends', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect()
    const first = await client.ask({ id: 'msg-001', content: '你好，我是新用户' })
    expect(first).toMatchObject({ type: 'complete', session: 'webhook:msg-001', messageId: 'msg-001' })
    const second = await client.ask({ id: 'msg-002', content: '你刚才说了什么？', session: 'webhook:msg-001' })
    expect(second['content']).toContain('演示模型')
    const third = await client.ask({ id: 'msg-003', content: '/new 让我们重新开始' })
    expect(third).toMatchObject({ type: 'complete', session: 'webhook:msg-003' })
    const info = await client.ask({ type: 'session.get', key: 'webhook:msg-001' })
    expect(info).toMatchObject({
      type: 'session.get',
      data: {
        key: 'webhook:msg-001',
        sessionId: expect.stringMatching(/^sess_/u),
        updatedAt: expect.any(Number),
        deliveryContext: { channel: 'webhook', to: 'msg-002' },
        lastChannel: 'webhook',
        lastTo: 'msg-002',
      },
    })
    const list = await client.ask({ type: 'session.list' })
    expect(list).toMatchObject({ type: 'session.list', data: { count: 2 } })
    expect(client.frames).toHaveLength(5)
  })
})

describe('a conversation', () => {
  it('calls tools over several rounds and answers once', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect()
    const answer = await client.ask({ id: 1, content: 'What is 12 * (3 + 4), and what time is it?' })
    expect(answer).toMatchObject({ type: 'complete', messageId: 1, session: 'webhook:1' })
    expect(answer['content']).toContain('12 * (3 + 4) = 84')
    expect(answer['content']).toContain('2026')
    expect(client.frames).toHaveLength(1)
  })

  it('streams progress and events when asked to, numbered without a gap in order', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect('?stream=1&uid=ann')
    await client.ask({ id: 'm', content: 'What is 6 * 7?' })
    const types = client.frames.map(({ type }) => type)
    expect(types[0]).toBe('accepted')
    expect(types).toContain('progress')
    expect(client.frames.filter(({ type }) => type === 'event').map(({ event }) => event)).toEqual(
      expect.arrayContaining(['tool_start', 'tool_end', 'step_completed']),
    )
    expect(types.at(-1)).toBe('complete')
    const numbers = client.frames.map(({ seq }) => seq as number)
    expect(numbers).toEqual([...numbers].sort((a, b) => a - b))
    expect(new Set(numbers).size).toBe(numbers.length)
  })

  it('shows a growing text, each progress containing the one before', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect('?stream=1')
    const last = await client.ask({ id: 'm', content: 'count to 120' })
    const shown = client.frames.filter(({ type }) => type === 'progress').map(({ content }) => content as string)
    expect(shown.length).toBeGreaterThan(2)
    for (const [index, text] of shown.entries())
      if (index > 0) expect(text.startsWith(shown[index - 1] ?? '')).toBe(true)
    expect((last['content'] as string).startsWith(shown.at(-1) ?? '')).toBe(true)
  })

  it('runs the messages of one session in order and those of others beside them', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect()
    await client.send({ id: 'a1', content: 'count to 300', session: 'a' })
    await client.send({ id: 'a2', content: 'hello', session: 'a' })
    await client.send({ id: 'b1', content: 'hello', session: 'b' })
    const frames = await client.waitFor(3)
    expect(frames.map(({ messageId }) => messageId)).toEqual(['b1', 'a1', 'a2'])
  })

  it('is byte-identical for the same seed', async () => {
    const run = async (): Promise<{ frames: Frame[]; transcript: string }> => {
      const gateway = await openGateway({ seed: 7 })
      const client = await gateway.connect('?stream=1&uid=u')
      await client.ask({ id: 'x', content: 'make a mistake and fix it' })
      await client.ask({ id: 'y', content: '现在几点？', session: 'webhook:x' })
      const { sessionId } = (await findSession(gateway.app.storage, { key: 'webhook:x' })).record
      return { frames: client.frames, transcript: (await transcriptText(gateway.files, sessionId)) ?? '' }
    }
    const [one, two] = [await run(), await run()]
    expect(one).toEqual(two)
    expect(one.transcript.split('\n').length).toBeGreaterThan(8)
  })
})

describe('control', () => {
  it('never waits behind a running turn, and cancel leaves one terminal frame', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect()
    await client.send({ id: 'long', content: 'count to 900', session: 's' })
    await gateway.clock.advance(200)
    await client.send({ type: 'session.get', key: 's', requestId: 'r1' })
    await client.settle()
    expect(client.frames).toEqual([expect.objectContaining({ type: 'session.get', requestId: 'r1' })])
    const cancelled = await client.ask({ type: 'session.cancel', key: 's' })
    expect(cancelled).toMatchObject({ type: 'error', code: 'TURN_CANCELLED', messageId: 'long' })
    const [, , reply] = await client.waitFor(3)
    expect(reply).toEqual({ type: 'session.cancel', data: { success: true, key: 's', cancelled: 1 } })
    await gateway.clock.advance(60_000)
    expect(client.frames).toHaveLength(3)
  })

  it('forgets on reset: the model no longer sees what was said', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect()
    await client.ask({ id: '1', content: 'My cat is called Mimi.', session: 's' })
    expect(await client.ask({ type: 'session.reset', key: 's' })).toEqual({
      type: 'session.reset',
      data: { success: true, key: 's' },
    })
    const answer = await client.ask({ id: '2', content: 'What did I say?', session: 's' })
    expect(answer['content']).toContain('beginning')
  })

  it('is named after the words that /new begins it with', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect('?uid=u')
    const named = async (): Promise<unknown> =>
      ((await gateway.api('/api/sessions'))['sessions'] as readonly Frame[]).map(({ key, title }) => [key, title])
    await client.ask({ id: '1', content: 'my garden', session: 's' })
    await client.ask({ id: '2', content: '/new  my\nboat', session: 's' })
    await client.ask({ id: '3', content: '/new my house', session: 't' })
    await client.ask({ id: '4', content: 'thanks', session: 's' })
    expect(await named()).toEqual([
      ['s', 'my boat'],
      ['t', 'my house'],
    ])
    await client.ask({ id: '5', content: '/new', session: 's' })
    expect(await named()).toEqual([
      ['s', undefined],
      ['t', 'my house'],
    ])
  })

  it('resets on /new and answers the text after it', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect()
    await client.ask({ id: '1', content: 'My cat is called Mimi.', session: 's' })
    const bare = await client.ask({ id: '2', content: '/new', session: 's' })
    expect(bare).toMatchObject({ type: 'complete', session: 's', messageId: '2' })
    await client.ask({ id: '3', content: 'I like tea.', session: 's' })
    const answer = await client.ask({ id: '4', content: ' /RESET\nWhat did I say?', session: 's' })
    expect(answer['content']).toContain('beginning')
  })

  it('answers for unknown sessions without creating them', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect()
    for (const type of ['session.get', 'session.reset', 'session.delete', 'session.cancel']) {
      expect(await client.ask({ type, key: 'nobody' })).toMatchObject({
        type,
        data: { success: false, code: 'SESSION_NOT_FOUND', key: 'nobody' },
      })
    }
    expect(await client.ask({ type: 'session.list' })).toMatchObject({ data: { sessions: [], count: 0 } })
  })

  it('deletes for good: entry, transcript and stored answers', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect()
    const before = await client.ask({ id: '1', content: 'hello', session: 's' })
    await client.ask({ type: 'session.delete', key: 's' })
    expect(await transcriptIds(gateway.files)).toEqual([])
    const again = await client.ask({ id: '1', content: 'hello', session: 's' })
    expect(again['runId']).not.toBe(before['runId'])
  })
})

describe('bad frames', () => {
  it.each([
    ['not JSON', '{"id":', 'FRAME_MALFORMED'],
    ['not an object', '[1,2]', 'FRAME_MALFORMED'],
    ['an unknown type', '{"type":"session.explode","key":"x"}', 'FRAME_MALFORMED'],
    ['no content', '{"id":"a"}', 'FIELD_INVALID'],
    ['empty content', '{"id":"a","content":"  "}', 'FIELD_INVALID'],
    ['a field of the wrong type', '{"id":"a","content":"x","peerId":{}}', 'FIELD_INVALID'],
  ])('%s is answered with a code, and the connection stays', async (_name, text, code) => {
    const gateway = await openGateway()
    const client = await gateway.connect()
    expect(await client.ask(text)).toMatchObject({ type: 'error', code, error: expect.any(String) })
    expect(await client.ask({ id: 'ok', content: 'hello' })).toMatchObject({ type: 'complete' })
  })

  it('over the limit gets an error and close 1009', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect()
    expect(await client.ask({ id: 'big', content: 'x'.repeat(1024 * 1024) })).toMatchObject({ code: 'FRAME_TOO_LARGE' })
    await client.settle()
    expect(client.closed?.code).toBe(1009)
  })

  it('of our own kind that come back are ignored', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect()
    for (const frame of [
      { type: 'complete', content: 'x' },
      { type: 'progress' },
      { type: 'session.list', data: { sessions: [] } },
    ])
      await client.send(frame)
    await client.settle()
    expect(client.frames).toEqual([])
  })
})

describe('redelivery', () => {
  it('of an answered message sends the stored answer again and does not ask the model', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect('?uid=u')
    const first = await client.ask({ id: '1', content: 'hello', session: 's' })
    const second = await client.ask({ id: '1', content: 'hello', session: 's' })
    expect(second).toEqual({ ...first, redelivered: true })
    const other = await client.ask({ id: '1', content: 'hello again', session: 's' })
    expect(other['runId']).not.toBe(first['runId'])
  })

  it('of /new text does not reset again', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect('?uid=u')
    const sessionId = async (): Promise<unknown> =>
      ((await gateway.api('/api/sessions/s'))['session'] as Frame)['sessionId']
    const first = await client.ask({ id: '1', content: '/new I like tea', session: 's' })
    await client.ask({ id: '2', content: 'I have a dog', session: 's' })
    const begun = await sessionId()
    expect(await client.ask({ id: '1', content: '/new I like tea', session: 's' })).toEqual({
      ...first,
      redelivered: true,
    })
    expect(await sessionId()).toBe(begun)
    expect((await client.ask({ id: '3', content: 'What did I say?', session: 's' }))['content']).toContain('a dog')
  })
})

describe('after a crash', () => {
  it('an accepted message is answered without being sent again, to the same uid', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect('?uid=ann')
    await client.send({ id: '1', content: 'count to 200', ack: true })
    await client.settle()
    expect(client.frames.map(({ type }) => type)).toEqual(['accepted'])
    const again = await gateway.restart()
    open.push(again)
    const returned = await again.connect('?uid=ann')
    const [answer] = await returned.waitFor(1)
    expect(answer).toMatchObject({ type: 'complete', messageId: '1', runId: client.frames[0]?.['runId'] })
    expect((answer?.['seq'] as number) > (client.frames[0]?.['seq'] as number)).toBe(true)
  })

  it('what was accepted more than a day before is answered once, and its reply waits for its client', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect('?uid=ann')
    for (const id of ['1', '2']) await client.send({ id, content: `count to 5${id}`, session: 's', ack: true })
    await client.settle()
    const again = await gateway.restart({ afterMs: 25 * 3_600_000 })
    open.push(again)
    const repeating = await again.connect('?uid=ann')
    await repeating.send({ id: '2', content: 'count to 52', session: 's', ack: true })
    await repeating.settle()
    expect(repeating.frames).toMatchObject([{ type: 'accepted', messageId: '2', runId: client.frames[1]?.['runId'] }])
    repeating.socket.terminate()
    await again.clock.advance(30_000)
    const other = await again.connect('?uid=bob')
    await other.ask({ id: 'b', content: 'hello', session: 'other' })
    const returned = await again.connect('?uid=ann')
    const answers = await returned.waitFor(2)
    expect(answers).toMatchObject([
      { type: 'complete', messageId: '1' },
      { type: 'complete', messageId: '2' },
    ])
    const { messages } = await again.api('/api/sessions/s')
    expect((messages as readonly Frame[]).filter(({ role }) => role === 'user')).toHaveLength(2)
  })

  it('a reply whose client was away waits for it, and comes once', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect('?uid=ann')
    await client.send({ id: '1', content: 'count to 50' })
    await client.settle()
    client.socket.terminate()
    await gateway.clock.advance(10_000)
    const returned = await gateway.connect('?uid=ann')
    const [answer] = await returned.waitFor(1)
    expect(answer).toMatchObject({ type: 'complete', messageId: '1' })
    expect(answer).not.toHaveProperty('redelivered')
    const third = await gateway.connect('?uid=ann')
    await gateway.clock.advance(1_000)
    expect(third.frames).toEqual([])
  })

  it('resume sends every later reply again, marked', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect('?uid=ann')
    const first = await client.ask({ id: '1', content: 'hello', session: 's' })
    const second = await client.ask({ id: '2', content: 'hello', session: 's' })
    const returned = await gateway.connect(`?uid=ann&resume=${String(first['seq'])}`)
    const [answer] = await returned.waitFor(1)
    expect(answer).toEqual({ ...second, redelivered: true })
  })
})

describe('access', () => {
  it('refuses a page of another origin and a missing or wrong token', async () => {
    const gateway = await openGateway({ config: { listen: { token: 'secret-token' } } })
    await expect(gateway.connect()).rejects.toMatchObject({ status: 401 })
    await expect(gateway.connect('?token=wrong')).rejects.toMatchObject({ status: 401 })
    await expect(gateway.connect('?token=secret-token', { origin: 'https://evil.example' })).rejects.toMatchObject({
      status: 403,
    })
    const client = await gateway.connect('', { authorization: 'Bearer secret-token' })
    expect(await client.ask({ id: '1', content: 'hello' })).toMatchObject({ type: 'complete' })
    expect((await gateway.request('/healthz')).status).toBe(200)
    expect((await gateway.request('/api/status')).status).toBe(401)
  })
})
