import { describe, expect, it } from 'vitest'
import { createXiaoyiSimulator, type XiaoyiSimulator } from '../../src/simulator/xiaoyi/simulator.ts'
import { LinkHistory } from '../../src/channel/link-history.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { MemoryNetwork } from '../../src/testing/memory-network.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'
import type { MemoryGateway } from '../support/gateway.ts'
import { gatewaysOfThisFile } from '../support/gateways.ts'
import { AGENT } from '../support/xiaoyi-world.ts'

const { open: openGateway } = gatewaysOfThisFile()

interface Row {
  readonly at: number
  readonly link: number
  readonly what: string
  readonly reason?: string
  readonly nextInMs?: number
}

async function connected(): Promise<{ gateway: MemoryGateway; simulator: XiaoyiSimulator }> {
  const clock = new ManualClock()
  const network = new MemoryNetwork(clock)
  const endpoints = [9001, 9002].map((port) => ({ host: '127.0.0.1', port }))
  const ids = new SeededIds(5)
  const simulator = await createXiaoyiSimulator({ clock, ids, servers: network, agent: AGENT, endpoints })
  const [wsUrl1, wsUrl2] = simulator.urls
  const config = { channels: { xiaoyi: { enabled: true, ...AGENT, wsUrl1, wsUrl2 } } }
  const gateway = await openGateway({ clock, network, config })
  await clock.runUntil(() => simulator.connections.ready().length === 2)
  return { gateway, simulator }
}

async function historyOf(gateway: MemoryGateway): Promise<readonly Row[]> {
  return ((await gateway.api('/api/channels/xiaoyi/history')) as unknown as { history: Row[] }).history
}

describe('the links of a channel', () => {
  it('have a history, oldest first, with reasons and the next try', async () => {
    const { gateway, simulator } = await connected()
    expect((await historyOf(gateway)).map(({ link, what }) => `${link} ${what}`)).toEqual([
      '1 connecting',
      '2 connecting',
      '1 open',
      '2 open',
    ])
    simulator.switches.refuseWith = 503
    simulator.connections.cut(0)
    await gateway.clock.runUntil(() => simulator.handshakes.length >= 3)
    const later = (await historyOf(gateway)).slice(4)
    expect(later.map(({ link, what }) => `${link} ${what}`)).toEqual(['1 down', '1 connecting', '1 failed'])
    expect(later[0]).toMatchObject({ reason: expect.stringContaining('closed'), nextInMs: expect.any(Number) })
    expect(later[2]).toMatchObject({ reason: expect.stringContaining('503'), nextInMs: expect.any(Number) })
    const status = (await gateway.api('/api/status')) as { channels: { xiaoyi: { links: object[] } } }
    expect(status.channels.xiaoyi.links).toMatchObject([
      { state: 'waiting', nextInMs: expect.any(Number), lastSeenAt: expect.any(Number) },
      { state: 'open', nextInMs: null, lastSeenAt: expect.any(Number) },
    ])
  })

  it('are connected anew when asked for, one socket at a time', async () => {
    const { gateway, simulator } = await connected()
    expect(await gateway.api('/api/channels/xiaoyi/reconnect', { method: 'POST' })).toEqual({
      success: true,
      channel: 'xiaoyi',
      links: 2,
    })
    await gateway.clock.runUntil(() => simulator.handshakes.length === 4 && simulator.connections.ready().length === 2)
    expect((await historyOf(gateway)).slice(4).map(({ what }) => what)).toEqual([
      'down',
      'down',
      'connecting',
      'connecting',
      'open',
      'open',
    ])
    const task = simulator.say('What is 2 + 2?')
    await gateway.clock.runUntil(() => task.state !== 'running')
    expect(task.text).toContain('2 + 2 = 4')
    expect(simulator.phone.violations).toEqual([])
  })

  it('are events of the stream', async () => {
    const { gateway } = await connected()
    const seen: string[] = []
    const response = await gateway.network.request(
      {
        method: 'GET',
        url: `${gateway.url}/api/events?since=0`,
        headers: {},
        connectTimeoutMs: 1_000,
        firstByteTimeoutMs: 1_000,
        idleTimeoutMs: 60_000,
      },
      new AbortController().signal,
    )
    for await (const piece of response.body) {
      seen.push(Buffer.from(piece).toString())
      if (seen.join('').split('event: link').length > 4) break
    }
    expect(seen.join('')).toContain('"channel":"xiaoyi"')
    expect(seen.join('')).toContain('"link":2,"what":"open"')
  })

  it('are unknown for a channel that does not run, and none for one without links', async () => {
    const gateway = await openGateway()
    expect((await gateway.request('/api/channels/xiaoyi/history')).status).toBe(404)
    expect((await gateway.request('/api/channels/xiaoyi/reconnect', { method: 'POST' })).status).toBe(404)
    expect(await gateway.api('/api/channels/webhook/history')).toEqual({ history: [] })
    expect(await gateway.api('/api/channels/webhook/reconnect', { method: 'POST' })).toMatchObject({ links: 0 })
  })

  it('keep the latest 500 rows', () => {
    const history = new LinkHistory(new ManualClock())
    for (let n = 0; n < 600; n++) history.add(0, { what: 'failed', reason: String(n) })
    expect(history.rows).toHaveLength(500)
    expect(history.rows[0]?.reason).toBe('100')
  })
})
