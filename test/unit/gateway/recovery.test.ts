import { expect, it } from 'vitest'
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
  const reset = before.directory.resolveOrThrow('s').record.sessionId
  expect(turns).toEqual(['zero', 'one'])
  const later: string[] = []
  const after = await life(clock, files.kill(), 2, later)
  const back = new CoreClient(after, { account: 'u' })
  await clock.advance(1_000)
  expect(later).toEqual(['one', 'two'])
  expect(after.directory.resolveOrThrow('s').record.sessionId).toBe(reset)
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
