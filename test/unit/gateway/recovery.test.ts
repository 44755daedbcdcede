import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { CoreClient, GatewayCore } from '../../support/gateway-core.ts'

async function life(clock: ManualClock, files: MemoryFiles, seed: number, turns: string[]): Promise<GatewayCore> {
  return GatewayCore.open({
    clock,
    files,
    seed,
    workMs: () => 100,
    onTurn: ({ text }, what) => {
      if (what === 'start') turns.push(text)
    },
  })
}

it('a restart resets once for /new with text, and keeps the order of what follows', async () => {
  const clock = new ManualClock()
  const files = new MemoryFiles({ now: () => clock.now() })
  const turns: string[] = []
  const before = await life(clock, files, 1, turns)
  const client = new CoreClient(before, { account: 'u' })
  await client.send({ id: '0', content: 'zero', session: 's' })
  await clock.advance(200)
  await client.send({ id: '1', content: '/new one', session: 's' }, { id: '2', content: 'two', session: 's' })
  await clock.advance(20)
  const reset = (await before.storage.rows.resolve('s'))?.record.sessionId
  expect(turns).toEqual(['zero', 'one'])
  const later: string[] = []
  const after = await life(clock, files.kill(), 2, later)
  const back = new CoreClient(after, { account: 'u' })
  await clock.advance(1_000)
  expect(later).toEqual(['one', 'two'])
  expect((await after.storage.rows.resolve('s'))?.record.sessionId).toBe(reset)
  expect(back.terminal().map(({ messageId, type }) => [messageId, type])).toEqual([
    ['1', 'complete'],
    ['2', 'complete'],
  ])
  await after.close()
})

it('a restart in the middle of everything answers every accepted message, in order, and commands too', async () => {
  const clock = new ManualClock()
  const files = new MemoryFiles({ now: () => clock.now() })
  const turns: string[] = []
  const before = await life(clock, files, 1, turns)
  const client = new CoreClient(before, { account: 'u' })
  await client.send(
    ...['a', 'b', 'c'].map((content) => ({ id: content, content, session: 's' })),
    { id: 'help', content: '/help', session: 's' },
    { id: 'other', content: 'd', session: 't' },
  )
  await clock.advance(10)
  const known = new Set(client.terminal().map(({ messageId }) => messageId))
  const after = await life(clock, files.kill(), 2, turns)
  const back = new CoreClient(after, { account: 'u' })
  await clock.advance(2_000)
  const answered = back.terminal().map(({ messageId }) => String(messageId))
  expect(answered.filter((id) => ['a', 'b', 'c'].includes(id))).toEqual(['a', 'b', 'c'])
  for (const { messageId } of back.terminal()) known.add(messageId)
  expect(known).toEqual(new Set(['a', 'b', 'c', 'help', 'other']))
  await after.close()
})

it('a message that arrives while channels are still starting is not forgotten', async () => {
  const clock = new ManualClock()
  const files = new MemoryFiles({ now: () => clock.now() })
  const core = await GatewayCore.open({
    clock,
    files,
    seed: 1,
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
  const client = new CoreClient(core, { account: 'u' })
  await clock.advance(1_000)
  expect(client.terminal()).toMatchObject([{ type: 'complete', messageId: 'early' }])
  await core.close()
})

describe('a message that ends the gateway', () => {
  const clock = new ManualClock()
  const config = (files: MemoryFiles, seed: number, seen: string[]) => ({
    clock,
    files,
    seed,
    workMs: () => 5_000,
    onTurn: ({ text }: { readonly text: string }, what: string) => void seen.push(`${what} ${text}`),
    onPoisoned: ({ text }: { readonly text: string }) => void seen.push(`poisoned ${text}`),
  })

  it('is tried twice, then written down and answered with an error; what waits behind it is served', async () => {
    let files = new MemoryFiles({ now: () => clock.now() })
    const first = await GatewayCore.open(config(files, 1, []))
    const client = new CoreClient(first, { account: 'u' })
    await client.send({ id: 'bad', content: 'bad', session: 's' }, { id: 'next', content: 'next', session: 's' })
    await clock.advance(100)
    files = files.kill()
    const second: string[] = []
    await GatewayCore.open(config(files, 2, second))
    await clock.advance(100)
    expect(second).toEqual(['start bad'])
    files = files.kill()
    const third: string[] = []
    const last = await GatewayCore.open(config(files, 3, third))
    const back = new CoreClient(last, { account: 'u' })
    await clock.advance(6_000)
    expect(third).toEqual(['poisoned bad', 'start next', 'end next'])
    expect(back.terminal().map(({ messageId, type, code }) => [messageId, type, code])).toEqual([
      ['bad', 'error', 'MESSAGE_POISONED'],
      ['next', 'complete', undefined],
    ])
    expect(await last.storage.outbox.failedWith('MESSAGE_POISONED')).toMatchObject([{ deaths: 2 }])
    await last.close()
  })

  it('is not blamed for a stop that was foreseen, nor for one before it was begun again', async () => {
    let files = new MemoryFiles({ now: () => clock.now() })
    const first = await GatewayCore.open(config(files, 1, []))
    const client = new CoreClient(first, { account: 'u' })
    for (const session of ['s', 't']) await client.send({ id: session, content: session, session })
    await clock.advance(100)
    files = files.kill()
    // Both may have been it; now they begin one after the other, and the second has not begun at the next end.
    const second: string[] = []
    await GatewayCore.open(config(files, 2, second))
    await clock.advance(500)
    expect(second).toEqual(['start s'])
    files = files.kill()
    const third: string[] = []
    const stopped = await GatewayCore.open(config(files, 3, third))
    await clock.advance(500)
    expect(third).toEqual(['poisoned s', 'start t'])
    const drained = stopped.gateway.drain(AbortSignal.abort())
    await clock.advance(100)
    await drained
    await stopped.close()
    const fourth: string[] = []
    const last = await GatewayCore.open(config(files, 4, fourth))
    await clock.advance(6_000)
    expect(fourth).toEqual(['start t', 'end t'])
    await last.close()
  })

  it('is tried for ever when the configuration says so', async () => {
    let files = new MemoryFiles({ now: () => clock.now() })
    const limits = {
      queuedPerSession: 10,
      queuedTotal: 10,
      turns: { total: 4, perProvider: 4, perAccount: 4 },
      messageAttempts: 0,
      sessions: 10,
      list: 10,
    }
    const first = await GatewayCore.open({ ...config(files, 1, []), gatewayLimits: limits })
    await new CoreClient(first, { account: 'u' }).send({ id: 'bad', content: 'bad', session: 's' })
    await clock.advance(100)
    for (let life = 2; life < 6; life++) {
      files = files.kill()
      const seen: string[] = []
      await GatewayCore.open({ ...config(files, life, seen), gatewayLimits: limits })
      await clock.advance(100)
      expect(seen).toEqual(['start bad'])
    }
  })
})
