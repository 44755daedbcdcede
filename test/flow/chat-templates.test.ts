import { afterEach, describe, expect, it } from 'vitest'
import { createProviderSimulator } from '../../src/simulator/provider/simulator.ts'
import { TEMPLATE_FAMILIES, type TemplateFamily } from '../../src/simulator/rules/chat-templates.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { MemoryNetwork } from '../../src/testing/memory-network.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'
import { MemoryGateway } from '../support/gateway.ts'

let gateway: MemoryGateway | undefined

afterEach(async () => {
  await gateway?.stop()
  gateway = undefined
})

const FAMILIES = ['every', ...Object.keys(TEMPLATE_FAMILIES)] as TemplateFamily[]

describe('a conversation with parallel calls over a compatible server', () => {
  it.each(FAMILIES)('renders with the template %s', async (template) => {
    const clock = new ManualClock()
    const network = new MemoryNetwork(clock)
    const simulator = createProviderSimulator({
      api: 'openai-completions',
      dialect: 'compatible',
      profile: 'strict',
      template,
      clock,
      ids: new SeededIds(9),
    })
    const { baseUrl } = await simulator.serve(network)
    const compaction = { keepRecentTokens: 20 }
    const config = { model: 'openai/local', compaction, providers: { openai: { type: 'openai-compatible', baseUrl } } }
    gateway = await MemoryGateway.open({ clock, network, config, env: {} })
    const client = await gateway.connect()
    const ask = 'use time and calculator {"expression":"6 * 7"} then use calculator {"expression":"1 + 1"}'
    expect(await client.ask({ id: 'a', content: ask, session: 's' })).toMatchObject({ type: 'complete' })
    expect(await client.ask({ id: 'b', content: 'and?', session: 's' })).toMatchObject({ type: 'complete' })
    expect(
      await client.ask({ id: 'c', content: `Remember this. ${'It is long. '.repeat(400)}`, session: 's' }),
    ).toMatchObject({ type: 'complete' })
    simulator.enqueue({ blocks: [{ type: 'text', text: 'They said a lot.' }] })
    const compacted = await client.ask({ id: 'd', content: '/compact', session: 's' })
    expect(String(compacted['content'])).toContain('is now a summary')
    const refused = simulator.requests.filter(({ outcome }) => outcome === 'refused')
    // A template without system and tool roles refuses the usual form of every request; after two it is not tried again.
    expect(refused.length).toBe(template === 'gemma-2' ? 2 : 0)
    expect(simulator.requests.some(({ bodyText }) => bodyText.includes('42'))).toBe(true)
  })
})
