import { describe, expect, test } from 'vitest'
import type { XiaoyiConfig } from '../../../src/channel/xiaoyi/settings.ts'
import { toXiaoyiSettings } from '../../../src/channel/xiaoyi/settings.ts'
import { describeDialError } from '../../../src/channel/dial-error.ts'
import { DIAL_HINTS } from '../../../src/channel/xiaoyi/errors.ts'
import { ENDPOINTS, inWorld } from '../../support/xiaoyi-world.ts'
import type { World } from '../../support/xiaoyi-world.ts'

const MINUTE = 60_000

/** Seconds between the attempts on one endpoint. */
function delays({ network }: World, port: string): number[] {
  const at = network.attempts.filter(({ url }) => url.includes(port)).map((attempt) => attempt.at)
  return at.slice(1).map((time, index) => Math.round((time - (at[index] ?? 0)) / 100) / 10)
}

function linkStatus({ channel }: World): Record<string, unknown>[] {
  return channel.status()['links'] as Record<string, unknown>[]
}

describe('coming back', () => {
  test('delays double from 2 s to 60 s with jitter, each link on its own', () =>
    inWorld({}, async (world) => {
      const { network, clock } = world
      for (const host of ENDPOINTS) network.takeDown(host)
      world.simulator.connections.cut()
      await clock.advance(10 * MINUTE)
      const expected = [2, 4, 8, 16, 32, 60, 60]
      for (const port of ['9001', '9002']) {
        const seen = delays(world, port).slice(0, 7)
        seen.forEach((seconds, index) => {
          const middle = expected[index] ?? 60
          expect(seconds).toBeGreaterThanOrEqual(middle * 0.79)
          expect(seconds).toBeLessThanOrEqual(middle * 1.21)
        })
      }
      expect(delays(world, '9001')).not.toEqual(delays(world, '9002'))
    }))

  test('after 50 tries it goes on every five minutes, and is found when the service is back', () =>
    inWorld({ endpoints: 1 }, async (world) => {
      const { network, clock, simulator } = world
      network.takeDown(ENDPOINTS[0])
      simulator.connections.cut()
      await clock.advance(60 * MINUTE)
      expect(delays(world, '9001').length).toBeGreaterThan(48)
      await clock.advance(5 * 60 * MINUTE)
      const late = delays(world, '9001').slice(-10)
      expect(late.every((seconds) => seconds >= 240 && seconds <= 360)).toBe(true)
      network.bringUp(ENDPOINTS[0])
      await clock.advance(6 * MINUTE)
      expect(simulator.connections.ready()).toHaveLength(1)
    }))

  test('the counter starts again only after ten stable seconds', () =>
    inWorld({ endpoints: 1 }, async (world) => {
      const { simulator, clock } = world
      for (let drop = 0; drop < 3; drop++) {
        simulator.connections.cut()
        await clock.runUntil(() => simulator.connections.ready().length === 1)
        await clock.advance(3_000)
      }
      expect(linkStatus(world)[0]).toMatchObject({ state: 'open', attempts: 3 })
      await clock.advance(10_000)
      expect(linkStatus(world)[0]).toMatchObject({ attempts: 0, lastError: null })
    }))

  test('401 and 403 are tried again every five minutes, and the status says what to check', async () => {
    for (const [status, hint] of [
      [401, 'ak and sk'],
      [403, 'agentId'],
    ] as const) {
      await inWorld({ endpoints: 1, switches: { refuseWith: status } }, async (world) => {
        await world.clock.advance(60 * MINUTE)
        expect(delays(world, '9001')).toEqual(Array(12).fill(300))
        expect(linkStatus(world)[0]).toMatchObject({ state: 'refused', lastError: expect.stringContaining(hint) })
      })
    }
  })

  test('a clock that is off is told from the date of the refusal', () =>
    inWorld({ endpoints: 1, switches: { refuseWith: 401 }, start: false }, async (world) => {
      world.network.peerClockOffsetMs = -1_200_000
      await world.channel.start(world.gateway)
      await world.clock.advance(1_000)
      expect(linkStatus(world)[0]).toMatchObject({
        lastError: expect.stringContaining('the clock of this machine is off by 1200 s'),
      })
    }))

  test('wrong credentials are refused by the simulator itself', () =>
    inWorld({ endpoints: 1, config: { sk: 'another' } }, async ({ simulator }) => {
      expect(simulator.handshakes.map(({ status }) => status)).toEqual([401])
    }))
})

describe('staying alive', () => {
  test('a peer that never says anything after the opening is dead after 90 seconds', () =>
    inWorld({ endpoints: 1 }, async ({ simulator, clock }) => {
      simulator.connections.silence()
      await clock.advance(89_000)
      expect(simulator.connections.opened).toBe(1)
      await clock.advance(5_000)
      expect(simulator.connections.opened).toBe(2)
    }))

  test('heartbeats carry the time of their own sending', () =>
    inWorld({ endpoints: 1 }, async ({ network, clock }) => {
      await clock.advance(45_000)
      const sent = network.connections()[0]?.client.sent ?? []
      const beats = sent.flatMap((text) =>
        text.includes('heartbeat') ? [JSON.parse(text) as { timestamp: number }] : [],
      )
      expect(beats).toHaveLength(2)
      expect((beats[1]?.timestamp ?? 0) - (beats[0]?.timestamp ?? 0)).toBe(20_000)
    }))

  test('a heartbeat echo that never comes is not missed', () =>
    inWorld({ endpoints: 1, switches: { echoHeartbeats: false } }, async ({ simulator, clock }) => {
      await clock.advance(30 * MINUTE)
      expect(simulator.connections.opened).toBe(1)
    }))

  test('every link begins with init, and nothing comes before it', () =>
    inWorld({}, async ({ network }) => {
      for (const { client } of network.connections()) {
        expect(JSON.parse(client.sent[0] ?? '')).toEqual({ msgType: 'clawd_bot_init', agentId: 'agent-1' })
      }
      expect(network.connections()).toHaveLength(2)
    }))
})

describe('modes', () => {
  test('primary-only opens one link', () =>
    inWorld({ config: { links: 'primary-only' } }, async ({ simulator, clock }) => {
      await clock.advance(MINUTE)
      expect(simulator.connections.ready().map(({ endpoint }) => endpoint)).toEqual([0])
    }))

  test('failover opens the second when the first is down for 5 s, and closes it when the first was stable for 60 s', () =>
    inWorld({ config: { links: 'failover' } }, async ({ simulator, network, clock }) => {
      const open = (): number[] => simulator.connections.ready().map(({ endpoint }) => endpoint)
      await clock.advance(MINUTE)
      expect(open()).toEqual([0])
      network.takeDown(ENDPOINTS[0])
      simulator.connections.cut(0)
      await clock.advance(4_900)
      expect(open()).toEqual([])
      await clock.advance(200)
      expect(open()).toEqual([1])
      network.bringUp(ENDPOINTS[0])
      await clock.runUntil(() => open().length === 2)
      await clock.advance(59_000)
      expect(open()).toHaveLength(2)
      await clock.advance(2_000)
      expect(open()).toEqual([0])
      expect(simulator.connections.closes.at(-1)).toMatchObject({ endpoint: 1, code: 1000 })
    }))

  test('an answer whose link was closed on failback goes out over the first', () =>
    inWorld({ config: { links: 'failover' } }, async ({ simulator, network, clock }) => {
      network.takeDown(ENDPOINTS[0])
      simulator.connections.cut(0)
      await clock.advance(6_000)
      const task = simulator.say('work 110|done')
      network.bringUp(ENDPOINTS[0])
      await clock.advance(120_000)
      expect(task).toMatchObject({ state: 'done', text: 'done' })
      expect(task.frames.at(-1)?.endpoint).toBe(0)
    }))

  test('three servers work as well as two', () =>
    inWorld({ endpoints: 3 }, async ({ simulator, clock }) => {
      const tasks = [0, 1, 2].map((via) => simulator.say(`hello ${via}`, { via }))
      await clock.advance(1_000)
      expect(tasks.map((task) => task.frames.at(-1)?.endpoint)).toEqual([0, 1, 2])
    }))
})

describe('flapping', () => {
  test('a link evicted three times within 30 s rests five minutes, and the status names the likely cause', () =>
    inWorld({}, async (world) => {
      const { simulator, clock } = world
      for (let turn = 0; turn < 3; turn++) {
        await clock.runUntil(() => simulator.connections.ready(1).length === 1)
        simulator.connections.close(1, 1000, '')
        await clock.advance(100)
      }
      expect(linkStatus(world)[1]).toMatchObject({
        state: 'resting',
        lastError: expect.stringContaining('another instance'),
      })
      expect(world.channel.status()).toMatchObject({ degraded: true })
      const before = simulator.connections.opened
      await clock.advance(4 * MINUTE)
      expect(simulator.connections.opened).toBe(before)
      await clock.advance(2 * MINUTE)
      expect(simulator.connections.ready(1)).toHaveLength(1)
    }))

  test('the first link never rests alone: it comes back, but slowly', () =>
    inWorld({ endpoints: 1 }, async (world) => {
      const { simulator, clock } = world
      for (let turn = 0; turn < 3; turn++) {
        await clock.runUntil(() => simulator.connections.ready(0).length === 1)
        simulator.connections.close(0, 1000, '')
        await clock.advance(100)
      }
      expect(linkStatus(world)[0]).toMatchObject({ state: 'waiting' })
      const before = simulator.connections.opened
      await clock.advance(40_000)
      expect(simulator.connections.opened).toBe(before)
      await clock.advance(60_000)
      expect(simulator.connections.ready()).toHaveLength(1)
    }))
})

describe('certificates', () => {
  test('an address is pinned on first use, a change is refused before anything signed is sent, and can be accepted', () =>
    inWorld({ tls: true, endpoints: 1 }, async (world) => {
      const { network, simulator, channel, clock } = world
      expect(linkStatus(world)[0]).toMatchObject({ state: 'open', pinned: network.fingerprint })
      const first = network.fingerprint
      network.fingerprint = 'BB'.repeat(32)
      simulator.connections.cut()
      const handshakes = simulator.handshakes.length
      await clock.advance(MINUTE)
      expect(simulator.handshakes).toHaveLength(handshakes)
      expect(linkStatus(world)[0]).toMatchObject({
        state: 'refused',
        lastError: expect.stringContaining('clew channels trust xiaoyi'),
        pinned: { pinned: first, refused: network.fingerprint },
      })
      expect(await channel.trust()).toBe(1)
      await clock.advance(1_000)
      expect(linkStatus(world)[0]).toMatchObject({ state: 'open', pinned: network.fingerprint })
    }))

  test('a changed certificate is looked at again with the ordinary pauses, and the link is up when it was only a detour', () =>
    inWorld({ tls: true, endpoints: 1 }, async (world) => {
      const { network, simulator, clock } = world
      const first = network.fingerprint
      network.fingerprint = 'BB'.repeat(32)
      simulator.connections.cut()
      await clock.advance(10_000)
      expect(linkStatus(world)[0]).toMatchObject({ state: 'refused', nextTryInSeconds: expect.any(Number) })
      expect(linkStatus(world)[0]?.['nextTryInSeconds']).toBeLessThanOrEqual(72)
      network.fingerprint = first
      await clock.advance(72_000)
      expect(linkStatus(world)[0]).toMatchObject({ state: 'open', nextTryInSeconds: null })
    }))

  test('an expired certificate that is the pinned one is taken, and said in the status and once in the log', () =>
    inWorld({ tls: true, endpoints: 1 }, async (world) => {
      const { network, simulator, clock } = world
      expect(linkStatus(world)[0]).not.toHaveProperty('certificateExpiredAt')
      network.validity = { from: 0, to: clock.now() }
      for (let time = 0; time < 2; time++) {
        await clock.advance(30_000)
        simulator.connections.cut()
        await clock.advance(30_000)
      }
      expect(linkStatus(world)[0]).toMatchObject({ state: 'open', certificateExpiredAt: network.validity.to })
      const said = world.logs.filter((line) => line.includes('out of date'))
      expect(said).toHaveLength(1)
      network.validity = { from: 0, to: Number.MAX_SAFE_INTEGER }
      simulator.connections.cut()
      await clock.advance(30_000)
      expect(linkStatus(world)[0]).not.toHaveProperty('certificateExpiredAt')
    }))

  test('the pin survives a restart', async () => {
    let files: World['files'] | undefined
    await inWorld({ tls: true, endpoints: 1 }, async (world) => void (files = world.files))
    await inWorld({ tls: true, endpoints: 1, ...(files && { files }), start: false }, async (world) => {
      world.network.fingerprint = 'CC'.repeat(32)
      await world.channel.start(world.gateway)
      await world.clock.advance(1_000)
      expect(linkStatus(world)[0]).toMatchObject({ state: 'refused' })
    })
  })

  const withServer = (server: NonNullable<XiaoyiConfig['servers']>[number]) => () =>
    toXiaoyiSettings({ ak: 'a', sk: 's', agentId: 'i', servers: [server] }).servers[0]?.tls

  test.each([
    ['wss://hag.cloud.huawei.com/openclaw/v1/ws/link', undefined, 'verify'],
    ['wss://116.63.174.231/openclaw/v1/ws/link', undefined, 'pin'],
    ['wss://[2001:db8::1]/link', undefined, 'pin'],
    ['wss://116.63.174.231/link', 'skip', 'skip'],
    ['ws://127.0.0.1:9001/link', undefined, 'plain'],
    ['ws://localhost/link', undefined, 'plain'],
    ['ws://10.0.0.7/link', 'plain', 'plain'],
  ] as const)('%s with tls %s is connected with %s', (url, tls, expected) => {
    expect(withServer({ url, ...(tls === undefined ? {} : { tls }) })()).toBe(expected)
  })

  test('a backup address with a name to check against is verified', () => {
    expect(withServer({ url: 'wss://116.63.174.231/link', servername: 'hag.cloud.huawei.com' })()).toBe('verify')
  })

  test.each(['ws://10.0.0.7/link', 'https://example.com', 'nonsense'])('%s is refused', (url) => {
    expect(withServer({ url })).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID' }))
  })
})

describe('servers', () => {
  const keys = { ak: 'a', sk: 's', agentId: 'i' }
  const urlsOf = (config: XiaoyiConfig): string[] =>
    toXiaoyiSettings({ ...keys, ...config }).servers.map(({ url }) => new URL(url).hostname)

  test('are Huawei’s only when none is named: keys are not signed to an address that was not chosen', () => {
    expect(urlsOf({})).toEqual(['hag.cloud.huawei.com', '116.63.174.231'])
    expect(urlsOf({ wsUrl1: 'wss://mock.example/' })).toEqual(['mock.example'])
    expect(urlsOf({ wsUrl2: 'wss://mock.example/' })).toEqual(['mock.example'])
    expect(urlsOf({ wsUrl1: 'wss://one.example/', wsUrl2: '' })).toEqual(['one.example'])
    expect(urlsOf({ servers: [{ url: 'wss://list.example/' }] })).toEqual(['list.example'])
    expect(() => urlsOf({ servers: [] })).toThrow('needs wsUrl1 or servers')
  })

  test('take a tls rule beside wsUrl1 and wsUrl2', () => {
    const { servers } = toXiaoyiSettings({
      ...keys,
      wsUrl1: 'wss://a.example/',
      wsUrl2: 'wss://10.0.0.1/',
      tls: 'skip',
    })
    expect(servers.map(({ tls }) => tls)).toEqual(['skip', 'skip'])
  })
})

test('a binary frame is read as text; one that is no text is counted, and the link stays', () =>
  inWorld({ endpoints: 1 }, async ({ network, simulator, clock, channel, gateway }) => {
    const server = network.connections()[0]?.server
    if (server === undefined) throw new Error('the link is not open')
    server.send = async (text) => server.sendBytes(new TextEncoder().encode(text))
    server.sendBytes(Uint8Array.from([0xff, 0xfe, 0x00]))
    simulator.say('你好')
    await clock.advance(100)
    expect(channel.status()).toMatchObject({ malformedFrames: 1, links: [{ state: 'open', attempts: 0 }] })
    expect(gateway.accepted.map(({ text }) => text)).toEqual(['你好'])
  }))

test.each([
  ['ECONNREFUSED', 'nothing listens there'],
  ['CERT_HAS_EXPIRED', 'has expired'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', '"tls": "pin"'],
  ['ENOTFOUND', 'DNS'],
])('%s is explained with the address', (code, words) => {
  const error = Object.assign(new Error('x'), { code })
  const text = describeDialError(error, 'wss://hag.example:8443/path?ak=secret', DIAL_HINTS, 0)
  expect(text).toContain('hag.example:8443')
  expect(text).toContain(words)
  expect(text).toContain(code)
  expect(text).not.toContain('secret')
})
