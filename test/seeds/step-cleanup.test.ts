import { describe, expect, it } from 'vitest'
import { cleanupTree } from '../../src/cli/chat/cleanup-tree.ts'
import { createBudget, deriveSteps, estimateMessages, planCleanup } from '../../src/index.ts'
import type { Frame } from '../support/gateway.ts'
import { gatewaysOfThisFile } from '../support/gateways.ts'
import { say, type ModelWorld } from '../support/model-world.ts'
import { worldsOfThisFile } from '../support/model-worlds.ts'
import { ANSWERS, FINAL, INSTRUCTION, python } from '../support/seed-case.ts'

/** Document 002, “Context Cleanup”: its structures, its event, its example and its switches. */
const gateways = gatewaysOfThisFile()
const openWorld = worldsOfThisFile()

const CONFIG = { agent: { tools: ['files', 'time'], exec: { allow: ['python3'] } } }

async function fixedProgram(config: Record<string, unknown> = CONFIG): Promise<{ world: ModelWorld; frames: Frame[] }> {
  const world = await openWorld({ models: ['chat'], config, programs: python })
  world.enqueue(...ANSWERS)
  const client = await world.connect()
  expect(await say(client, INSTRUCTION)).toMatchObject({ content: FINAL })
  return { world, frames: client.frames }
}

const eventOf = (frames: readonly Frame[], name: string): Frame | undefined =>
  frames.find((frame) => frame['event'] === name)?.['data'] as Frame | undefined

describe('002: structures', () => {
  it('L77, L138, L85, L158: a step has title, times, its instruction, rounds and the final answer', async () => {
    const { world } = await fixedProgram()
    const { steps } = (await world.gateway.api('/api/sessions/s/steps')) as { steps: Frame[] }
    expect(steps).toMatchObject([
      {
        title: expect.stringContaining('sales.py'),
        instructionText: INSTRUCTION,
        startTime: expect.any(Number),
        endTime: expect.any(Number),
        outcome: 'completed',
        rounds: [
          { llmResponse: { toolCalls: [{ name: 'exec' }] }, toolCallResults: [{ isError: true }] },
          { llmResponse: { toolCalls: [{ name: 'exec' }] }, toolCallResults: [{ isError: false }] },
          { llmResponse: { stopReason: 'stop' }, toolCallResults: [] },
        ],
      },
    ])
  })

  it('L187: a step ends after max_rounds rounds', async () => {
    const world = await openWorld({
      models: ['chat'],
      config: { ...CONFIG, task: { max_rounds: 2 } },
      programs: python,
    })
    world.enqueue(...ANSWERS)
    const client = await world.connect()
    const answer = await say(client, INSTRUCTION)
    expect(world.requests).toHaveLength(2)
    expect(answer['content']).not.toBe(FINAL)
  })

  it('L228: the cleaner says what it hides and counts, before anything is written', async () => {
    const { world } = await fixedProgram({ ...CONFIG, task: { auto_cleanup_enabled: false } })
    const entries = (await world.transcript()).slice(1) as unknown as Parameters<typeof deriveSteps>[0]
    const [step] = deriveSteps(entries)
    expect(step?.rounds).toHaveLength(3)
    const target = { api: 'openai-completions', provider: 'chat', model: 'gpt-4.1', acceptsImages: true }
    const plan = planCleanup(entries, {
      stepId: step?.id ?? '',
      outcome: 'completed',
      policy: 'always',
      minTokens: 0,
      input: { target, budget: createBudget({ contextWindow: 128_000 }), historyLimit: 0, now: world.clock.now() },
      count: estimateMessages,
    })
    expect(plan).toMatchObject({ kind: 'clean', stats: { cleanedMessages: 4, remainingMessages: 2 } })
    const { tokensBefore, tokensSaved, tokensRemaining } = plan.stats
    expect(tokensBefore - tokensSaved).toBe(tokensRemaining)
  })
})

describe('002: the event', () => {
  it('L304, L332: has the four fields and comes before step_completed', async () => {
    const { frames } = await fixedProgram()
    expect(eventOf(frames, 'step_cleanup_completed')).toMatchObject({
      cleaned_messages: 4,
      remaining_messages: 2,
      tokens_saved: expect.any(Number),
      tokens_remaining: expect.any(Number),
    })
    const names = frames.map((frame) => frame['event'])
    expect(names.indexOf('step_cleanup_completed')).toBeLessThan(names.indexOf('step_completed'))
  })

  it('L162: the end of a step says its title and its times', async () => {
    const { frames } = await fixedProgram()
    const event = eventOf(frames, 'step_completed')
    expect(event).toMatchObject({
      rounds: 3,
      title: expect.stringContaining('sales.py'),
      startTime: expect.any(Number),
    })
    expect(Number(event?.['endTime'])).toBeGreaterThanOrEqual(Number(event?.['startTime']))
  })

  it('L241: a step with nothing in its middle reports zero', async () => {
    const gateway = await gateways.open()
    const client = await gateway.connect('?stream=1')
    await client.ask({ id: '1', content: 'hello', session: 's' })
    expect(eventOf(client.frames, 'step_cleanup_completed')).toMatchObject({ cleaned_messages: 0, tokens_saved: 0 })
  })

  it('L358, L393: is shown as a tree of five lines', () => {
    const data = { cleaned_messages: 4, remaining_messages: 3, tokens_saved: 9885, tokens_remaining: 9223 }
    expect(cleanupTree(data, 'en').split('\n')).toEqual([
      '● Context cleanup completed',
      '├── 🧹 Cleaned 4 messages',
      '├── 📝 3 messages remaining',
      '├── 🔥 Saved 9885 tokens',
      '├── 📊 9223 tokens remaining',
      '└── 📉 Context optimized for better performance',
    ])
  })
})

describe('002: L375, the example', () => {
  it('L380, L385: of seven messages three stay (system prompt included), and at least 37.7 % of the tokens go', async () => {
    const { world, frames } = await fixedProgram()
    const event = eventOf(frames, 'step_cleanup_completed') ?? {}
    const [saved, remaining] = [Number(event['tokens_saved']), Number(event['tokens_remaining'])]
    expect((100 * saved) / (saved + remaining)).toBeGreaterThanOrEqual(37.7)
    const before = world.requests.at(-1)?.conversation
    expect(1 + (before?.turns.length ?? 0) + 1).toBe(7)
    await say(await world.connect(), '谢谢')
    const after = world.requests.at(-1)?.conversation
    // System prompt, instruction and final answer; the new message comes on top.
    expect(1 + (after?.turns.length ?? 0) - 1).toBe(3)
  })

  it.each(['写一个错误的python代码，然后修复它', 'make a mistake and fix it'])(
    'L376: the demo model does the same task, and saves as much: %s',
    async (content) => {
      const gateway = await gateways.open()
      const client = await gateway.connect('?stream=1')
      await client.ask({ id: '1', content, session: 's' })
      const event = eventOf(client.frames, 'step_cleanup_completed') ?? {}
      const [saved, remaining] = [Number(event['tokens_saved']), Number(event['tokens_remaining'])]
      expect(event['cleaned_messages']).toBe(4)
      expect((100 * saved) / (saved + remaining)).toBeGreaterThanOrEqual(37.7)
    },
  )
})

describe('002: switches', () => {
  it('L408: off in the configuration', async () => {
    const { frames } = await fixedProgram({ ...CONFIG, task: { auto_cleanup_enabled: false } })
    expect(eventOf(frames, 'step_cleanup_completed')).toBeUndefined()
  })

  it('L415: off for one task while running', async () => {
    const gateway = await gateways.open()
    const client = await gateway.connect('?stream=1')
    const task = { content: '写一个错误的python代码，然后修复它', session: 's' }
    await client.ask({ id: '1', ...task, auto_cleanup_enabled: false })
    expect(eventOf(client.frames, 'step_cleanup_completed')).toBeUndefined()
    await client.ask({ id: '2', ...task })
    expect(eventOf(client.frames, 'step_cleanup_completed')).toMatchObject({ cleaned_messages: 4 })
  })
})
