import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import type { MemoryGateway } from '../../support/gateway.ts'
import { openWaiting, type WaitingOptions } from '../../support/waiting-model.ts'

interface World {
  readonly clock: ManualClock
  readonly files: MemoryFiles
  readonly gateway: MemoryGateway
}

async function open(options: Partial<WaitingOptions> = {}): Promise<World> {
  const clock = options.clock ?? new ManualClock()
  const files = options.files ?? new MemoryFiles({ now: () => clock.now() })
  return { clock, files, gateway: await openWaiting({ clock, files, ...options }) }
}

/** The next start after `kill -9`. */
function restart({ clock, files }: World, options: Partial<WaitingOptions> = {}): Promise<World> {
  return open({ clock, files: files.kill(), life: 2, ...options })
}

describe('a client that confirms', () => {
  const CONFIRMING = { type: 'ack', seq: 0 }

  it('gets a reply again, marked, on its next socket when the first took it along', async () => {
    const { clock, gateway } = await open()
    const first = gateway.link({ account: 'u' })
    await first.send(CONFIRMING, { id: '1', content: 'hi' })
    await clock.advance(1)
    first.socket.goHalfOpen()
    await clock.advance(100)
    const second = gateway.link({ account: 'u' })
    await clock.advance(100)
    // The dead socket still looks alive: nobody can tell yet, and sending twice would be a guess.
    expect(second.frames).toEqual([])
    await clock.advance(120_000)
    expect(second.terminal()).toMatchObject([{ type: 'complete', messageId: '1', redelivered: true }])
    await gateway.stop()
  })

  it('does not get it twice for opening a second socket', async () => {
    const { clock, gateway } = await open()
    const first = gateway.link({ account: 'u' })
    await first.send(CONFIRMING, { id: '1', content: 'hi' })
    await clock.advance(100)
    const second = gateway.link({ account: 'u' })
    await clock.advance(100)
    await first.send({ type: 'ack', seq: first.terminal()[0]?.['seq'] })
    await clock.advance(100)
    first.socket.close(1000, '')
    await clock.advance(1_000)
    expect(first.terminal()).toHaveLength(1)
    expect(second.frames).toEqual([])
    expect(await gateway.app.storage.outbox.counts()).toMatchObject({ unknown: 0, delivered: 1 })
    await gateway.stop()
  })

  it('gets it at once when it asks for it: by resume, or by sending its message again', async () => {
    const { clock, gateway } = await open()
    const first = gateway.link({ account: 'u' })
    await first.send(CONFIRMING, { id: '1', content: 'hi' })
    await clock.advance(1)
    first.socket.goHalfOpen()
    await clock.advance(100)
    const resuming = gateway.link({ account: 'u', resume: 0 })
    await clock.advance(10)
    expect(resuming.terminal()).toMatchObject([{ messageId: '1', redelivered: true }])
    const repeating = gateway.link({ account: 'u' })
    await repeating.send({ id: '1', content: 'hi' })
    await clock.advance(10)
    expect(repeating.terminal()).toMatchObject([{ messageId: '1', redelivered: true }])
    await gateway.stop()
  })
})

describe('numbers', () => {
  it('go on rising after a restart, and resume sends what is behind one, in order', async () => {
    const world = await open()
    const client = world.gateway.link({ account: 'u' })
    await client.send({ id: '1', content: 'a' }, { id: '2', content: 'b' })
    await world.clock.advance(100)
    const before = client.terminal().map(({ seq }) => Number(seq))
    const { gateway, clock } = await restart(world)
    const again = gateway.link({ account: 'u', resume: Math.min(...before) })
    await again.send({ id: '3', content: 'c' })
    await clock.advance(100)
    expect(again.terminal().map(({ seq }) => seq)).toEqual([Math.max(...before), expect.any(Number)])
    expect(Number(again.terminal()[1]?.['seq'])).toBeGreaterThan(Math.max(...before))
    await gateway.stop()
  })

  it('do not start over for an account that was forgotten among too many', async () => {
    const { clock, gateway } = await open({ limits: { remembered_accounts: 3 } })
    const first = gateway.link({ account: 'first' })
    await first.send({ id: '0', content: 'x' })
    await clock.advance(100)
    for (let index = 0; index < 10; index++) {
      await gateway.link({ account: `u${index}` }).send({ id: `m${index}`, content: 'x' })
      await clock.advance(50)
    }
    await first.send({ id: '1', content: 'x' })
    await clock.advance(100)
    const [one, two] = first.terminal().map(({ seq }) => Number(seq))
    expect(two).toBeGreaterThan(one ?? 0)
    await gateway.stop()
  })
})

describe('a message sent again', () => {
  it('by another client of the same owner gets a copy in that client’s numbers; the first one’s reply stays its own', async () => {
    const { clock, gateway } = await open()
    const caller = { owner: 'app', sees: 'own' } as const
    const ann = gateway.link({ account: 'app/ann', caller })
    await ann.send({ id: '1', content: 'hi', session: 's' })
    await clock.advance(1)
    const bob = gateway.link({ account: 'app/bob', caller })
    await bob.send({ id: '1', content: 'hi', session: 's' })
    await clock.advance(100)
    expect(ann.terminal()).toMatchObject([{ messageId: '1' }])
    expect(ann.terminal()[0]).not.toHaveProperty('redelivered')
    expect(bob.terminal()).toMatchObject([{ messageId: '1', redelivered: true }])
    await bob.send({ id: '1', content: 'hi', session: 's' })
    await clock.advance(100)
    expect(bob.terminal()).toHaveLength(2)
    expect(new Set(bob.terminal().map(({ runId }) => runId)).size).toBe(1)
    await gateway.stop()
  })

  it('by another owner is a message of its own', async () => {
    const { clock, gateway } = await open()
    const ann = gateway.link({ account: 'ann' })
    await ann.send({ id: '1', content: 'hi', session: 's' })
    const bob = gateway.link({ account: 'bob' })
    await bob.send({ id: '1', content: 'hi', session: 's' })
    await clock.advance(100)
    const [first, second] = [ann.terminal(), bob.terminal()]
    expect(second).toMatchObject([{ messageId: '1', session: 's' }])
    expect(second[0]).not.toHaveProperty('redelivered')
    expect(second[0]?.['runId']).not.toBe(first[0]?.['runId'])
    await gateway.stop()
  })

  it('over a new socket of the same client gets the stored answer; a full queue does not refuse it', async () => {
    const { clock, gateway } = await open({
      limits: {
        queued_per_session: 1,
        queued_total: 1,
        concurrent_turns: 1,
        concurrent_turns_per_provider: 1,
        concurrent_turns_per_account: 1,
      },
      workMs: () => 1_000,
    })
    const first = gateway.link({ account: 'ann' })
    await first.send({ id: '1', content: 'hi', session: 's' })
    await clock.advance(1)
    await first.send({ id: '2', content: 'hi', session: 's' }, { id: '3', content: 'hi', session: 's' })
    await clock.advance(1)
    expect(first.terminal()).toMatchObject([{ messageId: '3', code: 'QUEUE_FULL' }])
    first.socket.terminate()
    await clock.advance(1)
    const second = gateway.link({ account: 'ann' })
    await second.send({ id: '1', content: 'hi', session: 's' }, { id: '2', content: 'hi', session: 's' })
    await clock.advance(5_000)
    expect(second.terminal()).toMatchObject([{ messageId: '1' }, { messageId: '2' }])
    await gateway.stop()
  })

  it('three times at once is one message, also when the disk refuses the first', async () => {
    const { clock, gateway, files } = await open()
    const client = gateway.link({ account: 'u' })
    await client.send({ id: 'warm', content: 'up' })
    await clock.advance(100)
    files.injectFault(files.operations, 'ENOSPC')
    const frame = { id: '1', content: 'hi', ack: true }
    await client.send(frame, frame, frame)
    await clock.advance(100)
    const runs = new Set(client.frames.filter(({ messageId }) => messageId === '1').map(({ runId }) => runId))
    expect(client.terminal().some(({ code }) => code === 'STORAGE_FULL')).toBe(true)
    expect([...runs].filter((run) => run !== undefined)).toHaveLength(1)
    await gateway.stop()
  })

  it('after the time we remember is a new message', async () => {
    const { clock, gateway } = await open({ limits: { redelivery_ms: 60_000 } })
    const client = gateway.link({ account: 'u' })
    await client.send({ id: '1', content: 'hi' })
    await clock.advance(59_000)
    await client.send({ id: '1', content: 'hi' })
    await clock.advance(2_000)
    await client.send({ id: '1', content: 'hi' })
    await clock.advance(1_000)
    expect(client.terminal().map(({ redelivered }) => redelivered ?? false)).toEqual([false, true, false])
    await gateway.stop()
  })
})

describe('memory', () => {
  it('keeps at most the allowed replies for a client that stays away, the newest', async () => {
    const world = await open({ limits: { outbox_per_account: 3 } })
    const client = world.gateway.link({ account: 'u' })
    await client.send(...Array.from({ length: 6 }, (_, index) => ({ id: `${index}`, content: 'x' })))
    await world.clock.advance(1)
    client.socket.terminate()
    await world.clock.advance(1_000)
    const back = world.gateway.link({ account: 'u' })
    await world.clock.advance(100)
    expect(back.terminal().map(({ messageId }) => messageId)).toEqual(['3', '4', '5'])
    expect(back.terminal().every((frame) => !('redelivered' in frame))).toBe(true)
    await world.gateway.stop()
  })

  it('does not grow with clients that come without identity, ask and leave', async () => {
    const { clock, gateway } = await open({ limits: { remembered_messages: 10 } })
    for (let index = 0; index < 40; index++) {
      const client = gateway.link()
      await client.send({ id: `${index}`, content: 'x' })
      await clock.advance(1)
      client.socket.terminate()
      await clock.advance(50)
    }
    const { open: unanswered, waiting, unknown, delivered } = await gateway.app.storage.outbox.counts()
    expect(unanswered).toBe(0)
    expect(waiting + unknown + delivered).toBeLessThanOrEqual(11)
    await gateway.stop()
  })

  it('prefers to forget what was delivered over what somebody still waits for', async () => {
    const { clock, gateway } = await open({ limits: { remembered_messages: 5 } })
    const away = gateway.link({ account: 'away' })
    await away.send({ id: 'kept', content: 'x' })
    await clock.advance(1)
    away.socket.terminate()
    await clock.advance(100)
    const busy = gateway.link({ account: 'busy' })
    for (let index = 0; index < 20; index++) {
      await busy.send({ id: `${index}`, content: 'x' })
      await clock.advance(50)
    }
    const back = gateway.link({ account: 'away' })
    await clock.advance(100)
    expect(back.terminal()).toMatchObject([{ messageId: 'kept' }])
    await gateway.stop()
  })
})

describe('a long backlog', () => {
  it('does not count as slow reading: everything comes, and the socket stays', async () => {
    const { clock, gateway } = await open()
    const client = gateway.link({ account: 'u' })
    await client.send(...Array.from({ length: 60 }, (_, index) => ({ id: `${index}`, content: 'x'.repeat(50_000) })))
    await clock.advance(1)
    client.socket.terminate()
    await clock.advance(5_000)
    const back = gateway.link({ account: 'u' })
    await clock.advance(1_000)
    expect(back.closed).toBeUndefined()
    expect(back.terminal()).toHaveLength(60)
    await gateway.stop()
  })

  it('of a reader that does not read ends with 1013, and the replies are still there for the next socket', async () => {
    const { clock, gateway } = await open({ workMs: () => 5 })
    const client = gateway.link({ account: 'u' })
    await client.send({ type: 'ack', seq: 0 })
    client.socket.pause()
    for (let index = 0; index < 40; index++) {
      await client.send({ id: `${index}`, content: 'x'.repeat(60_000) })
      await clock.advance(20)
    }
    await clock.advance(40_000)
    const back = gateway.link({ account: 'u' })
    await clock.advance(1_000)
    const got = new Set([...client.terminal(), ...back.terminal()].map(({ messageId }) => messageId))
    const { waiting, unknown, delivered } = await gateway.app.storage.outbox.counts()
    expect(got.size).toBe(waiting + unknown + delivered)
    expect(got.size).toBeGreaterThan(15)
    expect(got.size).toBeLessThan(40)
    await gateway.stop()
  })
})

describe('stopping', () => {
  it('does not wait for ever for a session whose reset is being written', async () => {
    const { clock, gateway } = await open({ workMs: () => 1_000 })
    const client = gateway.link({ account: 'u' })
    await client.send({ id: '1', content: 'a', session: 's' })
    await clock.advance(1)
    void client.send({ type: 'session.reset', key: 's' }, { id: '2', content: 'b', session: 's' })
    await Promise.resolve()
    await gateway.stop()
  })
})
