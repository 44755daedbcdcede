import { describe, expect, it } from 'vitest'
import { createBudget } from '../../../src/history/budget.ts'
import { prepareHistory, type HistoryInput } from '../../../src/history/prepare.ts'
import { assistant, call, entriesOf, PNG_1PX, result, sketch, TARGETS, text, user } from '../../support/history.ts'

const image = { type: 'image', data: PNG_1PX, mimeType: 'image/png' } as const
const twoCalls = entriesOf(
  user('go'),
  assistant([text('looking'), call('a', 'read', { path: 'x' }), call('b', 'list')]),
  result('b', 'files', { toolName: 'list' }),
  result('a', [text('words'), image], { isError: true, toolName: 'read' }),
  user('and?'),
)

const inputFor = (target: keyof typeof TARGETS, more: Partial<HistoryInput> = {}): HistoryInput => ({
  entries: twoCalls,
  target: TARGETS[target],
  budget: createBudget({ contextWindow: 128_000 }),
  historyLimit: 0,
  now: 1,
  ...more,
})

describe('calls made together', () => {
  it('become rounds of one call each for compatible servers, the text in front of the first', () => {
    const prepared = prepareHistory(inputFor('compatible'))
    expect(prepared.messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'toolResult',
      'assistant',
      'toolResult',
      'assistant',
      'user',
    ])
    expect(prepared.messages[1]?.content).toMatchObject([{ text: 'looking' }, { type: 'toolCall', id: 'a' }])
    expect(prepared.messages[3]?.content).toMatchObject([{ type: 'toolCall', id: 'b' }])
    expect(prepared.report.changes).toContainEqual({
      step: 'tool-calls',
      action: 'rewritten',
      reason: 'one call per answer',
      entry: 'e2',
      count: 2,
    })
  })

  it('stay together for OpenAI, and for Gemini behind a compatible door, which signs only the first', () => {
    for (const target of [TARGETS.completions, { ...TARGETS.compatible, model: 'gemini-3-pro' }]) {
      const { messages } = prepareHistory({ ...inputFor('completions'), target })
      expect(messages.slice(1, 4).map(({ role }) => role)).toEqual(['assistant', 'toolResult', 'toolResult'])
    }
  })
})

describe('the safest form', () => {
  it.each(Object.keys(TARGETS) as (keyof typeof TARGETS)[])('tells calls and results as text for %s', (target) => {
    const prepared = prepareHistory(inputFor(target, { projection: 'safest' }))
    expect(sketch(prepared)).toBe(
      [
        'user: go',
        'assistant: looking + [Called the tool read with {"path":"x"}] + [Called the tool list with {}]',
        'user: [The tool read failed:] + words + [image left out: it belongs to an error]' +
          ' + [Result of the tool list:] + files + and?',
      ].join(' | '),
    )
  })

  it('ends with the results while a tool loop runs', () => {
    const entries = twoCalls.slice(0, 4)
    const { messages } = prepareHistory(inputFor('compatible', { entries, projection: 'safest' }))
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
  })
})
