import { resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Message, UserMessage } from '../../src/core/message.ts'
import { HOOK_NAMES, type HookModule } from '../../src/hook/hook.ts'
import { nodeModules } from '../../src/platform/node-modules.ts'
import { say } from '../support/model-world.ts'
import { worldsOfThisFile } from '../support/model-worlds.ts'

const openWorld = worldsOfThisFile()
const MODULE = resolve(import.meta.dirname, '../fixtures/all-hooks.mjs')

const work = {
  blocks: [
    { type: 'toolCall', name: 'calculator', arguments: { expression: '1 + 1' } },
    { type: 'toolCall', name: 'time', arguments: {} },
  ],
} as const

describe('hooks loaded from a module', () => {
  it('all that a turn has are called with frozen input, and the modifying ones modify', async () => {
    const world = await openWorld({
      ports: { modules: nodeModules },
      config: { hooks: [MODULE], compaction: { keepRecentTokens: 20 }, agent: { tools: ['calculator', 'time'] } },
    })
    const { calls } = (await nodeModules.importModule(MODULE)) as { calls: { name: string; frozen: boolean }[] }
    const client = await world.connect()
    world.enqueue(work, { blocks: [{ type: 'text', text: `the answer is long enough. ${'It is so. '.repeat(20)}` }] })
    expect(await say(client, `compute. ${'Take your time. '.repeat(20)}`)).toMatchObject({ type: 'complete' })
    const [first, second] = world.requests
    expect(first?.conversation.system).toBe('You are a hooked assistant.')
    expect(first?.bodyText).toContain('It is a rainy day.\\n\\ncompute.')
    const results = second?.conversation.turns.flatMap((turn) => (turn.role === 'tool' ? [turn.text] : []))
    expect(results).toEqual(['a redacted result', 'no clocks here'])
    await say(client, `more. ${'Please. '.repeat(40)}`)
    world.enqueue({ blocks: [{ type: 'text', text: 'short' }] })
    await say(client, '/compact')
    await say(client, '/new')
    // Only a phone sends data or clears its context.
    const ofTurns = HOOK_NAMES.filter((name) => name !== 'channel_data' && name !== 'session_cleared')
    expect(new Set(calls.map(({ name }) => name))).toEqual(new Set(ofTurns))
    expect(calls.every(({ frozen }) => frozen)).toBe(true)
    expect(world.violations()).toEqual([])
  })

  it('are told of the conversation, the turn and the agent', async () => {
    const told: object[] = []
    const observe: HookModule = { llm_input: (_, { signal: _signal, ...context }) => void told.push(context) }
    const world = await openWorld({
      hooks: [{ source: 'test', hooks: observe }],
      config: { agent_id: 'office' },
    })
    const { runId } = await say(await world.connect(), 'hello')
    expect(told).toEqual([
      {
        session: 's',
        sessionId: expect.any(String) as string,
        run: runId,
        model: expect.any(String) as string,
        agentId: 'office',
      },
    ])
  })

  it('may put context in front of a message, which the model reads and nobody is shown as the user’s words', async () => {
    const world = await openWorld({
      hooks: [{ source: 'test', hooks: { before_agent_start: () => ({ prependContext: 'We open at nine.' }) } }],
    })
    const client = await world.connect()
    await say(client, 'When do you open?')
    await say(client, 'And tomorrow?')
    expect(world.requests[0]?.bodyText).toContain('We open at nine.\\n\\nWhen do you open?')
    const shown = await world.gateway.api('/api/sessions/s')
    expect(shown['messages']).toMatchObject([
      { role: 'user', text: 'When do you open?', prependContext: 'We open at nine.' },
      { role: 'assistant' },
      { role: 'user', text: 'And tomorrow?', prependContext: 'We open at nine.' },
      { role: 'assistant' },
    ])
    const stored = (await world.transcript()).flatMap((line) => (line['type'] === 'message' ? [line['message']] : []))
    expect(stored[0]).toMatchObject({ content: 'When do you open?', prependContext: 'We open at nine.' })
    for (const request of [1, 2])
      expect(await world.gateway.api(`/api/sessions/s?request=${request}`)).toMatchObject({ hashMatches: true })
  })

  it.each([
    ['a strategy', () => ({ strategy: 'none' }), 0],
    [
      'ids, of which only whole rounds count',
      ({ hide }: { hide: readonly string[] }) => ({ hide: hide.slice(0, 1) }),
      2,
    ],
    ['ids of nobody', () => ({ hide: ['nobody', '', '__proto__'] }), 0],
    ['nonsense', () => ({ hide: 7, strategy: 'everything' }), 4],
  ])('may choose what a cleanup hides: %s', async (_, choose, cleaned) => {
    const world = await openWorld({
      hooks: [{ source: 'test', hooks: { choose_cleanup: choose as never } }],
      config: { agent: { tools: ['calculator'] } },
    })
    const client = await world.connect()
    const call = { type: 'toolCall', name: 'calculator', arguments: { expression: '1 + 1' } } as const
    const thinkingAloud = { type: 'text', text: 'Let me think about this. '.repeat(20) } as const
    world.enqueue(
      { blocks: [thinkingAloud, call] },
      { blocks: [thinkingAloud, call] },
      { blocks: [{ type: 'text', text: 'two' }] },
    )
    await say(client, 'compute')
    const event = client.frames.find((frame) => frame['event'] === 'step_cleanup_completed')
    expect(event?.['data']).toMatchObject({ cleaned_messages: cleaned })
    await say(client, 'thanks')
    expect(world.violations()).toEqual([])
  })

  it('that hang take nothing back from those before them, and one has the time it asked for', async () => {
    const isUsers = ({ role }: { readonly role: string }): boolean => role === 'user'
    const hide = (message: Message): { message: Message } => ({
      message: { ...(message as UserMessage), content: String((message as UserMessage).content).replace('4111', '…') },
    })
    const hangs = (): Promise<never> => new Promise(() => undefined)
    const redacts: HookModule = {
      before_message_write: { priority: 1, handler: ({ message }) => (isUsers(message) ? hide(message) : undefined) },
    }
    const stuck: HookModule = { before_message_write: ({ message }) => (isUsers(message) ? hangs() : undefined) }
    const world = await openWorld({ hooks: [redacts, stuck].map((hooks) => ({ source: 'test', hooks })) })
    await say(await world.connect(), 'My number is 4111.')
    expect(world.requests[0]?.bodyText).toContain('My number is ….')

    const slow: HookModule = {
      before_message_write: {
        timeoutMs: 60_000,
        handler: ({ message }) =>
          isUsers(message)
            ? new Promise((resolve) => void other.clock.after(30_000, () => resolve(hide(message))))
            : undefined,
      },
    }
    const other = await openWorld({ hooks: [{ source: 'test', hooks: slow }] })
    await say(await other.connect(), 'My number is 4111.')
    expect(other.requests[0]?.bodyText).toContain('My number is ….')
  })

  it('that throw, hang or answer nonsense cost nobody an answer', { timeout: 20_000 }, async () => {
    const broken = [
      () => {
        throw new Error('broken')
      },
      () => new Promise(() => undefined),
      () => 'nonsense',
      () => ({ message: 7, block: 'yes', arguments: [], model: 'no/such-model', systemPrompt: 3 }),
    ]
    for (const handler of broken) {
      const hooks = Object.fromEntries(HOOK_NAMES.map((name) => [name, handler])) as unknown as HookModule
      const world = await openWorld({
        hooks: [{ source: 'test', hooks }],
        config: { agent: { tools: ['calculator'] } },
      })
      const client = await world.connect()
      world.enqueue(
        { blocks: [{ type: 'toolCall', name: 'calculator', arguments: { expression: `41 + ${'1'.repeat(200)}` } }] },
        { blocks: [{ type: 'text', text: 'done' }] },
      )
      expect(await say(client, 'go'), handler.toString()).toMatchObject({ type: 'complete', content: 'done' })
      expect(await say(client, '/new'), handler.toString()).toMatchObject({ type: 'complete' })
      expect(world.violations()).toEqual([])
    }
  })
})
