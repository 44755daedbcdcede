import { afterEach, expect, test } from 'vitest'
import { XiaoyiClient, type XiaoyiClientEvents } from '../../../src/channel/xiaoyi/client.ts'
import { probeServers } from '../../../src/channel/xiaoyi/probe.ts'
import { toXiaoyiSettings } from '../../../src/channel/xiaoyi/settings.ts'
import { silentLog } from '../../../src/base/log.ts'
import { createXiaoyiSimulator, type XiaoyiSimulator } from '../../../src/simulator/xiaoyi/simulator.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { MemoryNetwork } from '../../../src/testing/memory-network.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'
import { AGENT } from '../../support/xiaoyi-world.ts'

let closing: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const close of closing.toReversed()) await close()
  closing = []
})

interface Opened {
  readonly clock: ManualClock
  readonly network: MemoryNetwork
  readonly simulator: XiaoyiSimulator
  readonly client: XiaoyiClient
  readonly seen: { readonly name: string; readonly event: unknown }[]
}

async function open(ak: string = AGENT.ak): Promise<Opened> {
  const clock = new ManualClock()
  const network = new MemoryNetwork(clock)
  const endpoint = (port: number): { host: string; port: number } => ({ host: '127.0.0.1', port })
  const simulator = await createXiaoyiSimulator({
    clock,
    ids: new SeededIds(3),
    servers: network,
    agent: AGENT,
    endpoints: [endpoint(9001), endpoint(9002)],
  })
  const servers = simulator.urls.map((url) => ({ url }))
  const deps = { clock, ids: new SeededIds(4), dialer: network, log: silentLog }
  const client = new XiaoyiClient({ ...AGENT, ak, servers }, deps)
  const seen: Opened['seen'] = []
  const names = ['message', 'data', 'cancel', 'clear', 'connected', 'disconnected', 'error'] as const
  for (const name of names) client.on(name, (event: XiaoyiClientEvents[typeof name]) => void seen.push({ name, event }))
  closing.push(async () => {
    const stopped = client.disconnect()
    await clock.advance(3_000)
    await stopped
    await simulator.close()
  })
  return { clock, network, simulator, client, seen }
}

const named = ({ seen }: Opened, name: string): unknown[] =>
  seen.filter((one) => one.name === name).map((one) => one.event)

test('connects, is asked, answers in pieces, and the phone shows it', async () => {
  const world = await open()
  const { client, simulator, clock } = world
  expect(client.isReady()).toBe(false)
  await client.connect()
  expect(client.isReady()).toBe(true)
  client.on('message', (message) => {
    client.sendStatusUpdate(message, 'working')
    client.sendResponse(message, 'You said ', { final: false })
    client.sendResponse(message, message.text, { append: true, final: false })
    client.sendResponse(message, `You said ${message.text}`)
  })
  const task = simulator.say('你好')
  await clock.advance(1_000)
  expect(task).toMatchObject({ state: 'done', text: 'You said 你好', finals: 1 })
  expect(simulator.phone.violations).toEqual([])
  expect(named(world, 'connected')).toHaveLength(2)
  expect(client.statistics()).toMatchObject({ connections: 2, malformed: 0, sent: 4 })
})

test('clear and cancel are events, answered when the program says so', async () => {
  const world = await open()
  const { client, simulator, clock } = world
  await client.connect()
  client.on('clear', ({ id, sessionId }) => client.sendClearContextResponse(id, sessionId))
  client.on('cancel', ({ id, sessionId }) => client.sendTasksCancelResponse(id, sessionId))
  const clear = simulator.clear()
  const cancel = simulator.cancel()
  await clock.advance(1_000)
  expect(clear.answers).toMatchObject([{ state: 'cleared' }])
  expect(cancel.answers).toMatchObject([{ state: 'canceled' }])
  expect(named(world, 'clear')).toEqual([{ sessionId: clear.sessionId, id: clear.id }])
})

test('comes back by itself and tells of it; a message over both links is one', async () => {
  const world = await open()
  const { client, simulator, clock } = world
  await client.connect()
  simulator.connections.cut()
  await clock.advance(10_000)
  expect(named(world, 'disconnected')).toHaveLength(2)
  expect(named(world, 'connected')).toHaveLength(4)
  simulator.switches.duplicateOnAllLinks = true
  simulator.say('once')
  await clock.advance(1_000)
  expect(named(world, 'message')).toMatchObject([{ text: 'once' }])
})

test('says why it is refused, goes on with the listeners that work, and stops at once when told', async () => {
  const world = await open('wrong')
  const stop = new AbortController()
  const connecting = world.client.connect(stop.signal)
  connecting.catch(() => undefined)
  world.client.on('error', () => {
    throw new Error('a defect of the listener')
  })
  await world.clock.advance(1_000)
  expect(named(world, 'error')[0]).toMatchObject({ reason: expect.stringContaining('401: check ak and sk') })
  stop.abort(new Error('enough'))
  await world.clock.advance(3_000)
  await expect(connecting).rejects.toThrow('enough')
  expect(world.client.isReady()).toBe(false)
})

test('one handshake with each server says what is right and what is not', async () => {
  const { clock, network, simulator } = await open()
  const servers = [...simulator.urls.map((url) => ({ url })), { url: 'ws://127.0.0.1:9999/nothing?sign=secret' }]
  const probe = (ak: string): ReturnType<typeof probeServers> =>
    probeServers(toXiaoyiSettings({ ...AGENT, ak, servers }), { dialer: network, clock }, new AbortController().signal)
  const [first, second, third] = await probe(AGENT.ak)
  expect([first, second]).toMatchObject([{ ok: true }, { ok: true }])
  expect(third).toMatchObject({ ok: false, url: 'ws://127.0.0.1:9999/nothing' })
  expect(third?.message).toContain('127.0.0.1:9999')
  expect((await probe('wrong'))[0]).toMatchObject({ ok: false, message: expect.stringContaining('check ak and sk') })
})
