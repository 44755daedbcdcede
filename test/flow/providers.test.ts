import { afterEach, describe, expect, it } from 'vitest'
import { createProviderSimulator, type ProviderSimulator } from '../../src/simulator/provider/simulator.ts'
import type { ScriptedReply } from '../../src/simulator/provider/script.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { MemoryNetwork } from '../../src/testing/memory-network.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'
import { MemoryGateway, type TestClient } from '../support/gateway.ts'
import { transcriptIds, transcriptText } from '../support/virtual-schemas.ts'

const KEY = 'canary-key-1234567890'

const SERVICES = {
  anthropic: { api: 'anthropic-messages', type: 'anthropic', model: 'claude-sonnet-4-5' },
  google: { api: 'google-generative-ai', type: 'google', model: 'gemini-3-pro-preview' },
  responses: { api: 'openai-responses', type: 'openai-responses', model: 'gpt-5.1' },
  chat: { api: 'openai-completions', type: 'openai-completions', model: 'gpt-4.1' },
  mistral: { api: 'mistral-conversations', type: 'mistral', model: 'mistral-large-latest' },
} as const
type Service = keyof typeof SERVICES

interface World {
  readonly gateway: MemoryGateway
  readonly simulators: Readonly<Record<Service, ProviderSimulator>>
}

let worlds: World[] = []

async function openWorld(config: Record<string, unknown> = {}): Promise<World> {
  const clock = new ManualClock()
  const network = new MemoryNetwork(clock)
  const simulators: Partial<Record<Service, ProviderSimulator>> = {}
  const providers: Record<string, unknown> = {}
  for (const [name, { api, type, model }] of Object.entries(SERVICES)) {
    const simulator = createProviderSimulator({ api, clock, ids: new SeededIds(9), apiKey: KEY, models: [model] })
    const { baseUrl } = await simulator.serve(network)
    simulators[name as Service] = simulator
    providers[name] = { type, baseUrl, apiKey: '$KEY' }
  }
  const all = { model: 'anthropic/claude-sonnet-4-5', providers, agent: { thinking: 'low' }, ...config }
  const gateway = await MemoryGateway.open({ clock, network, config: all, env: { KEY } })
  const world = { gateway, simulators: simulators as World['simulators'] }
  worlds.push(world)
  return world
}

afterEach(async () => {
  for (const { gateway } of worlds) await gateway.stop()
  worlds = []
})

function refusals({ simulators }: World): readonly string[] {
  return Object.values(simulators).flatMap((simulator) =>
    simulator.requests.flatMap(({ outcome, violations }) =>
      outcome === 'refused' ? violations.map(({ rule }) => rule) : [],
    ),
  )
}

let nextId = 0
function say(client: TestClient, content: string): Promise<Record<string, unknown>> {
  return client.ask({ id: `m${nextId++}`, content, session: 's' })
}

describe('one conversation over five model APIs', () => {
  it('switches twice round with tools, keeps its context, and no provider refuses a request', async () => {
    const world = await openWorld()
    const client = await world.gateway.connect()
    const told: string[] = []
    for (const round of [1, 2]) {
      for (const [name, { model }] of Object.entries(SERVICES)) {
        const switched = await say(client, `/model ${name}/${model}`)
        expect(switched['content']).toContain(`${name}/${model}`)
        const fact = `the code of ${name} in round ${round} is ${name.length * 100 + round}`
        told.push(fact)
        const answer = await say(
          client,
          `Remember: ${fact}. use calculator {"expression":"${round} + ${name.length}"} then use time`,
        )
        expect(answer, `${name} ${round}`).toMatchObject({ type: 'complete' })
      }
    }
    expect(refusals(world)).toEqual([])
    const last = world.simulators.mistral.requests.at(-1)?.bodyText ?? ''
    for (const fact of told) expect(last).toContain(fact)
  })

  it('shows the key to nobody: not in the transcript, the status, the metrics or an error', async () => {
    const world = await openWorld()
    const client = await world.gateway.connect('?stream=1')
    world.simulators.anthropic.enqueue({ refuse: 'authentication', message: `bad key ${KEY}` })
    const failed = await say(client, 'hello')
    expect(failed).toMatchObject({ type: 'error', code: 'MODEL_AUTH' })
    await say(client, 'hello again')
    const shown = await world.gateway.request('/api/sessions/s')
    const pages = [await world.gateway.request('/api/status'), await world.gateway.request('/metrics'), shown]
    const ids = await transcriptIds(world.gateway.files)
    const files = await Promise.all(ids.map(async (id) => (await transcriptText(world.gateway.files, id)) ?? ''))
    const everything = [...pages.map(({ text }) => text), ...files, JSON.stringify(client.frames)].join('\n')
    expect(everything).not.toContain(KEY)
  })
})

const OVERLOADED: ScriptedReply = { refuse: 'overloaded' }

describe('a model that fails', () => {
  it('is retried while nothing was shown, then answers', async () => {
    const world = await openWorld()
    const client = await world.gateway.connect('?stream=1')
    world.simulators.anthropic.enqueue(OVERLOADED, { refuse: 'rate-limit', retryAfterSeconds: 2 })
    expect(await say(client, 'hello')).toMatchObject({ type: 'complete' })
    expect(client.frames.filter((frame) => frame['event'] === 'model_retry')).toHaveLength(2)
  })

  it('is not replaced by the next model of the list once some of its answer was shown', async () => {
    const world = await openWorld({ model: ['anthropic/claude-sonnet-4-5', 'mistral/mistral-large-latest'] })
    const client = await world.gateway.connect('?stream=1')
    world.simulators.anthropic.enqueue({
      blocks: [{ type: 'text', text: 'This is a long beginning of an answer. '.repeat(20) }],
      delivery: { cutAfterBytes: 1500, deltaChars: 10 },
    })
    expect(await say(client, 'hello')).toMatchObject({ type: 'error', code: 'MODEL_STREAM_CUT' })
    expect(client.frames.some((frame) => frame['type'] === 'progress')).toBe(true)
    expect(world.simulators.mistral.requests).toHaveLength(0)
  })

  it('is replaced by the next model of the list, once, while nothing was shown', async () => {
    const world = await openWorld({ model: ['anthropic/claude-sonnet-4-5', 'mistral/mistral-large-latest'] })
    const client = await world.gateway.connect()
    for (let i = 0; i < 8; i++) world.simulators.anthropic.enqueue({ refuse: 'quota' })
    expect(await say(client, 'hello')).toMatchObject({ type: 'complete' })
    expect(world.simulators.mistral.requests).toHaveLength(1)
  })

  it('cut after visible text ends in an error that names it, keeps the text, and the next message works', async () => {
    const world = await openWorld()
    const client = await world.gateway.connect('?stream=1')
    world.simulators.anthropic.enqueue({
      blocks: [{ type: 'text', text: 'This is a long beginning of an answer. '.repeat(20) }],
      delivery: { cutAfterBytes: 1500, deltaChars: 10 },
    })
    const failed = await say(client, 'hello')
    expect(failed).toMatchObject({
      type: 'error',
      code: 'MODEL_STREAM_CUT',
      content: expect.stringContaining('This is a long'),
    })
    expect(world.simulators.anthropic.requests).toHaveLength(1)
    expect(await say(client, 'and now?')).toMatchObject({ type: 'complete' })
    expect(refusals(world)).toEqual([])
  })

  it('that finds the request too long gets a shorter one, and the session stays usable', async () => {
    const world = await openWorld({ compaction: { keepRecentTokens: 200 } })
    const client = await world.gateway.connect()
    for (let i = 0; i < 6; i++) await say(client, `Remember: fact ${i} is ${'blue '.repeat(50)}`)
    world.simulators.anthropic.enqueue({ refuse: 'context-overflow' })
    expect(await say(client, 'What did I tell you?')).toMatchObject({ type: 'complete' })
    expect(await say(client, 'And again?')).toMatchObject({ type: 'complete' })
    expect(refusals(world)).toEqual([])
  })

  it('that refuses the shape for no reason we know gets one safest try, then one without tools', async () => {
    const world = await openWorld()
    const { anthropic } = world.simulators
    const client = await world.gateway.connect()
    const called: ScriptedReply = {
      blocks: [{ type: 'toolCall', name: 'calculator', arguments: { expression: '6 * 7' } }],
    }
    const refusal: ScriptedReply = { refuse: 'invalid-request', message: 'messages.0: mysterious' }
    anthropic.enqueue(called, refusal)
    expect(await say(client, 'hello')).toMatchObject({ type: 'complete' })
    const safest = anthropic.requests.at(-1)
    expect(safest?.conversation.tools).not.toEqual([])
    expect(safest?.conversation.turns.map((turn) => turn.role)).toEqual(['user', 'assistant', 'user'])
    expect(safest?.bodyText).toContain('Called the tool calculator')
    expect(safest?.bodyText).not.toContain('tool_use')
    anthropic.enqueue(refusal, refusal)
    expect(await say(client, 'hello')).toMatchObject({ type: 'complete' })
    expect(anthropic.requests.slice(-3).map(({ conversation }) => conversation.tools.length > 0)).toEqual([
      true,
      true,
      false,
    ])
    anthropic.enqueue(refusal, refusal, refusal)
    const before = anthropic.requests.length
    expect(await say(client, 'hello')).toMatchObject({ type: 'error', code: 'MODEL_REQUEST_INVALID' })
    expect(anthropic.requests).toHaveLength(before + 3)
    expect(await say(client, 'hello')).toMatchObject({ type: 'complete' })
  })
})

describe('budgets', () => {
  it('stop the next request with a clear answer, and /new starts over', async () => {
    const world = await openWorld({ budget: { session_tokens: 50 } })
    const client = await world.gateway.connect()
    expect(await say(client, 'hello')).toMatchObject({ type: 'complete' })
    const refused = await say(client, 'hello')
    expect(refused).toMatchObject({
      type: 'error',
      code: 'BUDGET_REACHED',
      error: expect.stringContaining('budget.session_tokens'),
    })
    expect(world.simulators.anthropic.requests).toHaveLength(1)
    expect(await say(client, '/new hello')).toMatchObject({ type: 'complete' })
  })
})
