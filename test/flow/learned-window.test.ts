import { afterEach, describe, expect, it } from 'vitest'
import { answerOf } from '../../src/simulator/provider/answering-model.ts'
import { createProviderSimulator, type ProviderSimulator } from '../../src/simulator/provider/simulator.ts'
import type { ScriptedReply } from '../../src/simulator/provider/script.ts'
import type { LengthRefusalStyle } from '../../src/simulator/provider/length-refusal.ts'
import type { SeenRequest } from '../../src/simulator/provider/seen-request.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { MemoryNetwork } from '../../src/testing/memory-network.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'
import { MemoryGateway, type Frame, type TestClient } from '../support/gateway.ts'

const WINDOW = 4_096
const STYLES: readonly LengthRefusalStyle[] = ['llama.cpp', 'vllm', 'lm-studio', 'ollama', 'silent']
const NAMES_NUMBERS: ReadonlySet<LengthRefusalStyle> = new Set(['llama.cpp', 'vllm', 'lm-studio'])

interface World {
  readonly gateway: MemoryGateway
  /** A server with the window, which the gateway believes to have 32 768 tokens. */
  readonly small: ProviderSimulator
  readonly large: ProviderSimulator
}

const open: World[] = []

/** What the answering model says of itself, which is long here: how many pieces it comes in is not what is tried. */
const inLargePieces = ({ conversation }: SeenRequest): ScriptedReply => ({
  ...answerOf(conversation),
  delivery: { deltaChars: 1_000 },
})

interface WorldOptions {
  readonly config?: Record<string, unknown>
  /** Of the small server's model in the configuration. */
  readonly configuredWindow?: number
  /** A disk that a crash left behind. */
  readonly after?: MemoryGateway
}

async function openWorld(style: LengthRefusalStyle, options: WorldOptions = {}): Promise<World> {
  const { config = {}, configuredWindow, after } = options
  const clock = new ManualClock(after === undefined ? undefined : after.clock.now() + 60_000)
  const network = new MemoryNetwork(clock)
  const kind = { api: 'openai-completions', dialect: 'compatible' } as const
  const shared = { ...kind, clock, maxKeptBodyChars: 4_000_000, script: inLargePieces }
  const lengths = { contextTokens: WINDOW, lengthRefusal: style }
  const small = createProviderSimulator({ ...shared, ids: new SeededIds(3), ...lengths })
  const large = createProviderSimulator({ ...shared, ids: new SeededIds(4) })
  const type = 'openai-compatible'
  const models = configuredWindow === undefined ? {} : { any: { contextWindow: configuredWindow } }
  const providers = {
    small: { type, baseUrl: (await small.serve(network)).baseUrl, models },
    large: { type, baseUrl: (await large.serve(network)).baseUrl, models: { any: { contextWindow: 200_000 } } },
  }
  const gateway = await MemoryGateway.open({
    clock,
    network,
    config: { model: 'small/any', providers, compaction: { mode: 'off' }, ...config },
    ...(after === undefined ? {} : { files: after.files.crash(), processes: after.processes.successor(), seed: 2 }),
  })
  const world = { gateway, small, large }
  open.push(world)
  return world
}

afterEach(async () => {
  for (const { gateway } of open.splice(0)) if (!gateway.files.isCrashed) await gateway.stop()
})

let nextId = 0
function say(client: TestClient, content: string): Promise<Frame> {
  return client.ask({ id: `m${nextId++}`, content, session: 's' })
}

const refusedForLength = ({ requests }: ProviderSimulator): readonly SeenRequest[] =>
  requests.filter(({ outcome, violations }) => outcome === 'refused' && violations.length === 0)
const broken = ({ requests }: ProviderSimulator): readonly string[] =>
  requests.flatMap(({ violations }) => violations.map(({ rule }) => rule))

async function longHistory(client: TestClient): Promise<void> {
  await say(client, '/model large/any')
  for (let turn = 0; turn < 12; turn++) await say(client, `Remember: fact ${turn} is ${'blue '.repeat(400)}`)
  await say(client, '/model default')
}

async function learned({ gateway }: World): Promise<unknown> {
  return (await gateway.api('/api/status'))['learnedWindows']
}

describe.each(STYLES)('a server whose window is smaller than believed, refusing as %s does', (style) => {
  it('answers over a long history, and the next message is not refused again', async () => {
    const world = await openWorld(style)
    const client = await world.gateway.connect()
    await longHistory(client)
    expect(await say(client, 'Are you there?')).toMatchObject({ type: 'complete' })
    const refused = refusedForLength(world.small).length
    expect(refused).toBeGreaterThan(0)
    if (NAMES_NUMBERS.has(style)) expect(refused).toBeLessThanOrEqual(2)
    expect(await say(client, 'And now?')).toMatchObject({ type: 'complete' })
    expect(refusedForLength(world.small)).toHaveLength(refused)
    expect(broken(world.small)).toEqual([])
    const expected = NAMES_NUMBERS.has(style)
      ? { model: 'small/any', contextWindow: WINDOW, by: 'told', instead: 32_768 }
      : { model: 'small/any', by: 'halved', instead: 32_768 }
    expect(await learned(world)).toEqual([expect.objectContaining(expected)])
  })

  it('answers over a short history that is just too long', async () => {
    const world = await openWorld(style)
    const client = await world.gateway.connect()
    for (let turn = 0; turn < 4; turn++)
      expect(await say(client, `Remember: fact ${turn} is ${'green '.repeat(700)}`)).toMatchObject({ type: 'complete' })
    expect(refusedForLength(world.small).length).toBeGreaterThan(0)
    expect(broken(world.small)).toEqual([])
  })

  it('answers one message that alone is too large: cut in its middle for the model, whole in the transcript', async () => {
    const world = await openWorld(style)
    const client = await world.gateway.connect()
    const huge = `BEGIN ${'word '.repeat(30_000)}END`
    expect(await say(client, huge)).toMatchObject({ type: 'complete' })
    const sent = world.small.requests.at(-1)?.bodyText ?? ''
    expect(sent).toContain('BEGIN')
    expect(sent).toContain('END')
    expect(sent).toContain('characters left out here')
    const shown = await world.gateway.api('/api/sessions/s')
    const messages = shown['messages'] as readonly { role: string; text: string }[]
    expect(messages.find(({ role }) => role === 'user')?.text).toBe(huge)
    expect(await say(client, 'and a short one')).toMatchObject({ type: 'complete' })
  })

  it('is remembered over a crash', async () => {
    const world = await openWorld(style)
    const client = await world.gateway.connect()
    await longHistory(client)
    await say(client, 'Are you there?')
    const before = await learned(world)
    const next = await openWorld(style, { after: world.gateway })
    expect(await learned(next)).toEqual(before)
    expect(await say(await next.gateway.connect(), 'And after the crash?')).toMatchObject({ type: 'complete' })
    expect(refusedForLength(next.small)).toEqual([])
  })

  it('summarises in chunks that fit, by itself and when asked to', async () => {
    const world = await openWorld(style, { config: { compaction: { keepRecentTokens: 500 } } })
    const client = await world.gateway.connect()
    await longHistory(client)
    const answer = await say(client, '/compact')
    expect(answer['content']).toContain('The older part is now a summary')
    expect(await say(client, 'And now?')).toMatchObject({ type: 'complete' })
    expect(broken(world.small)).toEqual([])
  })
})

describe('what was learned', () => {
  it('is in the record of the request, for whoever asks why the model saw so little', async () => {
    const world = await openWorld('llama.cpp')
    const client = await world.gateway.connect()
    await say(client, `Remember: ${'word '.repeat(6_000)}`)
    const shown = await world.gateway.api('/api/sessions/s?request=1')
    expect(shown['contextWindow']).toBe(WINDOW)
    expect(shown['windowLearned']).toBe('told')
    expect(shown['rendered']).toContain(`a window of ${WINDOW} tokens, as the provider said`)
  })

  it('never makes the window larger than the configuration allows', async () => {
    const world = await openWorld('vllm', { configuredWindow: 2_048 })
    const client = await world.gateway.connect()
    expect(await say(client, `Remember: ${'word '.repeat(6_000)}`)).toMatchObject({ type: 'complete' })
    expect(await learned(world)).toEqual([expect.objectContaining({ contextWindow: 2_048, instead: 2_048 })])
  })

  it('does not keep a session from answering when the tools alone are too large for the window', async () => {
    const world = await openWorld('silent', { config: { agent: { system_prompt: 'Be brief. '.repeat(700) } } })
    const client = await world.gateway.connect()
    expect(await say(client, 'hello')).toMatchObject({ type: 'complete' })
    expect(await say(client, `Remember: ${'word '.repeat(6_000)}`)).toMatchObject({ type: 'complete' })
  })

  it('is said in the error when the system prompt leaves no room at all', async () => {
    const world = await openWorld('llama.cpp', { config: { agent: { system_prompt: 'Be brief. '.repeat(3_000) } } })
    const client = await world.gateway.connect()
    const failed = await say(client, 'hello')
    expect(failed).toMatchObject({ type: 'error', code: 'MODEL_CONTEXT_OVERFLOW' })
    expect(failed['error']).toContain('agent.system_prompt')
  })
})
