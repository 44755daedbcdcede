import { describe, expect, it } from 'vitest'
import { gatewaysOfThisFile } from '../support/gateways.ts'
import { findSession } from '../../src/session/find-session.ts'

const gateways = gatewaysOfThisFile()

describe('frames sent without waiting for answers', () => {
  it('take effect in their order: a query or reset finds the message before it, and spares the one behind it', async () => {
    const gateway = await gateways.open()
    const client = await gateway.connect()
    await client.send({ id: '1', content: 'count to 100', session: 's' })
    await client.send({ type: 'session.get', key: 's', requestId: 'get' })
    await client.send({ type: 'session.reset', key: 's', requestId: 'reset' })
    await client.send({ id: '2', content: 'What did I say?', session: 's' })
    const frames = await client.waitFor(4)
    expect(frames.find(({ requestId }) => requestId === 'get')).toMatchObject({ data: { key: 's' } })
    expect(frames.find(({ messageId }) => messageId === '1')).toMatchObject({ code: 'TURN_CANCELLED', reason: 'reset' })
    expect(frames.find(({ requestId }) => requestId === 'reset')).toMatchObject({ data: { success: true } })
    expect(frames.find(({ messageId }) => messageId === '2')).toMatchObject({
      type: 'complete',
      content: expect.stringContaining('beginning'),
    })
  })

  it('keep the text of /new before the messages behind it', async () => {
    const gateway = await gateways.open()
    const client = await gateway.connect()
    await client.ask({ id: '0', content: 'I like tea.', session: 's' })
    await client.send({ id: '1', content: '/new I like coffee.', session: 's' })
    await client.send({ id: '2', content: 'What did I say?', session: 's' })
    const frames = await client.waitFor(3)
    expect(frames.slice(1).map(({ messageId }) => messageId)).toEqual(['1', '2'])
    expect(frames[2]?.['content']).toContain('I like coffee.')
  })

  it('let the later of two resets drop the text of the earlier, and nothing else', async () => {
    const gateway = await gateways.open()
    const client = await gateway.connect()
    for (const [id, content] of [
      ['1', '/new one'],
      ['2', 'two'],
      ['3', '/new three'],
      ['4', 'four'],
    ])
      await client.send({ id, content, session: 's' })
    const frames = await client.waitFor(4)
    const kinds = Object.fromEntries(frames.map(({ messageId, type, code }) => [messageId, code ?? type]))
    expect(kinds).toEqual({ 1: 'TURN_CANCELLED', 2: 'TURN_CANCELLED', 3: 'complete', 4: 'complete' })
    const row = (await findSession(gateway.app.storage, { key: 's' })).record
    expect(row.archived ?? []).toEqual([])
  })

  it('begin a new session when they follow a delete', async () => {
    const gateway = await gateways.open()
    const client = await gateway.connect()
    const first = await client.ask({ id: '1', content: 'My cat is called Mimi.', session: 's' })
    const before = (await findSession(gateway.app.storage, { key: 's' })).record.sessionId
    await client.send({ type: 'session.delete', key: 's' })
    for (let index = 0; index < 20; index++)
      await client.send({ id: `n${index}`, content: 'What did I say?', session: 's' })
    const frames = await client.waitFor(22)
    const answers = frames.filter(({ messageId }) => String(messageId).startsWith('n'))
    expect(answers.map(({ type }) => type)).toEqual(Array.from({ length: 20 }, () => 'complete'))
    expect(answers[0]?.['content']).toContain('beginning')
    expect((await findSession(gateway.app.storage, { key: 's' })).record.sessionId).not.toBe(before)
    expect(first['runId']).not.toBe(answers[0]?.['runId'])
  })
})

describe('reset and delete of a busy session', () => {
  it('at the same time as messages arrive, never bring the old conversation back', async () => {
    const gateway = await gateways.open()
    const [one, two] = [await gateway.connect('?uid=a'), await gateway.connect('?uid=b')]
    await one.ask({ id: '0', content: 'My cat is called Mimi.', session: 's' })
    const ids = new Set<string>([(await findSession(gateway.app.storage, { key: 's' })).record.sessionId])
    for (let round = 0; round < 5; round++) {
      await two.send({ id: `m${round}`, content: 'hello', session: 's' })
      await one.send({ type: 'session.reset', key: 's' })
      await two.send({ id: `n${round}`, content: 'hello', session: 's' })
      await one.waitFor(2 + round)
      await two.waitFor(2 * (round + 1))
      const { sessionId } = (await findSession(gateway.app.storage, { key: 's' })).record
      expect(ids.has(sessionId)).toBe(false)
      ids.add(sessionId)
    }
  })
})

describe('queue modes', () => {
  it('interrupt: the newest message wins, every older one ends with one TURN_CANCELLED', async () => {
    const gateway = await gateways.open({ config: { queue: { mode: 'interrupt' } } })
    const client = await gateway.connect()
    await client.send({ id: '1', content: 'count to 500', session: 's' })
    await gateway.clock.advance(100)
    await client.send({ id: '2', content: 'count to 400', session: 's' })
    await client.send({ id: '3', content: 'hello', session: 's' })
    const frames = await client.waitFor(3)
    await gateway.clock.advance(60_000)
    expect(client.frames).toHaveLength(3)
    expect(frames.map(({ messageId, code, reason }) => [messageId, code, reason])).toEqual([
      ['1', 'TURN_CANCELLED', 'newer-message'],
      ['2', 'TURN_CANCELLED', 'newer-message'],
      ['3', undefined, undefined],
    ])
  })

  it('steer: a message joins the running turn at its next round, and both get its answer', async () => {
    const gateway = await gateways.open({ config: { queue: { mode: 'steer' } } })
    const client = await gateway.connect()
    await client.send({ id: '1', content: 'What is 2 + 3?', session: 's' })
    await gateway.clock.advance(5)
    await client.send({ id: '2', content: 'And what is 6 * 7?', session: 's' })
    const frames = await client.waitFor(2)
    expect(frames.map(({ messageId, type }) => [messageId, type])).toEqual([
      ['1', 'complete'],
      ['2', 'complete'],
    ])
    expect(frames[0]?.['content']).toContain('6 * 7 = 42')
    expect(frames[1]?.['content']).toBe(frames[0]?.['content'])
    await gateway.clock.advance(60_000)
    expect(client.frames).toHaveLength(2)
  })

  it('steer: a message that comes right behind the first of a conversation joins its turn', async () => {
    const gateway = await gateways.open({ config: { queue: { mode: 'steer' } } })
    const client = await gateway.connect()
    await Promise.all([
      client.send({ id: '1', content: 'What is 2 + 3?', session: 's' }),
      client.send({ id: '2', content: 'And what is 6 * 7?', session: 's' }),
    ])
    const frames = await client.waitFor(2)
    expect(frames.map(({ messageId }) => messageId)).toEqual(['1', '2'])
    expect(frames[0]?.['content']).toContain('6 * 7 = 42')
    expect(frames[1]?.['content']).toBe(frames[0]?.['content'])
  })

  it('steer: a crash before the answer leaves each message one answer and one place in the transcript', async () => {
    const gateway = await gateways.open({ config: { queue: { mode: 'steer' } } })
    const client = await gateway.connect('?uid=u')
    await client.send({ id: '1', content: 'What is 2 + 3?', session: 's' })
    await gateway.clock.advance(5)
    await client.send({ id: '2', content: 'And count to 300', session: 's' })
    await gateway.clock.advance(250)
    expect(client.frames).toEqual([])
    const again = await gateways.restart(gateway)
    const returned = await again.connect('?uid=u')
    const frames = await returned.waitFor(2)
    expect(frames.map(({ messageId, type }) => [messageId, type])).toEqual([
      ['1', 'complete'],
      ['2', 'complete'],
    ])
    const shown = await again.api('/api/sessions/s')
    const said = (shown['messages'] as { role: string; text: string }[]).filter(({ role }) => role === 'user')
    expect(said.map(({ text }) => text)).toEqual(['What is 2 + 3?', 'And count to 300'])
  })
})

describe('a session object', () => {
  it('is not kept for commands that start nothing', async () => {
    const gateway = await gateways.open()
    const client = await gateway.connect()
    for (const content of ['/help', '/status', '/stop', '/model'])
      expect(await client.ask({ id: content, content })).toMatchObject({ type: 'complete' })
    expect(gateway.app.sessions.activity()).toEqual({ running: 0, queued: 0, waitingForTurn: 0, longestWaitMs: 0 })
    expect(gateway.app.sessions.size).toBe(0)
  })
})
