import { describe, expect, it } from 'vitest'
import { cleanupTree } from '../../src/cli/chat/cleanup-tree.ts'
import type { ScriptedReply } from '../../src/simulator/provider/script.ts'
import type { SeenRequest } from '../../src/simulator/provider/seen-request.ts'
import { MemoryGateway, type Frame } from '../support/gateway.ts'
import { type ModelName, type ModelWorld, say } from '../support/model-world.ts'
import { worldsOfThisFile } from '../support/model-worlds.ts'
import { ANSWERS, FAILURE, FINAL, INSTRUCTION, python } from '../support/seed-case.ts'

const openWorld = worldsOfThisFile()

const CONFIG = { agent: { tools: ['files', 'time'], exec: { allow: ['python3', 'pytest', 'grep'] } } }
const uncleaned = { ...CONFIG, task: { auto_cleanup_enabled: false } }

interface Cleaned {
  readonly cleaned_messages: number
  readonly remaining_messages: number
  readonly tokens_before: number
  readonly tokens_saved: number
  readonly tokens_remaining: number
  readonly estimated: boolean
}

async function seedCase(
  model: ModelName,
  config: Record<string, unknown> = CONFIG,
): Promise<{ world: ModelWorld; data: Cleaned }> {
  const world = await openWorld({ models: [model], config, programs: python })
  world.enqueue(...ANSWERS)
  const client = await world.connect()
  expect(await say(client, INSTRUCTION)).toMatchObject({ type: 'complete', content: FINAL })
  const event = client.frames.find((frame) => frame['event'] === 'step_cleanup_completed')
  return { world, data: event?.['data'] as Cleaned }
}

const percent = (part: number, whole: number): number => Math.round((1000 * part) / whole) / 10

describe('the seed’s case: a wrong program is written, fails and is fixed', () => {
  it.each([
    ['openai', false],
    ['chat', false],
    ['anthropic', true],
  ] as const)('saves at least 37.7 percent with %s, and says whether that is an estimate', async (model, estimated) => {
    const { world, data } = await seedCase(model)
    // Seven messages with the system prompt became three; our count leaves the system prompt out.
    expect(world.requests).toHaveLength(3)
    expect(data).toMatchObject({ cleaned_messages: 4, remaining_messages: 2, estimated })
    expect(data.tokens_before - data.tokens_remaining).toBe(data.tokens_saved)
    const saved = percent(data.tokens_saved, data.tokens_before)
    console.info(`seed case, ${model}: ${data.tokens_before} → ${data.tokens_remaining} tokens, ${saved} % saved`)
    expect(saved).toBeGreaterThanOrEqual(37.7)
    const tree = cleanupTree({ ...data }, 'en').split('\n')
    expect(tree).toHaveLength(6)
    expect(tree[1]).toContain('4 messages')
    expect(tree[2]).toContain('2 messages')
    expect(tree[3]).toContain(`${data.tokens_saved} tokens`)
    expect(tree[4]).toContain(`${data.tokens_remaining} tokens`)
    expect(world.violations()).toEqual([])
  })

  it('leaves instruction, final answer and a note of what failed; the rest comes back when the model asks', async () => {
    const { world } = await seedCase('anthropic')
    const client = await world.connect()
    await say(client, '刚才哪里出错了？')
    const body = world.requests.at(-1)?.bodyText ?? ''
    expect(body).toContain(INSTRUCTION)
    expect(body).toContain('80,567.70')
    expect(body).toContain(FAILURE)
    expect(body).not.toContain('_strptime.py')
    const { tools } = world.requests.at(-1)?.conversation ?? { tools: [] }
    expect(tools.map(({ name }) => name)).toContain('recall_rounds')
    world.enqueue({ blocks: [{ type: 'toolCall', name: 'recall_rounds', arguments: {} }] })
    await say(client, '把完整的错误信息给我看')
    expect(world.requests.at(-1)?.bodyText).toContain('_strptime.py')
    expect(world.violations()).toEqual([])
  })

  it.each(['openai', 'chat', 'anthropic', 'google', 'mistral'] as const)(
    'offers %s the same tools in the same order from the first request on, whatever is hidden or restored',
    async (model) => {
      const { world } = await seedCase(model)
      const client = await world.connect()
      for (const message of ['thanks', '/restore', 'thanks again', '/cleanup', 'and again']) await say(client, message)
      const offered = world.requests.map(({ conversation }) => conversation.tools.map(({ name }) => name))
      expect(offered).toHaveLength(6)
      expect(offered[0]?.slice(-2)).toEqual(['recall_rounds', 'read_result'])
      for (const tools of offered) expect(tools).toEqual(offered[0])
    },
  )

  it('leaves what the provider cached of prompt and tools in the cache when the first cleanup hides something', async () => {
    // Anthropic caches nothing shorter than 1024 tokens.
    const agent = { ...CONFIG.agent, system_prompt: 'Answer briefly and name the file. '.repeat(150) }
    const { world } = await seedCase('anthropic', { agent })
    await say(await world.connect(), 'thanks')
    expect((await usageOfLast(world)).cacheRead).toBeGreaterThan(1024)
  })
})

async function usageOfLast(world: ModelWorld): Promise<{ cacheRead: number }> {
  const messages = (await world.transcript()).map((line) => line['message'] as Frame | undefined)
  const answer = messages.findLast((message) => message?.['role'] === 'assistant') ?? {}
  return answer['usage'] as { cacheRead: number }
}

describe('other ways to clean up', () => {
  it('summarise: the model’s own words about the steps stand in the note, and are paid for', async () => {
    const world = await openWorld({
      models: ['anthropic'],
      config: { ...CONFIG, task: { cleanup_strategy: 'summarise' } },
      programs: python,
    })
    world.enqueue(...ANSWERS, { blocks: [{ type: 'text', text: 'The date format was wrong: %d/%m/%Y.' }] })
    const client = await world.connect()
    await say(client, INSTRUCTION)
    await say(client, 'thanks')
    expect(world.requests).toHaveLength(5)
    expect(world.requests.at(-1)?.bodyText).toContain('Summary: The date format was wrong: %d/%m/%Y.')
    expect(world.requests.at(-1)?.bodyText).not.toContain('_strptime.py')
    const { usage } = (await world.gateway.api('/api/sessions/s')) as { usage: { requests: number } }
    expect(usage.requests).toBe(5)
    expect(world.violations()).toEqual([])
  })

  it('summarise: a summary that fails leaves the usual note', async () => {
    const world = await openWorld({
      models: ['anthropic'],
      config: { ...CONFIG, task: { cleanup_strategy: 'summarise' } },
      programs: python,
    })
    world.enqueue(...ANSWERS, { blocks: [{ type: 'text', text: ' ' }] })
    const client = await world.connect()
    await say(client, INSTRUCTION)
    await say(client, 'thanks')
    expect(world.requests.at(-1)?.bodyText).toContain('2 rounds of tool use for this request were removed')
  })

  it('cache-aware: a small gain waits while the cache is warm, and is made up for when it has gone cold', async () => {
    const world = await openWorld({
      models: ['anthropic'],
      config: { agent: { tools: ['files'] }, task: { cleanup_policy: 'cache-aware' } },
    })
    const client = await world.connect()
    const write = { action: 'write', path: 'notes/a-rather-long-name-for-a-file.txt', text: 'a' }
    for (const word of ['first', 'second']) {
      world.enqueue(
        { blocks: [{ type: 'toolCall', name: 'files', arguments: write }] },
        { blocks: [{ type: 'text', text: word }] },
      )
      await say(client, word)
    }
    const events = (): readonly Cleaned[] =>
      client.frames
        .filter((frame) => frame['event'] === 'step_cleanup_completed')
        .map((frame) => frame['data'] as Cleaned)
    expect(events()).toMatchObject([
      { cleaned_messages: 0, reason: 'the cache is warm' },
      { cleaned_messages: 0, reason: 'the cache is warm' },
    ])
    expect(world.requests.at(-1)?.bodyText).not.toContain('removed')
    await world.clock.advance(10 * 60_000)
    await say(client, 'third')
    const steps = events()[2]
    expect(steps).toMatchObject({ cleaned_messages: 4 })
    expect((steps as unknown as { steps: readonly string[] }).steps).toHaveLength(2)
    expect(world.requests.at(-1)?.bodyText.match(/1 round removed/gu)).toHaveLength(2)
    expect(world.violations()).toEqual([])
  })
})

describe('what a newcomer sees first, with the demo model', () => {
  it.each([
    ['写一个错误的python代码，然后修复它', 4],
    ['Write something wrong, then fix it', 4],
    ['现在几点？', 2],
    ['What is 12 * (3 + 4)?', 2],
    ['What is 2^10 and 3*7, and what time is it?', 6],
  ])('%s: %i messages go, at least 37.7 percent of the tokens', async (task, messages) => {
    const gateway = await MemoryGateway.open()
    try {
      const client = await gateway.connect('?stream=1')
      await client.ask({ id: '1', content: task, session: 's' })
      const data = client.frames.find((frame) => frame['event'] === 'step_cleanup_completed')?.['data'] as Cleaned
      const saved = percent(data.tokens_saved, data.tokens_before)
      console.info(`demo, ${task}: ${data.tokens_before} → ${data.tokens_remaining} tokens, ${saved} % saved`)
      expect(data).toMatchObject({ cleaned_messages: messages, remaining_messages: 2 })
      expect(saved).toBeGreaterThanOrEqual(37.7)
    } finally {
      await gateway.stop()
    }
  })
})

/** Each step looks at files, runs tests that fail, repairs, runs them again, and sums up. */
function longTask(step: number): readonly ScriptedReply[] {
  const path = `src/module_${step}.py`
  return [
    {
      blocks: [{ type: 'toolCall', name: 'exec', arguments: { program: 'grep', arguments: ['-rn', `total_${step}`] } }],
    },
    {
      blocks: [{ type: 'toolCall', name: 'files', arguments: { action: 'write', path, text: moduleText(step, '-') } }],
    },
    { blocks: [{ type: 'toolCall', name: 'exec', arguments: { program: 'pytest', arguments: [path] } }] },
    {
      blocks: [{ type: 'toolCall', name: 'files', arguments: { action: 'write', path, text: moduleText(step, '+') } }],
    },
    { blocks: [{ type: 'toolCall', name: 'exec', arguments: { program: 'pytest', arguments: [path, '-q'] } }] },
    { blocks: [{ type: 'text', text: finalOf(step) }] },
  ]
}

const instructionOf = (step: number): string =>
  `Step ${step}: total_${step} is wrong for negative amounts. Find it, fix it, run the tests, and tell me the file and the cause.`
const finalOf = (step: number): string =>
  `Fixed. The cause was a minus sign in src/module_${step}.py: total_${step} subtracted refunds twice. All ${step + 11} tests pass now; the code for this change is CL-${1000 + step}.`

function moduleText(step: number, sign: string): string {
  const functions = Array.from(
    { length: 6 },
    (_, at) =>
      `def part_${step}_${at}(rows):\n    """Sum of column ${at}."""\n    result = 0\n    for row in rows:\n        result = result ${sign} row[${at}]\n    return result`,
  )
  return [...functions, `def total_${step}(rows):\n    return sum(part(rows) for part in PARTS)\n`].join('\n\n')
}

function tools({ program, arguments: given }: Parameters<typeof python>[0]): ReturnType<typeof python> {
  if (program === 'grep')
    return {
      stdout: Array.from({ length: 25 }, (_, at) => `src/file_${at}.py:${at * 7 + 3}: ${given[1]}(rows)`).join('\n'),
    }
  if (given.includes('-q')) return { stdout: '............ [100%]\n12 passed in 0.31s' }
  const failures = Array.from(
    { length: 4 },
    (_, at) =>
      `____ test_negative_${at} ____\n\n    def test_negative_${at}():\n>       assert total([(-${at}, 2)]) == ${at}\nE       assert -${at} == ${at}\n\ntests/test_total.py:${at * 9 + 4}: AssertionError`,
  )
  return { code: 1, stdout: `${failures.join('\n')}\n4 failed, 8 passed in 0.40s` }
}

async function tenSteps(config: Record<string, unknown>, model: ModelName): Promise<ModelWorld> {
  const world = await openWorld({ models: [model], config, programs: tools })
  const client = await world.connect()
  for (let step = 1; step <= 10; step++) {
    world.enqueue(...longTask(step))
    expect(await say(client, instructionOf(step))).toMatchObject({ type: 'complete', content: finalOf(step) })
  }
  await say(client, 'Which codes do the ten changes have?')
  return world
}

async function restoreEverything(world: ModelWorld): Promise<void> {
  const client = await world.connect()
  for (let step = 10; step >= 1; step--) expect((await say(client, '/restore'))['content']).toContain('in view again')
  expect((await say(client, '/restore'))['content']).toContain('no cleanup')
}

const lastRequest = (world: ModelWorld): SeenRequest => world.requests.at(-1) as SeenRequest

describe('ten steps full of tools', () => {
  it.each(['openai', 'anthropic'] as const)(
    'take half the context or less with %s, every instruction and answer is there, and undone it is as if never cleaned',
    { timeout: 30_000 },
    async (model) => {
      const cleaned = await tenSteps(CONFIG, model)
      const whole = await tenSteps(uncleaned, model)
      const tokens = async (world: ModelWorld): Promise<number> => {
        const { counter } = world.gateway.app.agent.current
        await counter.load()
        const { conversation } = lastRequest(world)
        const identity = { provider: model, api: 'openai-responses', model: 'gpt-5.1', acceptsImages: false }
        return counter.count(JSON.stringify(conversation.turns), identity).count
      }
      const [after, before] = [await tokens(cleaned), await tokens(whole)]
      const saved = percent(before - after, before)
      const total = (world: ModelWorld): number =>
        world.requests.reduce((sum, { bodyText }) => sum + bodyText.length, 0)
      const sent = percent(total(whole) - total(cleaned), total(whole))
      console.info(
        `ten steps, ${model}: last context ${before} → ${after} tokens, ${saved} % less; sent in all ${sent} % less bytes`,
      )
      expect(saved).toBeGreaterThanOrEqual(50)
      const texts = lastRequest(cleaned).conversation.turns.map((turn) => turn.text)
      for (let step = 1; step <= 10; step++) {
        expect(
          texts.some((words) => words.includes(instructionOf(step))),
          `instruction ${step}`,
        ).toBe(true)
        expect(
          texts.some((words) => words.includes(finalOf(step))),
          `answer ${step}`,
        ).toBe(true)
        expect(lastRequest(cleaned).bodyText).toContain(`src/module_${step}.py`)
      }
      await restoreEverything(cleaned)
      await say(await cleaned.connect(), 'the same question')
      await say(await whole.connect(), 'the same question')
      expect(lastRequest(cleaned).bodyText).toBe(lastRequest(whole).bodyText)
      expect([...cleaned.violations(), ...whole.violations()]).toEqual([])
    },
  )
})
