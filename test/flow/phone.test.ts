import { describe, expect, it } from 'vitest'
import { openSimulatedPhone, type SimulatedPhone } from '../../src/app/simulated-phone.ts'
import { createXiaoyiSimulator } from '../../src/simulator/xiaoyi/simulator.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../src/testing/memory-files.ts'
import { MemoryNetwork } from '../../src/testing/memory-network.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'
import type { MemoryGateway } from '../support/gateway.ts'
import { gatewaysOfThisFile } from '../support/gateways.ts'
import { AGENT } from '../support/xiaoyi-world.ts'

const { open: openGateway } = gatewaysOfThisFile()

interface Screen {
  readonly connected: boolean
  readonly bubbles: readonly {
    readonly from: string
    readonly text: string
    readonly thinking?: string
    readonly state: string
  }[]
  readonly violations: number
}

interface Simulating {
  readonly gateway: MemoryGateway
  readonly phone: SimulatedPhone
}

async function simulating(config: Record<string, unknown> = {}): Promise<Simulating> {
  const clock = new ManualClock()
  const network = new MemoryNetwork(clock)
  const phone = await openSimulatedPhone({ clock, ids: new SeededIds(7), servers: network })
  const gateway = await openGateway({ clock, network, config, phone })
  await clock.runUntil(() => phone.screen.view()['connected'] === true)
  return { gateway, phone }
}

const post = (gateway: MemoryGateway, path: string, body: object = {}) =>
  gateway.request(`/api/phone/${path}`, { method: 'POST', body: JSON.stringify(body) })

async function screenOf(gateway: MemoryGateway): Promise<Screen> {
  return (await gateway.api('/api/phone')) as unknown as Screen
}

async function untilOver({ gateway, phone }: Simulating): Promise<Screen> {
  const last = (): string | undefined => (phone.screen.view() as unknown as Screen).bubbles.at(-1)?.state
  await gateway.clock.runUntil(() => last() !== 'running')
  return screenOf(gateway)
}

describe('the simulated phone', () => {
  it('has its links in the log lines of the dashboard', async () => {
    const { gateway } = await simulating()
    const { lines } = (await gateway.api('/api/logs?level=info')) as { lines: { message: string; facts: object }[] }
    expect(lines.map(({ message, facts }) => [message, facts])).toContainEqual([
      'XiaoYi link is open',
      expect.objectContaining({ channel: 'xiaoyi', link: 0 }),
    ])
  })

  it('talks to the gateway without an account, in the place of the configured one', async () => {
    const running = await simulating({
      channels: {
        xiaoyi: { enabled: true, ak: '$NOT_SET_ANYWHERE', sk: 'x', agentId: 'real', wsUrl1: 'wss://x.test' },
      },
    })
    const { gateway } = running
    expect(await gateway.api('/api/status')).toMatchObject({ simulatesXiaoyi: true })
    expect(await screenOf(gateway)).toEqual({ connected: true, bubbles: [], violations: 0 })
    expect((await post(gateway, 'messages', { text: 'What is 2 + 2?' })).status).toBe(200)
    const { bubbles, violations } = await untilOver(running)
    expect(bubbles).toMatchObject([
      { from: 'user', text: 'What is 2 + 2?', state: 'sent' },
      { from: 'agent', text: expect.stringContaining('2 + 2 = 4'), state: 'done' },
    ])
    expect(violations).toBe(0)
  })

  it('stops an answer, and begins another conversation after clearing', async () => {
    const running = await simulating()
    const { gateway } = running
    await post(gateway, 'messages', { text: 'Count to 5000' })
    await gateway.clock.runUntil(() => JSON.stringify(running.phone.screen.view()).includes('1'))
    expect((await post(gateway, 'cancel')).status).toBe(200)
    const stopped = await untilOver(running)
    expect(stopped.bubbles.at(-1)).toMatchObject({ from: 'agent', state: 'canceled' })
    expect((await post(gateway, 'clear')).status).toBe(200)
    expect((await screenOf(gateway)).bubbles).toEqual([])
    await post(gateway, 'messages', { text: 'Hello' })
    const { bubbles, violations } = await untilOver(running)
    expect(bubbles.map(({ from }) => from)).toEqual(['user', 'agent'])
    expect(violations).toBe(0)
  })

  it('sends files inside a message', async () => {
    const running = await simulating()
    const { gateway } = running
    const data = Buffer.from('a line of notes').toString('base64')
    await post(gateway, 'messages', { text: 'Read this', files: [{ name: 'notes.txt', mimeType: 'text/plain', data }] })
    const { bubbles } = await untilOver(running)
    expect(bubbles[0]).toMatchObject({ text: 'Read this\n[notes.txt]' })
    expect(bubbles[1]).toMatchObject({ from: 'agent', state: 'done' })
  })

  it.each([
    [{}, 'text'],
    [{ text: ' ' }, 'text'],
    [{ text: 7 }, 'text'],
    [{ text: 'x'.repeat(100_001) }, 'text'],
    [{ text: 'x', files: 'y' }, 'files'],
    [{ text: 'x', files: [{ name: 'n' }] }, 'files'],
  ])('refuses what is no message (case %#)', async (body, field) => {
    const { gateway } = await simulating()
    const { status, text } = await post(gateway, 'messages', body)
    expect({ status, ...(JSON.parse(text) as object) }).toMatchObject({ status: 400, code: 'FIELD_INVALID', field })
  })

  it('is not there without the flag', async () => {
    const gateway = await openGateway()
    expect((await gateway.request('/api/phone')).status).toBe(404)
    for (const path of ['messages', 'cancel', 'clear']) expect((await post(gateway, path)).status).toBe(404)
    expect(await gateway.api('/api/status')).not.toHaveProperty('simulatesXiaoyi')
  })

  it('gets nothing that waits for the phones of the configured account', async () => {
    const clock = new ManualClock()
    const network = new MemoryNetwork(clock)
    const real = await createXiaoyiSimulator({
      clock,
      ids: new SeededIds(5),
      servers: network,
      agent: AGENT,
      endpoints: [{ host: '127.0.0.1', port: 9001 }],
    })
    const config = { channels: { xiaoyi: { enabled: true, ...AGENT, wsUrl1: real.urls[0], wsUrl2: '' } } }
    const files = new MemoryFiles({ now: () => clock.now() })
    const before = await openGateway({ clock, network, files, config })
    await clock.runUntil(() => real.connections.ready().length === 1)
    const task = real.say('Count to 40')
    await clock.runUntil(() => task.isAcknowledged)
    real.switches.refuseWith = 503
    real.connections.cut()
    await clock.runUntil(() => real.connections.ready().length === 0)
    await before.stop()

    const phone = await openSimulatedPhone({ clock, ids: new SeededIds(7), servers: network })
    const during = await openGateway({ clock, network, files, phone })
    await clock.runUntil(() => phone.screen.view()['connected'] === true)
    await clock.advance(60_000)
    expect(phone.screen.view()).toMatchObject({ bubbles: [], violations: 0 })
    await during.stop()

    real.switches.refuseWith = undefined
    await openGateway({ clock, network, files })
    await clock.runUntil(() => task.finals === 1)
    await phone.close()
    await real.close()
  })

  it('says that it reaches no gateway', async () => {
    const { gateway, phone } = await simulating()
    await gateway.stop()
    phone.screen.say('Hello', [])
    expect(phone.screen.view()).toMatchObject({
      connected: false,
      bubbles: [{ from: 'user', text: 'Hello', state: 'undelivered' }],
    })
    expect(() => phone.screen.clear()).toThrow('not connected')
  })
})
