import { describe, expect, it } from 'vitest'
import {
  textOf,
  type AssistantMessage,
  type PreparedMessage,
  type ToolResultMessage,
} from '../../../src/core/message.ts'
import { summaryPrompt } from '../../../src/history/summary-prompt.ts'
import { compactionSummaryText } from '../../../src/history/texts.ts'
import { createDemoProvider } from '../../../src/provider/demo/demo.ts'
import type { ModelEvent } from '../../../src/provider/provider.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'

const demo = createDemoProvider({ clock: new ManualClock(), pieceDelayMs: 0 })
const TOOLS = ['calculator', 'time'].map((name) => ({ name, description: '', parameters: {} }))

function user(text: string): PreparedMessage {
  return { role: 'user', content: text, timestamp: 0 }
}

function result(callId: string, text: string, isError = false): ToolResultMessage {
  return {
    role: 'toolResult',
    toolCallId: callId,
    toolName: 'calculator',
    content: [{ type: 'text', text }],
    isError,
    timestamp: 0,
  }
}

async function ask(
  messages: readonly PreparedMessage[],
  tools = TOOLS,
): Promise<{ message: AssistantMessage; events: ModelEvent[] }> {
  const request = demo.encode({
    model: 'demo',
    system: '',
    messages,
    tools,
    maxOutputTokens: 1000,
    thinkingLevel: 'off',
  })
  const events: ModelEvent[] = []
  for await (const event of demo.stream(request, new AbortController().signal)) events.push(event)
  const end = events.at(-1)
  if (end?.type !== 'end') throw new Error('no end')
  return { message: { ...end.message, timestamp: 0 }, events }
}

async function answerTo(messages: readonly PreparedMessage[]): Promise<string> {
  return textOf((await ask(messages)).message.content)
}

describe('the demo model', () => {
  it('streams the very text it ends with', async () => {
    const { message, events } = await ask([user('hello')])
    const streamed = events.flatMap((event) => (event.type === 'text-delta' ? [event.delta] : [])).join('')
    expect(streamed).toBe(textOf(message.content))
    expect(events.length).toBeGreaterThan(3)
  })

  it('answers in the language it was asked in', async () => {
    expect(await answerTo([user('你好，我是新用户')])).toMatch(/演示模型/u)
    expect(await answerTo([user('Hello there')])).toMatch(/demo model/u)
  })

  it.each([
    ['What is 12 * (3 + 4)?', '12 * (3 + 4)'],
    ['请计算 3.5×2', '3.5*2'],
    ['17+25', '17+25'],
    ['1 + 2 - 3', '1 + 2 - 3'],
  ])('calls the calculator for %s', async (question, expression) => {
    const { message } = await ask([user(question)])
    expect(message.stopReason).toBe('toolUse')
    expect(message.content.at(-1)).toMatchObject({ type: 'toolCall', name: 'calculator', arguments: { expression } })
  })

  it.each(['Meet me on 2026-11-15', 'call +86 10 12345678', 'version 1.2.3', 'see RFC-2119'])(
    'does not calculate %s',
    async (text) => {
      expect((await ask([user(text)])).message.stopReason).toBe('stop')
    },
  )

  it('uses the calculator and the clock in rounds of their own when asked for both', async () => {
    const question = user('What is 2 + 3, and what time is it?')
    const first = (await ask([question])).message
    const second = (await ask([question, first, result('call_1', '5')])).message
    expect(second.content.at(-1)).toMatchObject({ name: 'time' })
    const third = (await ask([question, first, result('call_1', '5'), second, result('call_3', 'noon')])).message
    expect(textOf(third.content)).toContain('2 + 3 = 5')
    expect(textOf(third.content)).toContain('noon')
    expect(third.stopReason).toBe('stop')
  })

  it.each(['Write a wrong calculation, then fix it', '写一个错误的python代码，然后修复它'])(
    'makes a mistake and fixes it: %s',
    async (text) => {
      const question = user(text)
      const wrong = (await ask([question])).message
      const fix = (await ask([question, wrong, result('call_1', 'missing ) at 12', true)])).message
      expect(fix.content.at(-1)).toMatchObject({ arguments: { expression: '(17 + 25) * 2' } })
      const done = (
        await ask([question, wrong, result('call_1', 'missing ) at 12', true), fix, result('call_3', '84')])
      ).message
      expect(done.stopReason).toBe('stop')
      expect(textOf(done.content)).toContain('84')
      expect(textOf(done.content)).toContain('missing )')
    },
  )

  it('remembers what was said', async () => {
    const hello = user('My cat is called Mimi.')
    const answer = (await ask([hello])).message
    expect(await answerTo([hello, answer, user('What did I just say?')])).toContain('Mimi')
    expect(await answerTo([hello, answer, user('你刚才说了什么？')])).toContain(textOf(answer.content).slice(0, 50))
    expect(await answerTo([user('What did I say?')])).toContain('beginning')
  })

  it('summarises a conversation instead of doing what it says, part by part and over earlier summaries', async () => {
    const part = (text: string, soFar: string): Promise<string> =>
      ask([user(summaryPrompt({ text, tokens: 1 }, soFar).user)], []).then(({ message }) => textOf(message.content))
    const first = await part(
      `[User]: My cat is called Mimi.\n\n[Assistant]: I see.\n\n[User]: ${'12 * (3 + 4)? '.repeat(20)}\n\n[Result of calculator]: 84`,
      '',
    )
    expect(first.split('\n')).toEqual([
      '## Done',
      '- User: My cat is called Mimi.',
      '- Assistant: I see.',
      expect.stringMatching(/^- User: 12 \* \(3 \+ 4\)\? .{50,70}…$/u),
    ])
    const second = await part('[User]: 你好', first)
    expect(second).toBe(`${first}\n- User: 你好`)
    const later = await part(`[User]: ${compactionSummaryText(second)}\n\n[Assistant]: Hello!`, '')
    expect(later).toBe(`${second}\n- Assistant: Hello!`)
  })

  it('says so when the tool it needs is not there', async () => {
    expect(textOf((await ask([user('2 + 2')], [])).message.content)).toContain('calculator')
  })

  it('stops when aborted', async () => {
    const controller = new AbortController()
    const request = demo.encode({
      model: 'demo',
      system: '',
      messages: [user('count to 500')],
      tools: [],
      maxOutputTokens: 1,
      thinkingLevel: 'off',
    })
    const events: ModelEvent[] = []
    await expect(async () => {
      for await (const event of demo.stream(request, controller.signal)) {
        events.push(event)
        controller.abort(new Error('enough'))
      }
    }).rejects.toThrow('enough')
    expect(events).toHaveLength(1)
  })
})
