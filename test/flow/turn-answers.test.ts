import { describe, expect, it } from 'vitest'
import type { HookModule } from '../../src/hook/hook.ts'
import type { AnswerBlock, ScriptedAnswer } from '../../src/simulator/provider/script.ts'
import { messagesOf, openCalls, say } from '../support/model-world.ts'
import { worldsOfThisFile } from '../support/model-worlds.ts'
import type { SessionKey } from '../../src/core/ids.ts'

const openWorld = worldsOfThisFile()

const text = (words: string): ScriptedAnswer => ({ blocks: [{ type: 'text', text: words }] })
const call = (name: string, args: Record<string, string | number> | string): AnswerBlock => ({
  type: 'toolCall',
  name,
  arguments: args,
})
const calls = (...blocks: AnswerBlock[]): ScriptedAnswer => ({ blocks })

describe('what a request was made of', () => {
  it('is written with the answer it led to, the system prompt and the tools once until they change', async () => {
    const world = await openWorld()
    const client = await world.connect()
    const kinds = async (): Promise<unknown[]> =>
      (await world.transcript()).map((line) => line['customType'] ?? line['type'])
    world.enqueue({ ...text('I am here'), delivery: { headersDelayMs: 2_000 } }, text('still here'))
    await client.send({ id: '1', content: 'hello', session: 's' })
    await world.clock.advance(1_000)
    expect(world.requests).toHaveLength(1)
    expect(await kinds()).toEqual(['session', 'message'])
    await client.waitFor(1)
    expect(await kinds()).toEqual(['session', 'message', 'clew.setup', 'clew.request', 'message'])
    await say(client, 'are you?')
    expect((await kinds()).slice(5)).toEqual(['message', 'clew.request', 'message'])
  })

  it('keeps when it was sent, when the answer began and how long it took', async () => {
    const world = await openWorld()
    const client = await world.connect()
    world.enqueue({ ...text('I am here'), delivery: { headersDelayMs: 2_000 } })
    const sentAt = world.clock.now()
    await say(client, 'hello')
    const record = (await world.transcript()).find((line) => line['customType'] === 'clew.request')
    const times = record?.['data'] as { startedAt: number; firstByteMs: number; durationMs: number }
    expect(times.startedAt).toBeGreaterThanOrEqual(sentAt)
    expect(times.firstByteMs).toBeGreaterThanOrEqual(2_000)
    expect(times.durationMs).toBeGreaterThanOrEqual(times.firstByteMs)
  })
})

describe('answers that are not as they should be', () => {
  it('an empty one ends in an error instead of a blank reply, is paid for, and the next message works', async () => {
    const world = await openWorld()
    const client = await world.connect()
    world.enqueue({ blocks: [], usage: { input: 100, output: 1 } })
    expect(await say(client, 'hello')).toMatchObject({ type: 'error', code: 'MODEL_ANSWER_INVALID' })
    expect((await world.gateway.api('/api/sessions/s'))['usage']).toMatchObject({ requests: 1 })
    expect(await say(client, 'hello')).toMatchObject({ type: 'complete' })
    expect(world.violations()).toEqual([])
  })

  it('an empty one is another model’s chance', async () => {
    const config = { model: ['anthropic/claude-sonnet-4-5', 'mistral/mistral-large-latest'] }
    const world = await openWorld({ config, models: ['anthropic', 'mistral'] })
    const client = await world.connect()
    world.enqueue({ blocks: [], usage: { input: 100, output: 1 } }, text('I am here'))
    expect(await say(client, 'hello')).toMatchObject({ type: 'complete', content: 'I am here' })
    expect((await world.gateway.api('/api/sessions/s'))['usage']).toMatchObject({ requests: 2 })
  })

  it('one that the output limit cut says so to the user, and only to the user', async () => {
    const world = await openWorld()
    const client = await world.connect()
    world.enqueue({ blocks: [{ type: 'text', text: 'The first half' }], stop: 'length' })
    expect((await say(client, 'write a lot'))['content']).toMatch(/^The first half\n\n\[The answer was cut off/u)
    await say(client, 'continue')
    expect(world.requests.at(-1)?.bodyText).toContain('The first half')
    expect(world.requests.at(-1)?.bodyText).not.toContain('cut off')
  })

  it.each(['openai', 'chat', 'anthropic', 'mistral'] as const)(
    'calls with broken arguments of %s are not run as empty ones; the model reads why',
    async (model) => {
      const world = await openWorld({ models: [model] })
      const client = await world.connect()
      world.enqueue(calls(call('time', '{"zone": "Asia/Sh')), text('sorry'))
      expect(await say(client, 'what time is it?')).toMatchObject({ type: 'complete', content: 'sorry' })
      const results = messagesOf(await world.transcript()).filter(({ role }) => role === 'toolResult')
      expect(JSON.stringify(results)).toContain('not valid JSON')
      expect(world.violations()).toEqual([])
    },
  )

  it('calls of unknown tools, with wrong arguments and in parallel each get their own result, in one round', async () => {
    const world = await openWorld()
    const client = await world.connect()
    world.enqueue(
      calls(
        call('teleport', { to: 'Mars' }),
        call('calculator', { expression: '6 * 7' }),
        call('calculator', {}),
        call('calculator', { expression: '1 / 0' }),
      ),
    )
    expect(await say(client, 'go')).toMatchObject({ type: 'complete' })
    const [, second] = world.requests
    const results = second?.conversation.turns.flatMap((turn) => (turn.role === 'tool' ? [turn.text] : []))
    expect(results).toHaveLength(4)
    expect(results?.[0]).toContain('no tool called "teleport"')
    expect(results?.[1]).toContain('42')
    expect(results?.[2]).toContain('expression')
    expect(openCalls(await world.transcript())).toEqual([])
    expect(world.violations()).toEqual([])
  })

  it('a stream that ends in an orderly way before its end is an error, its text is kept', async () => {
    const world = await openWorld()
    const client = await world.connect()
    world.enqueue({ ...text('half of it'), delivery: { endAfterEvents: 4 } })
    expect(await say(client, 'hello')).toMatchObject({ type: 'error', content: expect.stringContaining('half') })
    expect(JSON.stringify(messagesOf(await world.transcript()))).toContain('half of it')
  })

  it('an answer that a hook refuses to store is neither run nor asked for for ever', async () => {
    const hooks: HookModule = {
      before_message_write: ({ message }) => (message.role === 'assistant' ? { block: true } : undefined),
    }
    const world = await openWorld({ hooks: [{ source: 'test', hooks }] })
    const client = await world.connect()
    world.enqueue(calls(call('time', {})))
    await say(client, 'hello')
    expect(messagesOf(await world.transcript()).filter(({ role }) => role === 'toolResult')).toEqual([])
    expect(world.requests).toHaveLength(1)
  })
})

describe('the round limit', () => {
  it('ends in a reply that says so; the last results are in the next request, no call stays open', async () => {
    const world = await openWorld({ config: { task: { max_rounds: 3 } } })
    const client = await world.connect()
    for (let i = 1; i <= 3; i++) world.enqueue(calls(call('calculator', { expression: `${i} * 1000` })))
    const reply = await say(client, 'never stop')
    expect(reply).toMatchObject({ type: 'complete', content: expect.stringContaining('3 rounds') })
    expect(world.requests).toHaveLength(3)
    await say(client, 'continue')
    for (const result of ['1000', '2000', '3000']) expect(world.requests.at(-1)?.bodyText).toContain(result)
    expect(openCalls(await world.transcript())).toEqual([])
    expect(world.violations()).toEqual([])
  })
})

describe('a step without a final answer', () => {
  const failing = {
    config: { agent: { exec: { allow: ['test'] } } },
    programs: () => ({ code: 1, stderr: `${'  File "test.py", line 12, in check\n'.repeat(40)}E-4711` }),
  }

  it.each([
    ['fails', [{ refuse: 'invalid-request' }, { refuse: 'invalid-request' }, { refuse: 'invalid-request' }]],
    ['reaches the round limit', []],
  ] as const)('that %s keeps the error text the next request needs', async (_how, last) => {
    const config = { ...failing.config, task: { max_rounds: 3 } }
    const world = await openWorld({ ...failing, config })
    const client = await world.connect()
    const rounds = last.length > 0 ? 2 : 3
    for (let i = 0; i < rounds; i++) world.enqueue(calls(call('exec', { program: 'test' })))
    world.enqueue(...last)
    await say(client, 'make the tests pass')
    await say(client, 'what was the error?')
    const body = world.requests.at(-1)?.bodyText ?? ''
    expect(body).toContain('make the tests pass')
    expect(body).toContain('E-4711')
    expect(body).toContain('recall_rounds')
    expect(world.violations()).toEqual([])
  })
})

describe('steering', () => {
  it('adds a message to the running turn at its next round, with what it shows; one answer for both', async () => {
    const world = await openWorld({
      config: { queue: { mode: 'steer' }, agent: { exec: { allow: ['build'] } } },
      programs: () => ({ takesMs: 5_000 }),
    })
    const client = await world.connect()
    world.enqueue(calls(call('exec', { program: 'build' })), text('both done'))
    await client.send({ id: 'a', content: 'build it', session: 's' })
    await world.clock.advance(1_000)
    world.files.plant('/home/clew/workspace/shot.png', Buffer.from(PIXEL, 'base64'))
    await client.send({ id: 'b', content: 'and look at ./shot.png', session: 's' })
    const frames = await client.waitFor(2)
    expect(frames).toMatchObject([{ content: 'both done' }, { content: 'both done' }])
    expect(new Set(frames.map((frame) => frame['messageId']))).toEqual(new Set(['a', 'b']))
    expect(world.requests).toHaveLength(2)
    const last = world.requests[1]?.conversation.turns.at(-1)
    expect(last, JSON.stringify(last)).toMatchObject({ role: 'user', images: 1 })
    expect(world.violations()).toEqual([])
  })
})

const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='

describe('steering over a compaction and a crash', () => {
  it('a message that joined is neither stored nor answered twice', async () => {
    const world = await openWorld({
      models: ['mistral'],
      settings: { mistral: { models: { 'mistral-large-latest': { contextWindow: 8_000, maxOutputTokens: 1_000 } } } },
      config: {
        queue: { mode: 'steer' },
        compaction: { keepRecentTokens: 300 },
        agent: { exec: { allow: ['build'] }, tools: [] },
      },
      first: ({ conversation }) => (conversation.tools.length === 0 ? text('Much was built.') : undefined),
      programs: () => ({ stdout: 'built', takesMs: 2_000 }),
    })
    const client = await world.connect()
    const thought: AnswerBlock = { type: 'text', text: 'I think about the build. '.repeat(200) }
    for (let i = 0; i < 7; i++) world.enqueue(calls(thought, call('exec', { program: 'build' })))
    await client.send({ id: 'a', content: 'build it', session: 's' })
    await world.clock.advance(1_000)
    await client.send({ id: 'b', content: 'and mind the tests', session: 's' })
    const compacted = async (): Promise<boolean> =>
      (await world.transcript()).some(({ type, id }) => type === 'compaction' && id !== undefined)
    for (let i = 0; i < 12 && !(await compacted()); i++) await world.clock.advance(1_000)
    expect(await compacted()).toBe(true)
    expect(client.terminal()).toEqual([])
    world.forgetQueue()
    world.enqueue(text('all built'))
    await world.restart({ kill: true })
    const later = await world.connect()
    await later.waitFor(2)
    expect(later.terminal()).toMatchObject([{ content: 'all built' }, { content: 'all built' }])
    const users = messagesOf(await world.transcript()).filter(({ role }) => role === 'user')
    expect(users.map(({ content }) => content)).toEqual(['build it', 'and mind the tests'])
    expect(world.violations()).toEqual([])
  })
})

describe('a summary that cannot be made', () => {
  it('is not tried again in every round of the turn', async () => {
    let summaries = 0
    const world = await openWorld({
      models: ['mistral'],
      settings: { mistral: { models: { 'mistral-large-latest': { contextWindow: 8_000, maxOutputTokens: 1_000 } } } },
      config: { compaction: { keepRecentTokens: 300 }, agent: { tools: ['calculator'] } },
      first: ({ conversation }) => {
        if (conversation.tools.length > 0) return undefined
        summaries++
        return { refuse: 'content-filter' }
      },
    })
    const client = await world.connect()
    const thought: AnswerBlock = { type: 'text', text: 'I think about numbers. '.repeat(200) }
    for (let i = 0; i < 8; i++) world.enqueue(calls(thought, call('calculator', { expression: `${i} + 1` })))
    world.enqueue(text('done'))
    expect(await say(client, 'compute')).toMatchObject({ type: 'complete', content: 'done' })
    expect(summaries).toBe(1)
  })
})

describe('the choice of a model', () => {
  it('that the configuration no longer has does not lock the conversation', async () => {
    const world = await openWorld({ models: ['anthropic', 'mistral'] })
    const client = await world.connect()
    await say(client, '/model mistral/mistral-large-latest')
    await say(client, 'hello')
    expect(world.requests.at(-1)?.api).toBe('mistral-conversations')
    const { storage } = world.gateway.app
    const key = (await storage.sessions.list({ limit: 1 })).sessions[0]?.key as SessionKey
    await storage.transact([{ kind: 'change-session', key, fields: { providerOverride: 'gone' } }])
    expect(await say(client, 'and now?')).toMatchObject({ type: 'complete' })
    expect(world.requests.at(-1)?.api).toBe('anthropic-messages')
  })
})

describe('maintenance', () => {
  it('a /restore that a crash repeats undoes one cleanup, not two', async () => {
    const world = await openWorld({ config: { agent: { tools: ['calculator'] } } })
    const client = await world.connect()
    for (const n of [1, 2]) {
      world.enqueue(calls(call('calculator', { expression: `${n} + ${'1'.repeat(300)}` })), text(`done ${n}`))
      await say(client, `step ${n}`)
    }
    const hidden = async (): Promise<number> => {
      const { messages } = (await world.gateway.api('/api/sessions/s')) as { messages: { hidden?: boolean }[] }
      return messages.filter((message) => message.hidden === true).length
    }
    expect(await hidden()).toBe(4)
    // The restore is in the transcript, its reply is not stored: the program dies in between.
    const before = world.files.operations
    await say(client, '/restore')
    const operations = world.files.operations - before
    expect(await hidden()).toBe(2)
    await say(client, '/cleanup')
    expect(await hidden()).toBe(4)
    for (let at = 0; at < operations; at++) {
      const trial = await openWorld({ config: { agent: { tools: ['calculator'] } } })
      const user = await trial.connect()
      for (const n of [1, 2]) {
        trial.enqueue(calls(call('calculator', { expression: `${n} + ${'1'.repeat(300)}` })), text(`done ${n}`))
        await say(user, `step ${n}`)
      }
      trial.files.injectFault(trial.files.operations + at, 'crash-after')
      await user.send({ id: 'r', content: '/restore', session: 's' }).catch(() => undefined)
      await trial.clock.advance(1_000)
      await trial.restart({ kill: true })
      await trial.clock.advance(1_000)
      const { messages } = (await trial.gateway.api('/api/sessions/s')) as { messages: { hidden?: boolean }[] }
      const left = messages.filter((message) => message.hidden === true).length
      // Not accepted yet: nothing happened. Accepted: exactly one.
      expect([2, 4], `operation ${at} of ${operations}`).toContain(left)
      await trial.stop()
    }
  })

  it('numbers requests on over a compaction, and a compaction is paid for', async () => {
    const world = await openWorld({ config: { compaction: { keepRecentTokens: 50 } } })
    const client = await world.connect()
    for (let i = 0; i < 4; i++) await say(client, `Remember: fact ${i} is ${'green '.repeat(60)}`)
    const paid = (await world.gateway.api('/api/sessions/s'))['usage'] as { requests: number }
    world.enqueue(text('The user told me about greens.'))
    expect((await say(client, '/compact'))['content']).toContain('is now a summary')
    const after = (await world.gateway.api('/api/sessions/s'))['usage'] as { requests: number }
    expect(after.requests).toBe(paid.requests + 1)
    await say(client, 'go on')
    await say(client, 'go on')
    const shown = await world.gateway.api('/api/sessions/s')
    expect(shown['requests']).toBe(6)
    for (const n of [1, 4, 5, 6])
      expect(await world.gateway.api(`/api/sessions/s?request=${n}`)).toMatchObject({ request: n, hashMatches: true })
  })
})
