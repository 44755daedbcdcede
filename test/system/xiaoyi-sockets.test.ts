import { afterEach, expect, test } from 'vitest'
import { silentLog } from '../../src/base/log.ts'
import { XiaoyiChannel } from '../../src/channel/xiaoyi/channel.ts'
import { toXiaoyiSettings } from '../../src/channel/xiaoyi/settings.ts'
import { nodeHttpServers } from '../../src/platform/node-http-server.ts'
import { systemClock, systemIds } from '../../src/platform/system.ts'
import { createHttpClient } from '../../src/platform/undici-http-client.ts'
import { createWsDialer } from '../../src/platform/ws-sockets.ts'
import { createXiaoyiSimulator, type XiaoyiSimulator } from '../../src/simulator/xiaoyi/simulator.ts'
import { MemoryFiles } from '../../src/testing/memory-files.ts'
import { ScriptedGateway } from '../support/scripted-gateway.ts'
import { AGENT, openState } from '../support/xiaoyi-world.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

async function openSimulator(tls: boolean): Promise<XiaoyiSimulator> {
  const endpoint = { host: '127.0.0.1', port: 0, tls }
  const simulator = await createXiaoyiSimulator({
    clock: systemClock,
    ids: systemIds,
    servers: nodeHttpServers,
    agent: AGENT,
    endpoints: [endpoint, endpoint],
  })
  closing.push(() => simulator.close())
  return simulator
}

async function openChannel(simulator: XiaoyiSimulator, files = new MemoryFiles()): Promise<XiaoyiChannel> {
  const http = createHttpClient()
  const gateway: ScriptedGateway = new ScriptedGateway(systemClock, () => channel)
  const channel: XiaoyiChannel = await XiaoyiChannel.open({
    settings: toXiaoyiSettings({ ...AGENT, servers: simulator.urls.map((url) => ({ url })), pieceMs: 1 }),
    clock: systemClock,
    ids: systemIds,
    log: silentLog,
    files,
    home: '/home',
    state: await openState(files),
    dialer: createWsDialer(),
    http,
    keyFor: (route) => gateway.keyFor(route),
  })
  closing.push(async () => {
    await channel.close()
    gateway.stop()
    await http.close()
  })
  await channel.start(gateway)
  return channel
}

async function until(holds: () => boolean): Promise<void> {
  for (let waited = 0; !holds(); waited += 10) {
    if (waited > 20_000) throw new Error('it did not happen')
    await new Promise<void>((resolve) => systemClock.after(10, resolve))
  }
}

const FINGERPRINT = /^([0-9A-F]{2}:){31}[0-9A-F]{2}$/

test.each([
  [false, /^null$/],
  [true, FINGERPRINT],
])('over real sockets (TLS: %s) messages are answered, cleared and cancelled', async (tls, pinned) => {
  const simulator = await openSimulator(tls)
  const channel = await openChannel(simulator)
  await until(() => simulator.connections.ready().length === 2)
  const task = simulator.say('say one |two')
  await until(() => task.state === 'done')
  expect(task.text).toBe('one two')
  const hanging = simulator.say('hang')
  await until(() => hanging.text.startsWith('begun'))
  const cancel = simulator.cancel()
  await until(() => cancel.answers.length > 0)
  expect(hanging).toMatchObject({ state: 'done', lastState: 'canceled' })
  const clear = simulator.clear()
  await until(() => clear.answers.length > 0)
  expect(simulator.phone.violations).toEqual([])
  const [link] = channel.status()['links'] as { pinned: unknown }[]
  expect(String(link?.pinned)).toMatch(pinned)
})

test('a certificate that is not the pinned one is refused before the service sees a signature', async () => {
  const simulator = await openSimulator(true)
  const files = new MemoryFiles()
  const pins = Object.fromEntries(simulator.urls.map((url) => [url, 'AA:'.repeat(31) + 'AA']))
  files.plant('/home/xiaoyi.json', JSON.stringify({ pins }))
  const channel = await openChannel(simulator, files)
  const states = (): unknown[] => (channel.status()['links'] as { state: string }[]).map(({ state }) => state)
  await until(() => states().every((state) => state === 'refused'))
  expect(simulator.handshakes).toEqual([])
  await channel.trust()
  await until(() => simulator.connections.ready().length === 2)
})
