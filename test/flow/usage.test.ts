import { afterEach, describe, expect, it } from 'vitest'
import { createProviderSimulator } from '../../src/simulator/provider/simulator.ts'
import type { ScriptedReply } from '../../src/simulator/provider/script.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { MemoryNetwork } from '../../src/testing/memory-network.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'
import { MemoryGateway, type Frame } from '../support/gateway.ts'

const open: MemoryGateway[] = []

const answer = (text: string, usage: object): ScriptedReply => ({ blocks: [{ type: 'text', text }], usage })
const USAGE = { input: 1_000, output: 200, cacheRead: 400, cacheWrite: 0 }

/** `sold` has a price in the configuration, `free` has none anywhere. */
async function openGateway(replies: readonly ScriptedReply[] = []): Promise<MemoryGateway> {
  const clock = new ManualClock(Date.parse('2026-11-16T10:30:00Z'))
  const network = new MemoryNetwork(clock)
  const queue = [...replies]
  const simulator = createProviderSimulator({
    api: 'openai-completions',
    dialect: 'compatible',
    clock,
    ids: new SeededIds(7),
    script: () => queue.shift() ?? answer('fine', USAGE),
  })
  const { baseUrl } = await simulator.serve(network)
  const price = { input: 2, output: 10, cacheRead: 0.5, cacheWrite: 0 }
  const providers = { local: { type: 'openai-compatible', baseUrl, models: { sold: { price }, free: {} } } }
  const gateway = await MemoryGateway.open({ clock, network, config: { model: 'local/sold', providers } })
  open.push(gateway)
  return gateway
}

afterEach(async () => {
  for (const gateway of open.splice(0)) await gateway.stop()
})

/** 600 fresh, 400 read from the cache, 200 out. */
const USD = (600 * 2 + 400 * 0.5 + 200 * 10) / 1e6

async function usageOf(gateway: MemoryGateway, query = ''): Promise<readonly Frame[]> {
  return (await gateway.api(`/api/usage${query}`))['usage'] as readonly Frame[]
}

describe('what a turn costs', () => {
  it('stands in its complete frame, with the model that answered', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect()
    const frame = await client.ask({ id: '1', content: 'hello', session: 's' })
    expect(frame).toMatchObject({ type: 'complete', content: 'fine', model: 'local/sold' })
    expect(frame['usage']).toEqual({
      input: 600,
      output: 200,
      cacheRead: 400,
      cacheWrite: 0,
      usd: expect.closeTo(USD, 10),
    })
  })

  it('is the sum over its rounds', async () => {
    const call = { type: 'toolCall', name: 'time', arguments: {} } as const
    const gateway = await openGateway([{ blocks: [call], usage: { input: 100, output: 10 } }, answer('done', USAGE)])
    const client = await gateway.connect()
    const frame = await client.ask({ id: '1', content: 'what time is it?', session: 's' })
    expect(frame['usage']).toMatchObject({ input: 700, output: 210, cacheRead: 400 })
  })

  it('is null dollars where the price is unknown, and no number is made up', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect()
    await client.ask({ id: '1', content: '/model local/free', session: 's' })
    const frame = await client.ask({ id: '2', content: 'hello', session: 's' })
    expect(frame).toMatchObject({ model: 'local/free', usage: { input: 600, usd: null } })
    const { sessions } = (await gateway.api('/api/sessions')) as { sessions: readonly Frame[] }
    expect(sessions).toMatchObject([{ key: 's', tokens: 1_200, usd: null }])
    const { messages } = (await gateway.api('/api/sessions/s/messages')) as { messages: readonly Frame[] }
    expect(messages.find(({ role }) => role === 'assistant')).toMatchObject({ usage: { usd: null } })
    const { requests } = (await gateway.api('/api/sessions/s/requests')) as { requests: readonly Frame[] }
    expect(requests[0]).toMatchObject({ usage: { usd: null } })
    const { models } = (await gateway.api('/api/models')) as { models: readonly Frame[] }
    expect(models.find(({ ref }) => ref === 'local/free')).toMatchObject({ price: null })
    expect(await client.ask({ id: '3', content: '/status', session: 's' })).toMatchObject({
      content: expect.stringContaining('cost unknown'),
    })
  })

  it('is not claimed by a command', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect()
    const frame = await client.ask({ id: '1', content: '/help', session: 's' })
    expect(frame).not.toHaveProperty('model')
    expect(frame).not.toHaveProperty('usage')
  })
})

describe('what was spent', () => {
  it('stands beside the tokens of a session, in its status, in the report and in the metrics', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect()
    await client.ask({ id: '1', content: 'hello', session: 's' })
    await client.ask({ id: '2', content: 'again', session: 's' })
    const usd = expect.closeTo(2 * USD, 10)
    const { sessions } = (await gateway.api('/api/sessions')) as { sessions: readonly Frame[] }
    expect(sessions).toMatchObject([{ key: 's', tokens: 2_400, usd }])
    const shown = await gateway.api('/api/sessions/s')
    expect(shown['usage']).toMatchObject({ requests: 2, tokens: 2_400, input: 1_200, output: 400, cacheRead: 800, usd })
    const status = await client.ask({ id: '3', content: '/status', session: 's' })
    expect(status['content']).toContain('2 requests: 2000 tokens in (800 from the cache), 400 out')
    expect(status['content']).toContain(`cost $${(2 * USD).toFixed(4)}`)
    const day = Date.parse('2026-11-16T00:00:00Z')
    expect(await usageOf(gateway)).toEqual([
      {
        at: day,
        group: 'local/sold',
        requests: 2,
        input: 1_200,
        output: 400,
        cacheRead: 800,
        cacheWrite: 0,
        usd,
        unpriced: 0,
        saved: 0,
      },
    ])
    expect(await usageOf(gateway, '?by=channel&bucket=hour')).toMatchObject([
      { at: day + 10 * 3_600_000, group: 'webhook' },
    ])
    expect(await usageOf(gateway, '?by=session')).toMatchObject([{ group: 's', requests: 2 }])
    expect(await usageOf(gateway, '?to=2026-11-16')).toEqual([])
    const metrics = (await gateway.request('/metrics')).text
    expect(metrics).toContain('clew_tokens_total{model="local/sold",kind="input"} 1200')
    expect(metrics).toContain('clew_tokens_total{model="local/sold",kind="cache_read"} 800')
    expect(metrics).toMatch(/clew_cost_usd_total\{model="local\/sold"\} 0\.0068/)
  })

  it('includes what cleanups saved, beside the model that had to answer', async () => {
    const calls = ['1 + 1', '2 + 2', '3 + 3'].map((expression): ScriptedReply => ({
      blocks: [
        { type: 'text', text: 'Let me think about the next part of this. '.repeat(20) },
        { type: 'toolCall', name: 'calculator', arguments: { expression } },
      ],
    }))
    const gateway = await openGateway([...calls, answer('done', USAGE)])
    const client = await gateway.connect('?stream=1')
    await client.ask({ id: '1', content: 'calculate', session: 's' })
    const cleaned = client.frames.find(({ event }) => event === 'step_cleanup_completed')
    const saved = (cleaned?.['data'] as { tokens_saved: number } | undefined)?.tokens_saved
    expect(saved).toBeGreaterThan(0)
    expect(await usageOf(gateway)).toMatchObject([{ group: 'local/sold', requests: 4, saved }])
  })

  it('is there after a crash', async () => {
    const gateway = await openGateway()
    const client = await gateway.connect()
    await client.ask({ id: '1', content: 'hello', session: 's' })
    const before = await usageOf(gateway)
    const clock = new ManualClock(gateway.clock.now() + 60_000)
    const processes = gateway.processes.successor()
    const next = await MemoryGateway.open({
      ...gateway.options,
      files: gateway.files.crash(),
      clock,
      network: new MemoryNetwork(clock),
      processes,
      seed: 2,
    })
    open.splice(0, open.length, next)
    expect(await usageOf(next)).toEqual(before)
  })

  it('is asked for with words that are known, and refused otherwise with the name of the field', async () => {
    const gateway = await openGateway()
    for (const [query, field] of [
      ['by=colour', 'by'],
      ['bucket=year', 'bucket'],
      ['from=yesterday', 'from'],
      ['to=2026-13-45', 'to'],
    ] as const) {
      const { status, text } = await gateway.request(`/api/usage?${query}`)
      expect([status, JSON.parse(text)]).toMatchObject([
        400,
        { code: 'FIELD_INVALID', error: expect.stringContaining(field) },
      ])
    }
  })
})
