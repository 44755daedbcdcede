import { describe, expect, it } from 'vitest'
import type { Socket } from '../../src/base/sockets.ts'
import { openHub, type Hub, type HubLimits } from '../../src/simulator/hub/hub.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { MemoryNetwork } from '../../src/testing/memory-network.ts'
import { gatewaysOfThisFile } from '../support/gateways.ts'

const gateways = gatewaysOfThisFile()

const HUB = { host: 'hub.test', port: 9000 }
const TOKENS = { bridge: 'bridge-token', client: 'client-token' }

interface Peer {
  readonly socket: Socket
  readonly frames: Record<string, unknown>[]
  closed: number | undefined
  send(frame: unknown): Promise<void>
}

class World {
  readonly clock = new ManualClock()
  readonly network = new MemoryNetwork(this.clock)
  hub!: Hub

  async openHub(limits: Partial<HubLimits> = {}): Promise<void> {
    this.hub = await openHub({ clock: this.clock, servers: this.network, ...HUB, tokens: TOKENS, limits })
  }

  async join(query: string): Promise<Peer> {
    const url = `ws://${HUB.host}:${HUB.port}/ws?${query}`
    const options = { maxFrameBytes: 1024 * 1024, timeoutMs: 1_000 }
    const socket = await this.network.dial(url, options, new AbortController().signal)
    const peer: Peer = {
      socket,
      frames: [],
      closed: undefined,
      send: (frame) => socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame)),
    }
    socket.listen({
      onText: (text) => peer.frames.push(JSON.parse(text) as Record<string, unknown>),
      onPong: () => undefined,
      onClose: (code) => {
        peer.closed = code
      },
    })
    return peer
  }

  client(uid = 'gw'): Promise<Peer> {
    return this.join(`token=${TOKENS.client}&uid=${uid}`)
  }

  openGateway(token = TOKENS.bridge): ReturnType<typeof gateways.open> {
    const webhook_url = `ws://${HUB.host}:${HUB.port}/ws?token=${token}`
    return gateways.open({ clock: this.clock, network: this.network, config: { webhook_url, uid: 'gw' } })
  }
}

describe('the hub', () => {
  it('lets nobody in without the right token, role and uid', async () => {
    const world = new World()
    await world.openHub({ connections: 1 })
    await expect(world.join('uid=gw')).rejects.toMatchObject({ status: 401 })
    await expect(world.join('uid=gw&token=wrong')).rejects.toMatchObject({ status: 401 })
    await expect(world.join(`token=${TOKENS.client}`)).rejects.toMatchObject({ status: 400 })
    await expect(world.join(`token=${TOKENS.client}&uid=gw&role=bridge`)).rejects.toMatchObject({ status: 403 })
    await world.client()
    await expect(world.client()).rejects.toMatchObject({ status: 503 })
    await world.hub.close()
  })

  it('passes frames from one side to the other, never back, never to another uid', async () => {
    const world = new World()
    await world.openHub()
    const bridge = await world.join(`token=${TOKENS.bridge}&uid=gw`)
    const [one, two, other] = [await world.client(), await world.client(), await world.client('else')]
    await one.send({ id: '1' })
    await bridge.send({ type: 'complete' })
    await world.clock.advance(1)
    expect(bridge.frames).toEqual([{ id: '1' }])
    expect(one.frames).toEqual([{ type: 'complete' }])
    expect(two.frames).toEqual([{ type: 'complete' }])
    expect(other.frames).toEqual([])
    await other.send({ id: 'x', requestId: 'r' })
    await world.clock.advance(1)
    expect(other.frames).toMatchObject([{ type: 'error', code: 'HUB_NO_BRIDGE', messageId: 'x', requestId: 'r' }])
    await world.hub.close()
  })

  it('keeps what the bridge says while no client is there, the newest within its limits', async () => {
    const world = new World()
    await world.openHub({ heldFrames: 2 })
    const bridge = await world.join(`token=${TOKENS.bridge}&uid=gw`)
    for (const id of [1, 2, 3]) await bridge.send({ id })
    await world.clock.advance(1)
    expect(world.hub.status()).toEqual({ uids: 1, connections: 1, dropped: 1 })
    const client = await world.client()
    await world.clock.advance(1)
    expect(client.frames).toEqual([{ id: 2 }, { id: 3 }])
    await world.hub.close()
  })

  it('lets a bridge that comes back take the place of its dead predecessor', async () => {
    const world = new World()
    await world.openHub()
    const old = await world.join(`token=${TOKENS.bridge}&uid=gw`)
    const young = await world.join(`token=${TOKENS.bridge}&uid=gw`)
    await world.clock.advance(1)
    expect(old.closed).toBe(4001)
    const client = await world.client()
    await client.send({ id: '1' })
    await world.clock.advance(1)
    expect(young.frames).toEqual([{ id: '1' }])
    await world.hub.close()
  })
})

describe('dial mode', () => {
  it('serves clients behind the hub like those at the door, and ignores its own frames', async () => {
    const world = new World()
    await world.openHub()
    const gateway = await world.openGateway()
    await world.clock.advance(10)
    const client = await world.client()
    await client.send({ id: '1', content: 'hello' })
    await client.send({ type: 'complete', content: 'not a question' })
    await client.send({ type: 'session.list', requestId: 7 })
    await world.clock.runUntil(() => client.frames.length >= 2)
    expect(client.frames).toMatchObject([
      { type: 'session.list', requestId: 7 },
      { type: 'complete', messageId: '1', session: 'webhook:1' },
    ])
    const { channels } = (await gateway.api('/api/status')) as { channels: { webhook: { hub: unknown } } }
    expect(channels.webhook.hub).toEqual({
      url: 'ws://hub.test:9000/ws',
      state: 'up',
      attempts: 0,
      lastError: '',
      malformedFrames: 0,
    })
    await gateway.stop()
    await world.hub.close()
  })

  it('comes back with doubling pauses while the hub is gone, and nothing is lost', async () => {
    const world = new World()
    await world.openHub()
    const gateway = await world.openGateway()
    await world.clock.advance(20_000)
    const client = await world.client()
    await client.send({ id: '1', content: 'count to 100', ack: true })
    await world.clock.advance(20)
    expect(client.frames).toMatchObject([{ type: 'accepted' }])
    await world.hub.close()
    const tries = (): number[] =>
      world.network.attempts.filter(({ url }) => url.includes(TOKENS.bridge)).map(({ at }) => at)
    await world.clock.advance(1)
    const lostAt = world.clock.now()
    await world.clock.advance(240_000)
    const pauses = tries()
      .filter((at) => at >= lostAt)
      .map((at, index, all) => at - (all[index - 1] ?? lostAt))
    const nominal = [2_000, 4_000, 8_000, 16_000, 32_000, 60_000]
    for (const [index, expected] of nominal.entries()) {
      expect(pauses[index]).toBeGreaterThanOrEqual(expected * 0.79)
      expect(pauses[index]).toBeLessThanOrEqual(expected * 1.21)
    }
    await world.openHub()
    await world.clock.advance(80_000)
    const returned = await world.client()
    await world.clock.runUntil(() => returned.frames.length > 0)
    expect(returned.frames).toMatchObject([{ type: 'complete', messageId: '1' }])
    const before = world.network.attempts.length
    await world.clock.advance(15_000)
    for (const { server, url } of world.network.connections('hub.test:9000')) if (url.includes('bridge')) server.cut()
    await world.clock.advance(2_500)
    // Ten seconds of health: it starts over with the first pause.
    expect(world.network.attempts.length).toBe(before + 1)
    await gateway.stop()
    await world.hub.close()
  })

  it('notices a hub that has gone silent, and stops in time beside one', async () => {
    const world = new World()
    await world.openHub()
    const gateway = await world.openGateway()
    await world.clock.advance(100)
    for (const { server } of world.network.connections('hub.test:9000')) server.goHalfOpen()
    await world.clock.advance(130_000)
    expect(world.network.attempts.length).toBeGreaterThan(1)
    for (const { server } of world.network.connections('hub.test:9000')) server.goHalfOpen()
    const before = world.clock.now()
    await gateway.stop()
    expect(world.clock.now() - before).toBeLessThan(3_000)
    await world.hub.close()
  })

  it('says of a refusal what of its own configuration to look at', async () => {
    const world = new World()
    await world.openHub()
    const gateway = await world.openGateway('wrong')
    await world.clock.advance(100)
    const { channels } = (await gateway.api('/api/status')) as { channels: { webhook: { hub: unknown } } }
    expect(channels.webhook.hub).toMatchObject({
      state: 'waiting',
      lastError: 'hub.test:9000 refused with status 401: check the token in webhook_url',
    })
    await gateway.stop()
    await world.hub.close()
  })

  it('keeps a history of its link that can be read, and connects anew when asked', async () => {
    const world = new World()
    await world.openHub()
    const gateway = await world.openGateway()
    await world.clock.advance(100)
    const history = async () =>
      (await gateway.api('/api/channels/webhook/history'))['history'] as { what: string; reason?: string }[]
    expect((await history()).map(({ what }) => what)).toEqual(['connecting', 'open'])
    const reconnect = () => gateway.api('/api/channels/webhook/reconnect', { method: 'POST' })
    expect(await reconnect()).toMatchObject({ success: true, links: 1 })
    await world.clock.advance(5_000)
    expect((await history()).map(({ what }) => what)).toEqual(['connecting', 'open', 'down', 'connecting', 'open'])
    await world.hub.close()
    await world.clock.advance(10_000)
    const last = (await history()).at(-1)
    expect(last).toMatchObject({ link: 1, what: 'failed', nextInMs: expect.any(Number) as number })
    expect(JSON.stringify(last)).not.toContain(TOKENS.bridge)
    await gateway.stop()
  })
})
