import { expect, test } from 'vitest'
import type { Socket } from '../../../src/base/sockets.ts'
import { handshakeHeaders } from '../../../src/channel/xiaoyi/sign.ts'
import { createXiaoyiSimulator } from '../../../src/simulator/xiaoyi/simulator.ts'
import { settle } from '../../../src/testing/manual-clock.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'
import type { World } from '../../support/xiaoyi-world.ts'
import { AGENT, inWorld } from '../../support/xiaoyi-world.ts'

const OFF = { start: false } as const

async function dial({ network, simulator, clock }: World, headers?: Record<string, string>): Promise<Socket> {
  const signed = headers ?? handshakeHeaders(AGENT, AGENT.agentId, clock.now())
  const options = { headers: signed, maxFrameBytes: 1_000_000, timeoutMs: 1_000 }
  return network.dial(simulator.urls[0] ?? '', options, new AbortController().signal)
}

function closeCodes(socket: Socket): number[] {
  const codes: number[] = []
  socket.listen({ onText: () => {}, onPong: () => {}, onClose: (code) => codes.push(code) })
  return codes
}

test('the handshake checks key, signature, time and agent', () =>
  inWorld(OFF, async (world) => {
    const good = handshakeHeaders(AGENT, AGENT.agentId, world.clock.now())
    const old = handshakeHeaders(AGENT, AGENT.agentId, world.clock.now() - 16 * 60_000)
    const refused = [
      { ...good, 'x-access-key': 'other' },
      { ...good, 'x-sign': 'AAAA' },
      old,
      { ...good, 'x-agent-id': 'other' },
      {},
    ]
    for (const headers of refused) await dial(world, headers).catch(() => undefined)
    expect(world.simulator.handshakes.map(({ status }) => status)).toEqual([401, 401, 401, 403, 401])
    closeCodes(await dial(world, good))
    expect(world.simulator.handshakes.at(-1)?.status).toBe(101)
  }))

test('the handshake of the API-key tier checks key, user, origin and agent, and needs no signature', () =>
  inWorld({ ...OFF, agent: { ...AGENT, apiKey: 'key-1', uid: 'user-1' } }, async (world) => {
    const good = {
      'x-uid': 'user-1',
      'x-api-key': 'key-1',
      'x-agent-id': AGENT.agentId,
      'x-request-from': 'openclaw',
    }
    const { 'x-uid': _uid, ...nobody } = good
    const refused = [
      { ...good, 'x-api-key': 'other' },
      { ...good, 'x-uid': 'other' },
      nobody,
      { ...good, 'x-request-from': 'elsewhere' },
      { ...good, 'x-agent-id': 'other' },
    ]
    for (const headers of refused) await dial(world, headers).catch(() => undefined)
    expect(world.simulator.handshakes.map(({ status }) => status)).toEqual([401, 401, 401, 401, 403])
    const socket = await dial(world, good)
    const codes = closeCodes(socket)
    await socket.send(JSON.stringify({ msgType: 'clawd_bot_init', agentId: AGENT.agentId, msgDetail: '{}' }))
    await world.clock.advance(11_000)
    expect([world.simulator.handshakes.at(-1)?.status, codes]).toEqual([101, []])
  }))

test('a service without an API key refuses clients of that tier', () =>
  inWorld(OFF, async (world) => {
    const headers = { 'x-uid': 'u', 'x-api-key': 'k', 'x-agent-id': AGENT.agentId, 'x-request-from': 'openclaw' }
    await dial(world, headers).catch(() => undefined)
    expect(world.simulator.handshakes.at(-1)?.status).toBe(401)
  }))

test('a connection that does not begin with init is closed after ten seconds', () =>
  inWorld(OFF, async (world) => {
    const codes = closeCodes(await dial(world))
    await world.clock.advance(11_000)
    expect(codes).toEqual([4000])
  }))

test('a second connection evicts the first with 1000', () =>
  inWorld(OFF, async (world) => {
    const first = closeCodes(await dial(world))
    const second = closeCodes(await dial(world))
    await settle()
    expect([first, second]).toEqual([[1000], []])
  }))

test('frames before init are a violation', () =>
  inWorld(
    OFF,
    async (world) => {
      const socket = await dial(world)
      closeCodes(socket)
      await socket.send(JSON.stringify({ msgType: 'heartbeat', agentId: AGENT.agentId }))
      await socket.send('rubbish')
      await socket.send(JSON.stringify({ msgType: 'clawd_bot_init', agentId: AGENT.agentId }))
      await socket.send(JSON.stringify({ msgType: 'agent_request', agentId: AGENT.agentId }))
      await settle()
      expect(world.simulator.phone.violations.map(({ rule }) => rule)).toEqual([
        'before-init',
        'not-json',
        'unknown-msg-type',
      ])
    },
    ['before-init', 'not-json', 'unknown-msg-type'],
  ))

test('a port in use is named, and nothing stays open', () =>
  inWorld(OFF, async ({ network, clock }) => {
    const endpoints = [9005, 9001].map((port) => ({ host: '127.0.0.1', port }))
    const options = { clock, ids: new SeededIds(1), servers: network, agent: AGENT, endpoints }
    await expect(createXiaoyiSimulator(options)).rejects.toMatchObject({ code: 'PORT_IN_USE', facts: { port: 9001 } })
    const again = await createXiaoyiSimulator({ ...options, endpoints: endpoints.slice(0, 1) })
    await again.close()
  }))

test('file links are signed and expire', () =>
  inWorld(OFF, async ({ simulator, network, clock }) => {
    const url = simulator.addFile({ name: '报告.txt', bytes: Buffer.from('hello'), mimeType: 'text/plain' })
    const get = async (address: string): Promise<number> => {
      const timeouts = { connectTimeoutMs: 1, firstByteTimeoutMs: 1, idleTimeoutMs: 1 }
      const request = { method: 'GET', url: address, headers: {}, ...timeouts }
      return (await network.request(request, new AbortController().signal)).status
    }
    expect(await get(url)).toBe(200)
    expect(await get(url.replace(/signature=\w+/, 'signature=0'))).toBe(403)
    expect(await get(url.replace('/files/', '/files/x'))).toBe(404)
    await clock.advance(301_000)
    expect(await get(url)).toBe(403)
  }))

test('the push endpoint wants signed requests with a trace id', () =>
  inWorld({ push: true }, async ({ simulator, channel, clock }) => {
    const never = new AbortController().signal
    await expect(channel.push({ sessionId: 'nobody', text: 'text', state: 'completed' }, never)).rejects.toMatchObject({
      code: 'XIAOYI_PUSH_FAILED',
    })
    simulator.say('hello')
    await clock.advance(100)
    await channel.push({ sessionId: simulator.sessionId, text: `${'长'.repeat(80)}\nmore`, state: 'completed' }, never)
    expect(Array.from(simulator.push.received[0]?.title ?? '')).toHaveLength(57)
    simulator.switches.pushCode = '99911113'
    await expect(
      channel.push({ sessionId: simulator.sessionId, text: 'text', state: 'completed' }, never),
    ).rejects.toMatchObject({
      facts: { code: '99911113' },
    })
    expect(simulator.push.received).toHaveLength(1)
  }))

test('the phone is also a page', () =>
  inWorld({}, async ({ simulator, network, clock }) => {
    simulator.say('hello')
    await clock.advance(100)
    const url = new URL(simulator.pushUrl).origin
    const timeouts = { connectTimeoutMs: 1, firstByteTimeoutMs: 1, idleTimeoutMs: 1 }
    const request = { method: 'GET', url: `${url}/`, headers: {}, ...timeouts }
    const response = await network.request(request, new AbortController().signal)
    const pieces: Uint8Array[] = []
    for await (const piece of response.body) pieces.push(piece)
    expect(Buffer.concat(pieces).toString()).toBe('  hello\n  — done\n')
  }))
