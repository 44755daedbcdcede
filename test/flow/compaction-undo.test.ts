import { describe, expect, it } from 'vitest'
import type { ScriptedAnswer } from '../../src/simulator/provider/script.ts'
import { say, type ModelWorld } from '../support/model-world.ts'
import { worldsOfThisFile } from '../support/model-worlds.ts'

const openWorld = worldsOfThisFile()
const SMALL = { compaction: { keepRecentTokens: 50 } }
const text = (words: string): ScriptedAnswer => ({ blocks: [{ type: 'text', text: words }] })

async function tell(world: ModelWorld, facts: readonly string[]): Promise<void> {
  const client = await world.connect()
  for (const fact of facts) await say(client, `Remember: ${fact} is ${'green '.repeat(60)}`)
}

async function compacted(facts = ['the first', 'the second', 'the third']): Promise<ModelWorld> {
  const world = await openWorld({ config: SMALL })
  await tell(world, facts)
  world.enqueue(text('The user told me about greens.'))
  const reply = await say(await world.connect(), '/compact')
  expect(reply['content']).toContain('/compact undo')
  return world
}

async function bodyOf(world: ModelWorld, request: number): Promise<string> {
  const shown = await world.gateway.api(`/api/sessions/s?request=${request}`)
  expect(shown).toMatchObject({ request, hashMatches: true })
  return String(shown['body'])
}

async function summarised(world: ModelWorld): Promise<number> {
  const { messages } = (await world.gateway.api('/api/sessions/s')) as { messages: { summarised?: boolean }[] }
  return messages.filter((message) => message.summarised === true).length
}

const numbersIn = (sentence: unknown): readonly number[] => (String(sentence).match(/\d+/gu) ?? []).map(Number)

describe('/compact undo', () => {
  it.each(['openai', 'anthropic'] as const)(
    'names the same two numbers for the same two states as /compact did, with %s',
    async (model) => {
      const world = await openWorld({ config: SMALL, models: [model] })
      await tell(world, ['the first', 'the second', 'the third'])
      const client = await world.connect()
      world.enqueue(text('The user told me about greens.'))
      const [before, after] = numbersIn((await say(client, '/compact'))['content'])
      expect(before).toBeGreaterThan(after ?? Infinity)
      expect(numbersIn((await say(client, '/compact undo'))['content'])).toEqual([before, after])
      world.enqueue(text('The user told me about greens.'))
      await say(client, '/compact')
      const undo = { method: 'POST', body: JSON.stringify({ compaction: true }) }
      expect(await world.gateway.api('/api/sessions/s/restore', undo)).toMatchObject({
        tokensBefore: after,
        tokensAfter: before,
        estimated: model === 'anthropic',
      })
    },
  )

  it('makes the next request byte-identical to one of a conversation that was never summarised', async () => {
    const bodies: string[] = []
    for (const isCompacted of [true, false]) {
      const world = isCompacted ? await compacted() : await openWorld({ config: SMALL })
      if (!isCompacted) await tell(world, ['the first', 'the second', 'the third'])
      const client = await world.connect()
      expect((await say(client, '/compact undo'))['content']).toContain(isCompacted ? 'in view again' : 'no summary')
      await say(client, 'What did I say first?')
      bodies.push(await bodyOf(world, 4))
      expect(world.violations()).toEqual([])
    }
    expect(bodies[0]).toContain('the first')
    expect(bodies[0]).toBe(bodies[1])
  })

  it('holds over a restart, and what the model sees can be looked at before and after', async () => {
    const world = await compacted()
    expect(await summarised(world)).toBeGreaterThan(0)
    await say(await world.connect(), '/compact undo')
    expect(await summarised(world)).toBe(0)
    await world.restart()
    expect(await summarised(world)).toBe(0)
    await say(await world.connect(), 'What did I say first?')
    expect(await bodyOf(world, 4)).toContain('the first')
  })

  it('through the JSON interface goes one summary further back each time, and says when none is left', async () => {
    const world = await compacted()
    await tell(world, ['the fourth', 'the fifth'])
    world.enqueue(text('The user told me even more about greens.'))
    await say(await world.connect(), '/compact')
    const undo = { method: 'POST', body: JSON.stringify({ compaction: true }) }
    const hidden = [await summarised(world)]
    for (let time = 0; time < 2; time++) {
      expect(await world.gateway.api('/api/sessions/s/restore', undo)).toMatchObject({ success: true })
      hidden.push(await summarised(world))
    }
    expect(hidden.toSorted((a, b) => b - a)).toEqual(hidden)
    expect(hidden.at(-1)).toBe(0)
    expect(await world.gateway.api('/api/sessions/s/restore', undo)).toMatchObject({ code: 'FIELD_INVALID' })
  })

  it('is not guessed from a body that is not understood', async () => {
    const world = await compacted()
    const before = await world.transcript()
    for (const body of ['nonsense', '[]', '{"compaction":"yes"}', '{"archive":1}', '{"archive":"a","compaction":true}'])
      expect(await world.gateway.api('/api/sessions/s/restore', { method: 'POST', body })).toMatchObject({
        code: 'FIELD_INVALID',
      })
    expect(await world.transcript()).toEqual(before)
  })

  it('is not undone by the next automatic summary, unless the conversation does not fit without one', async () => {
    const window = { anthropic: { models: { 'claude-sonnet-4-5': { contextWindow: 8_000, maxOutputTokens: 1_000 } } } }
    let summaries = 0
    const world = await openWorld({
      settings: window,
      config: { ...SMALL, agent: { tools: ['time'] } },
      first: ({ conversation }) => {
        if (conversation.tools.length > 0) return undefined
        summaries++
        return text('Much was said.')
      },
    })
    const client = await world.connect()
    const more = (): Promise<unknown> => say(client, `Remember: ${'green '.repeat(500)}`)
    while (summaries === 0) await more()
    const asked = summaries
    await say(client, '/compact undo')
    await more()
    expect(summaries).toBe(asked)
    for (let count = 0; count < 12 && summaries === asked; count++) await more()
    expect(summaries).toBeGreaterThan(asked)
    expect(world.violations()).toEqual([])
  })

  it('that a crash repeats takes one summary back, not two', async () => {
    const story = async (): Promise<ModelWorld> => {
      const world = await compacted()
      await tell(world, ['the fourth', 'the fifth'])
      world.enqueue(text('The user told me even more about greens.'))
      await say(await world.connect(), '/compact')
      return world
    }
    const world = await story()
    const twice = await summarised(world)
    const before = world.files.operations
    await say(await world.connect(), '/compact undo')
    const operations = world.files.operations - before
    const once = await summarised(world)
    expect(once).toBeLessThan(twice)
    for (let at = 0; at < operations; at++) {
      const trial = await story()
      const user = await trial.connect()
      trial.files.injectFault(trial.files.operations + at, 'crash-after')
      await user.send({ id: 'u', content: '/compact undo', session: 's' }).catch(() => undefined)
      await trial.clock.advance(1_000)
      await trial.restart({ kill: true })
      await trial.clock.advance(1_000)
      expect([once, twice], `operation ${at} of ${operations}`).toContain(await summarised(trial))
      await trial.stop()
    }
  })

  it('does nothing for a word it does not know', async () => {
    const world = await compacted()
    const before = await summarised(world)
    expect((await say(await world.connect(), '/compact undp'))['content']).toContain('/compact undo')
    expect(await summarised(world)).toBe(before)
  })
})

describe('/compact', () => {
  it('says why there is no summary', async () => {
    const world = await openWorld({ config: { ...SMALL, budget: { session_tokens: 900 } } })
    await tell(world, ['the first', 'the second', 'the third'])
    const reply = await say(await world.connect(), '/compact')
    expect(reply['content']).toBe(
      'The conversation was not summarised: the summary failed: The limit of 900 tokens for this conversation is used up (budget.session_tokens). Start a new one with /new.',
    )
  })
})
