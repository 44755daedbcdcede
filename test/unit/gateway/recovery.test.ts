import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import type { MemoryGateway } from '../../support/gateway.ts'
import { openWaiting } from '../../support/waiting-model.ts'

async function start(clock: ManualClock, files: MemoryFiles, life: number, turns: string[]): Promise<MemoryGateway> {
  return openWaiting({
    clock,
    files,
    life,
    workMs: () => 100,
    onTurn: (text, what) => {
      if (what === 'start') turns.push(text)
    },
  })
}

it('a restart resets once for /new with text, and keeps the order of what follows', async () => {
  const clock = new ManualClock()
  const files = new MemoryFiles({ now: () => clock.now() })
  const turns: string[] = []
  const before = await start(clock, files, 1, turns)
  const client = before.link({ account: 'u' })
  await client.send({ id: '0', content: 'zero', session: 's' })
  await clock.advance(200)
  await client.send({ id: '1', content: '/new one', session: 's' }, { id: '2', content: 'two', session: 's' })
  await clock.advance(20)
  const reset = (await before.app.storage.sessions.resolve('s'))?.record.sessionId
  expect(turns).toEqual(['zero', 'one'])
  const later: string[] = []
  const after = await start(clock, files.kill(), 2, later)
  const back = after.link({ account: 'u' })
  await clock.advance(1_000)
  expect(later).toEqual(['one', 'two'])
  expect((await after.app.storage.sessions.resolve('s'))?.record.sessionId).toBe(reset)
  expect(back.terminal().map(({ messageId, type }) => [messageId, type])).toEqual([
    ['1', 'complete'],
    ['2', 'complete'],
  ])
  await after.stop()
})

it('a restart in the middle of everything answers every accepted message, in order, and commands too', async () => {
  const clock = new ManualClock()
  const files = new MemoryFiles({ now: () => clock.now() })
  const turns: string[] = []
  const before = await start(clock, files, 1, turns)
  const client = before.link({ account: 'u' })
  await client.send(
    ...['a', 'b', 'c'].map((content) => ({ id: content, content, session: 's' })),
    { id: 'help', content: '/help', session: 's' },
    { id: 'other', content: 'd', session: 't' },
  )
  await clock.advance(10)
  const known = new Set(client.terminal().map(({ messageId }) => messageId))
  const after = await start(clock, files.kill(), 2, turns)
  const back = after.link({ account: 'u' })
  await clock.advance(2_000)
  const answered = back.terminal().map(({ messageId }) => String(messageId))
  expect(answered.filter((id) => ['a', 'b', 'c'].includes(id))).toEqual(['a', 'b', 'c'])
  for (const { messageId } of back.terminal()) known.add(messageId)
  expect(known).toEqual(new Set(['a', 'b', 'c', 'help', 'other']))
  await after.stop()
})

it('a message that arrives while channels are still starting is not forgotten', async () => {
  const clock = new ManualClock()
  const files = new MemoryFiles({ now: () => clock.now() })
  const gateway = await openWaiting({
    clock,
    files,
    async duringStart(intake) {
      await intake.accept({
        channel: 'webhook',
        account: 'u',
        messageId: 'early',
        text: 'early',
        attachments: [],
        route: {},
        replyTo: { connection: '', messageId: 'early', stream: false },
      })
    },
  })
  const client = gateway.link({ account: 'u' })
  await clock.advance(1_000)
  expect(client.terminal()).toMatchObject([{ type: 'complete', messageId: 'early' }])
  await gateway.stop()
})

/** The messages of a conversation as its transcript has them. */
async function written({ app }: MemoryGateway, key: string): Promise<readonly string[]> {
  const { sessions, transcripts } = app.storage
  const { sessionId } = (await sessions.resolve(key))?.record ?? expect.unreachable(`there is no conversation ${key}`)
  const transcript = await transcripts.open(sessionId, new AbortController().signal)
  const { messages } = await transcript.context()
  await transcript.close()
  return messages.map((message) =>
    message.role === 'assistant'
      ? `assistant ${message.stopReason}`
      : `${message.role} ${'content' in message ? String(message.content) : ''}`,
  )
}

describe('a message that ends the gateway', () => {
  const clock = new ManualClock()
  const config = (files: MemoryFiles, life: number, seen: string[]) => ({
    clock,
    files,
    life,
    workMs: () => 5_000,
    onTurn: (text: string, what: string) => void seen.push(`${what} ${text}`),
  })

  it('is tried twice, then written down and answered with an error; what waits behind it is served', async () => {
    let files = new MemoryFiles({ now: () => clock.now() })
    const first = await openWaiting(config(files, 1, []))
    const client = first.link({ account: 'u' })
    await client.send({ id: 'bad', content: 'bad', session: 's' }, { id: 'next', content: 'next', session: 's' })
    await clock.advance(100)
    files = files.kill()
    const second: string[] = []
    await openWaiting(config(files, 2, second))
    await clock.advance(100)
    expect(second).toEqual(['start bad'])
    files = files.kill()
    const third: string[] = []
    const last = await openWaiting(config(files, 3, third))
    const back = last.link({ account: 'u' })
    await clock.advance(6_000)
    expect(third).toEqual(['start next', 'end next'])
    expect(await written(last, 's')).toEqual(['user bad', 'assistant error', 'user next', 'assistant stop'])
    expect(back.terminal().map(({ messageId, type, code }) => [messageId, type, code])).toEqual([
      ['bad', 'error', 'MESSAGE_POISONED'],
      ['next', 'complete', undefined],
    ])
    expect(await last.app.storage.outbox.failedWith('MESSAGE_POISONED')).toMatchObject([{ deaths: 2 }])
    await last.stop()
  })

  it('is not blamed for a stop that was foreseen, nor for one before it was begun again', async () => {
    let files = new MemoryFiles({ now: () => clock.now() })
    const first = await openWaiting(config(files, 1, []))
    const client = first.link({ account: 'u' })
    for (const session of ['s', 't']) await client.send({ id: session, content: session, session })
    await clock.advance(100)
    files = files.kill()
    // Both may have been it; now they begin one after the other, and the second has not begun at the next end.
    const second: string[] = []
    await openWaiting(config(files, 2, second))
    await clock.advance(500)
    expect(second).toEqual(['start s'])
    files = files.kill()
    const third: string[] = []
    const stopped = await openWaiting(config(files, 3, third))
    await clock.advance(500)
    expect(third).toEqual(['start t'])
    expect(await written(stopped, 's')).toEqual(['user s', 'assistant error'])
    const drained = stopped.app.gateway.drain(AbortSignal.abort())
    await clock.advance(100)
    await drained
    await stopped.stop()
    const fourth: string[] = []
    const last = await openWaiting(config(files, 4, fourth))
    await clock.advance(6_000)
    expect(fourth).toEqual(['start t', 'end t'])
    await last.stop()
  })

  it('is tried for ever when the configuration says so', async () => {
    let files = new MemoryFiles({ now: () => clock.now() })
    const limits = { message_attempts: 0 }
    const first = await openWaiting({ ...config(files, 1, []), limits })
    await first.link({ account: 'u' }).send({ id: 'bad', content: 'bad', session: 's' })
    await clock.advance(100)
    for (let life = 2; life < 6; life++) {
      files = files.kill()
      const seen: string[] = []
      await openWaiting({ ...config(files, life, seen), limits })
      await clock.advance(100)
      expect(seen).toEqual(['start bad'])
    }
  })
})
