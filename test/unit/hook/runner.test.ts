import { describe, expect, it } from 'vitest'
import type { LogFacts } from '../../../src/base/log.ts'
import type { SessionId, SessionKey } from '../../../src/core/ids.ts'
import { NO_USAGE, type AssistantMessage, type Message, type ToolResultMessage } from '../../../src/core/message.ts'
import { HOOK_NAMES, type HookModule } from '../../../src/hook/hook.ts'
import { createHookRunner } from '../../../src/hook/runner.ts'
import { ManualClock, settle } from '../../../src/testing/manual-clock.ts'
import { never } from '../../support/tool-call.ts'

const context = { session: 'webhook:ann' as SessionKey, sessionId: 'sess_1' as SessionId }
const start = { prompt: 'hi', messages: [{ role: 'user', content: 'old', timestamp: 1 }] satisfies Message[] }
const result: ToolResultMessage = {
  role: 'toolResult',
  toolCallId: 'c1',
  toolName: 'read',
  content: [{ type: 'text', text: 'raw' }],
  isError: false,
  timestamp: 5,
}
const persist = { toolName: 'read', toolCallId: 'c1', message: result, isSynthetic: false }

function runnerWith(...modules: readonly HookModule[]) {
  const clock = new ManualClock()
  const lines: { message: string; facts: LogFacts }[] = []
  const write = (message: string, facts: LogFacts = {}): void => void lines.push({ message, facts })
  const log = { debug: write, info: write, warn: write, error: write, child: () => log }
  const sources = modules.map((hooks, i) => ({ source: `m${i}.mjs`, hooks }))
  return { runner: createHookRunner({ sources, clock, log }), clock, lines }
}

describe('hooks that modify', () => {
  it('run one after another, highest priority first, equal ones in the order they were registered', async () => {
    const seen: string[] = []
    const at = (name: string, priority?: number): HookModule => ({
      before_agent_start: { handler: () => void seen.push(name), ...(priority !== undefined && { priority }) },
    })
    const { runner } = runnerWith(at('low', -1), at('first'), at('high', 10), at('second', 0))
    expect(await runner.beforeAgentStart(start, context, never)).toEqual({})
    expect(seen).toEqual(['high', 'first', 'second', 'low'])
  })

  it('are all decided by the highest priority; contexts are joined in its order', async () => {
    const { runner } = runnerWith(
      { before_agent_start: async () => ({ prependContext: 'low', systemPrompt: 'low', model: 'a/low' }) },
      { before_agent_start: { priority: 1, handler: () => ({ prependContext: 'high', systemPrompt: 'high' }) } },
    )
    expect(await runner.beforeAgentStart(start, context, never)).toEqual({
      prependContext: 'high\n\nlow',
      systemPrompt: 'high',
      model: 'a/low',
    })
  })

  it('see a tool result as the one before left it, and cannot exchange its role or ids', async () => {
    const { runner } = runnerWith(
      {
        tool_result_persist: ({ message }) => ({
          message: { ...message, toolCallId: 'other', toolName: 'other', content: [{ type: 'text', text: 'cleaned' }] },
        }),
      },
      {
        tool_result_persist: ({ message }) => ({
          message: { ...message, content: [...message.content, { type: 'text', text: 'seen' }] },
        }),
      },
    )
    expect(await runner.toolResultPersist(persist, context, never)).toEqual({
      ...result,
      content: [
        { type: 'text', text: 'cleaned' },
        { type: 'text', text: 'seen' },
      ],
    })
  })

  it('may block the storing of a message, which ends the chain', async () => {
    let asked = 0
    const { runner } = runnerWith(
      { before_message_write: () => ({ block: true }) },
      { before_message_write: () => void asked++ },
    )
    expect(await runner.beforeMessageWrite({ message: result }, context, never)).toBeUndefined()
    expect(asked).toBe(0)
  })

  it('may block a tool call with a reason, or change its arguments', async () => {
    const event = { toolName: 'files', toolCallId: 'c1', arguments: { path: 'a' } }
    const changed = runnerWith(
      { before_tool_call: ({ arguments: args }) => ({ arguments: { ...args, path: 'b' } }) },
      { before_tool_call: ({ arguments: args }) => ({ arguments: { ...args, seen: args['path'] ?? '' } }) },
    )
    expect(await changed.runner.beforeToolCall(event, context, never)).toEqual({
      kind: 'run',
      arguments: { path: 'b', seen: 'b' },
    })
    const blocked = runnerWith({ before_tool_call: () => ({ block: true, reason: 'not on Sundays' }) })
    expect(await blocked.runner.beforeToolCall(event, context, never)).toEqual({
      kind: 'block',
      reason: 'not on Sundays',
    })
  })

  it('get frozen copies: what they do to them changes nothing', async () => {
    const message = { ...result, details: { nested: { n: 1 } } }
    const { runner, lines } = runnerWith({
      tool_result_persist: (event) => {
        ;(event.message.details as { nested: { n: number } }).nested.n = 2
      },
    })
    expect(await runner.toolResultPersist({ ...persist, message }, context, never)).toEqual(message)
    expect(message.details.nested.n).toBe(1)
    expect(Object.isFrozen(message.details)).toBe(false)
    expect(lines).toEqual([
      {
        message: 'a hook failed',
        facts: { hook: 'tool_result_persist', source: 'm0.mjs', session: 'webhook:ann', error: 'TypeError' },
      },
    ])
  })

  it.each([
    ['a text', 'the result is not an object'],
    [{ message: 'x' }, 'message is not an object'],
    [{ message: { ...result, role: 'user' } }, 'message.role was changed'],
    [{ message: { ...result, content: 'text' } }, 'message.content is not a list of text and image blocks'],
    [
      { message: { ...result, content: [{ type: 'video' }] } },
      'message.content is not a list of text and image blocks',
    ],
    [{ message: { ...result, isError: 'no' } }, 'message.isError is neither true nor false'],
    [{ message: { ...result, details: 1n } }, 'message cannot be written as JSON'],
  ])('that answer nonsense (%o) are ignored, and the log does not repeat what they said', async (answer, problem) => {
    const { runner, lines } = runnerWith({ tool_result_persist: () => answer as never })
    expect(await runner.toolResultPersist(persist, context, never)).toEqual(result)
    expect(lines).toEqual([
      {
        message: 'a hook gave a result that cannot be used',
        facts: { hook: 'tool_result_persist', source: 'm0.mjs', session: 'webhook:ann', problem },
      },
    ])
  })

  it('cannot take the tool calls out of an answer', async () => {
    const answer: AssistantMessage = {
      role: 'assistant',
      content: [
        { type: 'text', text: 'secret' },
        { type: 'toolCall', id: 'c1', name: 'read', arguments: {} },
      ],
      api: 'demo',
      provider: 'demo',
      model: 'demo',
      usage: NO_USAGE,
      stopReason: 'toolUse',
      timestamp: 1,
    }
    const without = runnerWith({ before_message_write: () => ({ message: { ...answer, content: [] } }) })
    expect(await without.runner.beforeMessageWrite({ message: answer }, context, never)).toEqual(answer)
    expect(without.lines).toHaveLength(1)
    const content = [{ type: 'text', text: '…' } as const, ...answer.content.slice(1)]
    const redacting = runnerWith({ before_message_write: () => ({ message: { ...answer, content } }) })
    expect(await redacting.runner.beforeMessageWrite({ message: answer }, context, never)).toEqual({
      ...answer,
      content,
    })
  })

  it('may change the text of a user message, and nothing that would make it another message', async () => {
    const message: Message = { role: 'user', content: 'my number is 4111', timestamp: 7 }
    const stored = (answer: unknown): Promise<Message | undefined> =>
      runnerWith({ before_message_write: () => ({ message: answer }) as never }).runner.beforeMessageWrite(
        { message },
        context,
        never,
      )
    expect(await stored({ ...message, content: 'my number is …' })).toEqual({ ...message, content: 'my number is …' })
    const blocks = [{ type: 'text', text: 'as blocks' }]
    expect(await stored({ ...message, content: blocks })).toEqual({ ...message, content: blocks })
    for (const wrong of [
      { ...message, role: 'assistant' },
      { ...message, content: [{ type: 'toolCall', id: 'x', name: 'y', arguments: {} }] },
      { ...message, content: undefined },
      { ...message, timestamp: 'now' },
    ]) {
      expect(await stored(wrong)).toEqual(message)
    }
  })

  it('see messages whose details cannot be copied without what cannot', async () => {
    let seen: unknown
    const { runner } = runnerWith({ tool_result_persist: (event) => void (seen = event.message.details) })
    await runner.toolResultPersist(
      { ...persist, message: { ...result, details: { n: 1, f: () => 1 } } },
      context,
      never,
    )
    expect(seen).toEqual({ n: 1 })
  })

  it('that fail or hang do not keep the others from running, nor their words from staying unsaid', async () => {
    const { runner, clock, lines } = runnerWith(
      {
        before_agent_start: () => {
          throw new Error('my password is 1234')
        },
      },
      { before_agent_start: { handler: () => new Promise(() => undefined), timeoutMs: 100 } },
      { before_agent_start: () => ({ prependContext: 'still here' }) },
    )
    const running = runner.beforeAgentStart(start, context, never)
    await clock.advance(100)
    expect(await running).toEqual({ prependContext: 'still here' })
    expect(lines.map((line) => line.message)).toEqual(['a hook failed', 'a hook took too long'])
    expect(JSON.stringify(lines)).not.toContain('1234')
    expect(clock.pending).toBe(0)
  })

  it('throw the reason of an abort, and tell the handler', async () => {
    const turn = new AbortController()
    let told = false
    const { runner, clock } = runnerWith({
      before_agent_start: (_, { signal }) =>
        new Promise(() => signal.addEventListener('abort', () => void (told = true))),
    })
    const running = runner.beforeAgentStart(start, context, turn.signal)
    await settle()
    turn.abort(new Error('cancelled'))
    await expect(running).rejects.toThrow('cancelled')
    expect([told, clock.pending]).toEqual([true, 0])
  })
})

describe('hooks that observe', () => {
  it('run side by side, each with its own time limit', async () => {
    const seen: string[] = []
    const { runner, clock, lines } = runnerWith(
      { llm_output: () => new Promise(() => void seen.push('hangs')) },
      { llm_output: async ({ durationMs }) => void seen.push(`took ${durationMs}`) },
      {
        llm_output: () => {
          throw new Error('x')
        },
      },
    )
    const message = {
      role: 'assistant' as const,
      content: [],
      api: 'a',
      provider: 'p',
      model: 'm',
      usage: NO_USAGE,
      stopReason: 'stop' as const,
    }
    const event = { provider: 'p', model: 'm', message, round: 0, durationMs: 7 }
    const running = runner.llmOutput(event, context, never)
    await settle()
    expect(seen).toEqual(['hangs', 'took 7'])
    await clock.advance(30_000)
    await running
    expect(lines.map((line) => line.message)).toEqual(['a hook failed', 'a hook took too long'])
  })
})

describe('registering hooks', () => {
  it('has a method for each name of the specification', () => {
    const { runner } = runnerWith({})
    const methods = Object.keys(runner).filter((name) => name !== 'has')
    const camel = (name: string): string => name.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
    expect(methods.sort()).toEqual(HOOK_NAMES.map(camel).sort())
  })

  it('knows which hooks there are', () => {
    const { runner } = runnerWith({ session_end: () => undefined })
    expect([runner.has('session_end'), runner.has('session_start')]).toEqual([true, false])
  })

  it.each([
    [{ before_agent_begin: () => undefined }, 'there is no hook called "before_agent_begin"'],
    [{ session_end: 7 }, 'its handler is not a function'],
    [{ session_end: { handler: Date.now, priority: 'high' } }, 'its priority is not a number'],
    [{ session_end: { handler: Date.now, timeoutMs: -1 } }, 'its timeoutMs is not a positive number'],
  ])('refuses %o', (hooks, message) => {
    expect(() => runnerWith(hooks as HookModule)).toThrow(message)
  })
})
