import { expect, test } from 'vitest'
import { settle } from '../../../src/testing/manual-clock.ts'
import type { World, WorldOptions } from '../../support/xiaoyi-world.ts'
import { AGENT, framesOf, inWorld, openWorld } from '../../support/xiaoyi-world.ts'

async function closeChannel({ channel, clock, gateway }: World): Promise<void> {
  const closing = channel.close()
  await clock.advance(3_000)
  await closing
  gateway.stop()
}

/** The same phone and disk, with a new process. */
async function restart(world: World, options: WorldOptions = {}): Promise<World> {
  const { clock, network, simulator, files } = world
  return openWorld({ ...options, clock, network, simulator, files })
}

test('closing ends every task that has begun, once, and says goodbye to the service with 1000', () =>
  inWorld({ config: { language: 'en' } }, async (world) => {
    const { simulator, clock, channel } = world
    const tasks = [simulator.say('hang'), simulator.say('hang', { sessionId: simulator.newConversation() })]
    await clock.advance(1_000)
    await closeChannel(world)
    for (const task of tasks) {
      expect(task).toMatchObject({ state: 'done', finals: 1 })
      expect(task.text).toBe('begun.\n\nThe service is restarting. Please send your message again.')
    }
    expect(simulator.connections.closes.map(({ code }) => code)).toEqual([1000, 1000])
    await channel.close()
  }))

test('a message that only waited in the queue is answered after the restart, under its own task', () =>
  inWorld({}, async (world) => {
    const { simulator, clock, gateway } = world
    const [running, queued] = [simulator.say('hang'), simulator.say('hello')]
    await clock.advance(1_000)
    await closeChannel(world)
    expect([running.state, queued.state]).toEqual(['done', 'running'])
    const second = await restart(world)
    const waiting = gateway.accepted.find(({ text }) => text === 'hello')
    if (waiting === undefined) throw new Error('the queued message was not accepted')
    second.gateway.enqueue(waiting)
    await clock.advance(1_000)
    expect(queued).toMatchObject({ state: 'done', text: 'hello', finals: 1 })
    await closeChannel(second)
  }))

test('the answer to a task that was closed by a shutdown is pushed after the restart, not sent', () =>
  inWorld({ push: true }, async (world) => {
    const { simulator, clock, gateway } = world
    const task = simulator.say('work 5|the result')
    await clock.advance(1_000)
    await closeChannel(world)
    const second = await restart(world, { push: true })
    const [message] = gateway.accepted
    if (message === undefined) throw new Error('nothing was accepted')
    second.gateway.enqueue(message)
    await clock.advance(10_000)
    expect(simulator.push.received).toMatchObject([{ text: 'the result', sessionId: simulator.sessionId }])
    expect(task.finals).toBe(1)
    await closeChannel(second)
  }))

test('after a kill the acknowledged task is finished by the next process, once', () =>
  inWorld({}, async (world) => {
    const { simulator, clock, gateway, network } = world
    const task = simulator.say('say one |two |three')
    await clock.advance(1_500)
    // The process is gone: its sockets break, its timers never fire again.
    const files = world.files.kill()
    gateway.stop()
    for (const { client } of network.connections()) client.cut()
    await world.channel.close()
    const second = await restart({ ...world, files })
    const [message] = gateway.accepted
    if (message === undefined) throw new Error('nothing was accepted')
    second.gateway.enqueue(message)
    await clock.advance(10_000)
    expect(task).toMatchObject({ state: 'done', text: 'one two three', finals: 1 })
    expect(framesOf(task).filter((frame) => frame.includes('final'))).toHaveLength(1)
    await closeChannel(second)
  }))

test('what arrives while draining is stored and acknowledged', () =>
  inWorld({}, async ({ simulator, clock, channel, gateway }) => {
    channel.drain()
    const task = simulator.say('hello')
    await clock.advance(100)
    expect(gateway.accepted).toHaveLength(1)
    expect(framesOf(task)[0]).toBe('status "working"')
  }))

test('a channel that is closed while it connects leaves nothing behind', () =>
  inWorld({ start: false }, async (world) => {
    const starting = world.channel.start(world.gateway)
    const closing = world.channel.close()
    await starting
    await closing
    await settle()
    expect(world.simulator.connections.open()).toEqual([])
  }))

test('an unreadable state file is set aside, not fatal', () =>
  inWorld({}, async (world) => {
    await closeChannel(world)
    world.files.plant('/home/xiaoyi.json', '{"pins":')
    const second = await restart(world)
    expect(world.files.text('/home/xiaoyi.json.unreadable')).toBe('{"pins":')
    await closeChannel(second)
  }))

test('no key, secret, signature, query string or message text is logged or shown in the status', () =>
  inWorld({ push: true, config: { taskLimitMs: 60_000 } }, async (world) => {
    const { simulator, clock, channel, logs, network } = world
    const uri = simulator.addFile({ name: 'f.txt', bytes: Buffer.from('file-canary'), mimeType: 'text/plain' })
    simulator.sayParts([
      { kind: 'text', text: 'fail text-canary' },
      { kind: 'file', file: { name: 'name-canary.txt', uri: `${uri}&query-canary=1` } },
      { kind: 'file', file: { name: 'f.txt', uri: uri.replace('signature=', 'signature=bad-canary') } },
    ])
    simulator.sendRaw('{"malformed-canary":')
    await clock.advance(1_000)
    simulator.say('work 90|answer-canary')
    simulator.switches.pushCode = '7'
    await clock.advance(61_000)
    simulator.switches.refuseWith = 401
    simulator.connections.cut()
    await clock.advance(100_000)
    const told = [...logs, JSON.stringify(channel.status())].join('\n')
    expect(logs.length).toBeGreaterThan(5)
    expect(told).not.toContain('canary')
    const signed = network.attempts.length
    expect(signed).toBeGreaterThan(2)
    expect(told).not.toContain(AGENT.sk)
    expect(told).not.toMatch(/[A-Za-z0-9+/]{43}=/)
  }))
