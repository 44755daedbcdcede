import { describe, expect, it } from 'vitest'
import type { Entry } from '../../../src/core/entry.ts'
import { cutMiddle, takeHead, takeTail } from '../../../src/base/text.ts'
import type { ToolResultMessage } from '../../../src/core/message.ts'
import {
  createBudget,
  DEFAULT_PRUNING,
  HARD_MAX_TOOL_RESULT_CHARS,
  MAX_TOOL_RESULT_CONTEXT_SHARE,
  maxCharsPerResult,
  maxHistoryTokens,
  MIN_KEEP_CHARS,
} from '../../../src/history/budget.ts'
import { TRANSCRIPT_POLICIES } from '../../../src/core/history-rules.ts'
import { stickyEntryData, VIEW_ENTRY_TYPE, type StickyDecision } from '../../../src/history/view-records.ts'
import { truncateResult } from '../../../src/history/result-text.ts'
import { hasOversizedToolResults } from '../../../src/history/truncate-results.ts'
import { assistant, call, entriesOf, id, prepare, result, sketch, text, user } from '../../support/history.ts'

const decisionsEntry = (decisions: readonly StickyDecision[]): Partial<Entry> => ({
  type: 'custom',
  customType: VIEW_ENTRY_TYPE,
  data: stickyEntryData(decisions),
})
const round = (callId: string, output: string, more: object = {}) => [
  assistant([call(callId)], { timestamp: 1_000 }),
  result(callId, output, more),
]
const resultText = (messages: readonly unknown[], at: number) =>
  (messages[at] as ToolResultMessage).content.map((block) => (block.type === 'text' ? block.text : '')).join('')

describe('the constants of the original', () => {
  it('HARD_MAX_TOOL_RESULT_CHARS is 400 000', () => expect(HARD_MAX_TOOL_RESULT_CHARS).toBe(400_000))
  it('MAX_TOOL_RESULT_CONTEXT_SHARE is 30 %', () => expect(MAX_TOOL_RESULT_CONTEXT_SHARE).toBe(0.3))
  it('a text block keeps at least 2 000 characters', () => expect(MIN_KEEP_CHARS).toBe(2_000))
  it.each([
    [128_000, 153_600],
    [200_000, 240_000],
    [333_334, 400_000],
    [1_000, 1_200],
  ])('a window of %d tokens allows %d characters per result, four per token', (contextWindow, chars) => {
    expect(maxCharsPerResult(createBudget({ contextWindow }))).toBe(chars)
  })
  it('contextPruning has the defaults of cache-ttl', () => {
    expect(DEFAULT_PRUNING).toMatchObject({
      mode: 'cache-ttl',
      ttlMs: 300_000,
      keepLastAssistants: 3,
      softTrimRatio: 0.3,
      hardClearRatio: 0.5,
      minPrunableToolChars: 50_000,
      softTrim: { maxChars: 4_000, headChars: 1_500, tailChars: 1_500 },
      hardClear: { enabled: true, placeholder: '[Old tool result content cleared]' },
    })
  })
})

describe('cutting text', () => {
  const notice = (omitted: number): string => `[${omitted} omitted]`
  it('keeps head and tail, states the omitted characters exactly, and never exceeds its limit', () => {
    const whole = `start\n${'x'.repeat(5_000)}\nError: the end`
    const cut = cutMiddle(whole, 500, notice)
    expect(cut.length).toBeLessThanOrEqual(500)
    expect(cut.startsWith('start')).toBe(true)
    expect(cut.endsWith('Error: the end')).toBe(true)
    const omitted = Number(/\[(\d+) omitted\]/.exec(cut)?.[1])
    expect(cut.length - notice(omitted).length - 2 + omitted).toBe(whole.length)
  })
  it('never cuts a surrogate pair in half', () => {
    const whole = '😀'.repeat(1_000)
    for (let max = 0; max < 120; max++) {
      for (const cut of [cutMiddle(whole, max, notice), takeHead(whole, max), takeTail(whole, max)]) {
        expect(cut).not.toMatch(/\p{Surrogate}/u)
        expect(cut.length).toBeLessThanOrEqual(max)
      }
    }
  })
  it('holds the total over many blocks, each keeping 2 000 characters where there is room', () => {
    const blocks = [text('a'.repeat(3_000)), text('b'.repeat(500_000)), text('c'.repeat(1_000))]
    const cut = truncateResult(result('c', blocks) as ToolResultMessage, 20_000)
    const lengths = cut.content.map((block) => (block.type === 'text' ? block.text.length : 0))
    expect(lengths.reduce((a, b) => a + b, 0)).toBeLessThanOrEqual(20_000)
    expect(lengths[0]).toBeGreaterThanOrEqual(1_900)
    expect(lengths[2]).toBe(1_000)
    const thousand = Array.from({ length: 1_000 }, () => text('x'.repeat(3_000)))
    const all = truncateResult(result('c', thousand) as ToolResultMessage, 400_000)
    expect(
      all.content.reduce((sum, block) => sum + (block.type === 'text' ? block.text.length : 0), 0),
    ).toBeLessThanOrEqual(400_000)
  })
})

describe('truncateOversizedToolResults', () => {
  it('cuts a result above its share of the window and says how much is missing and how to get it', () => {
    const prepared = prepare(entriesOf(user('a'), ...round('c1', 'word '.repeat(100_000))), {
      budget: { contextWindow: 20_000 },
    })
    const shown = resultText(prepared.messages, 2)
    expect(shown.length).toBeLessThanOrEqual(24_000)
    expect(shown).toMatch(/\[… \d+ characters of this tool result are left out here.*by offset and limit/)
  })
  it('counts Chinese by its tokens, not four characters to one', () => {
    const prepared = prepare(entriesOf(user('a'), ...round('c1', '文'.repeat(50_000))), {
      budget: { contextWindow: 20_000 },
    })
    expect(resultText(prepared.messages, 2).length).toBeLessThan(8_000)
  })
  it('repeats its decision for ever, even when the calibration changes', () => {
    const entries = entriesOf(user('a'), ...round('c1', 'word '.repeat(20_000)))
    const first = prepare(entries, { budget: { contextWindow: 20_000 } })
    expect(first.decisions).toMatchObject([{ entry: 'e3', action: 'truncate' }])
    const again = [...entries, ...entriesOf(user('x'), user('x'), user('x'), decisionsEntry(first.decisions)).slice(3)]
    const second = prepare(again, { budget: { contextWindow: 20_000, calibration: 0.7 } })
    expect(resultText(second.messages, 2)).toBe(resultText(first.messages, 2))
    expect(second.decisions).toEqual([])
  })
  it('shortens the oldest results first when all together are too much, and the latest batch last', () => {
    const rounds = Array.from({ length: 8 }, (_, at) => round(`c${at}`, 'word '.repeat(2_000))).flat()
    const prepared = prepare(entriesOf(user('a'), ...rounds), {
      budget: { contextWindow: 20_000, pruning: { ...DEFAULT_PRUNING, mode: 'off' } },
      target: 'anthropic',
    })
    const lengths = prepared.messages.flatMap((message) =>
      message.role === 'toolResult' ? [JSON.stringify(message.content).length] : [],
    )
    expect(lengths[0]).toBeLessThan(4_000)
    expect(lengths.at(-1)).toBeGreaterThan(9_000)
  })
  it('tells whether large results are the likely cause of an overflow', () => {
    const budget = createBudget({ contextWindow: 1_000 })
    const small = { message: result('c', 'x') as ToolResultMessage }
    expect(hasOversizedToolResults([small], budget)).toBe(false)
    expect(
      hasOversizedToolResults([small, { message: result('c', 'x '.repeat(2_000)) as ToolResultMessage }], budget),
    ).toBe(true)
  })
})

describe('context pruning', () => {
  const old = (count: number, chars: number) =>
    Array.from({ length: count }, (_, at) => round(`c${at}`, 'abcdefg '.repeat(chars / 8))).flat()
  const recent = [...round('r1', 'one'), ...round('r2', 'two'), assistant('done', { timestamp: 1_000 })]
  const budget = { contextWindow: 100_000, maxAllToolResultsShare: 1 }
  const COLD = 1_000 + 300_001

  it('does nothing while the cache is warm', () => {
    const prepared = prepare(entriesOf(user('a'), ...old(6, 40_000), ...recent, user('b')), {
      budget,
      now: 1_000 + 300_000,
    })
    expect(prepared.report.changes.filter((change) => change.step === 'prune')).toEqual([])
  })
  it('trims old results to head and tail once it is cold, and spares the last three answers', () => {
    const entries = entriesOf(user('a'), ...old(6, 40_000), ...recent, user('b'))
    const prepared = prepare(entries, { budget, now: COLD })
    expect(resultText(prepared.messages, 2)).toMatch(
      /\.\.\.\n[\s\S]*\[Tool result trimmed: kept the first 1500 and the last 1500 of 40000 characters\.\]$/,
    )
    expect(sketch(prepared)).toContain('result r1: one')
    expect(prepared.decisions).toHaveLength(6)
  })
  it('clears the oldest when trimming is not enough', () => {
    const prepared = prepare(entriesOf(user('a'), ...old(60, 3_900), ...recent, user('b')), {
      budget: { ...budget, contextWindow: 60_000 },
      now: COLD,
    })
    expect(resultText(prepared.messages, 2)).toBe('[Old tool result content cleared]')
    expect(prepared.decisions.some((decision) => decision.action === 'clear')).toBe(true)
  })
  it('sends the pruned bytes again while the cache is warm', () => {
    const entries = entriesOf(user('a'), ...old(6, 40_000), ...recent, user('b'))
    const first = prepare(entries, { budget, now: COLD })
    const more = entriesOf(...entries.map(() => user('')), decisionsEntry(first.decisions)).slice(entries.length)
    const second = prepare([...entries, ...more], { budget, now: 1_001 })
    expect(JSON.stringify(second.messages)).toBe(JSON.stringify(first.messages))
  })
  it('leaves tools alone that the configuration denies, by glob and without case', () => {
    const pruning = { ...DEFAULT_PRUNING, denyTools: ['RE*'] }
    const prepared = prepare(entriesOf(user('a'), ...old(6, 40_000), ...recent, user('b')), {
      budget: { ...budget, pruning },
      now: COLD,
    })
    expect(prepared.decisions).toEqual([])
  })
})

describe('history limit', () => {
  const turns = (count: number) =>
    Array.from({ length: count }, (_, at) => [user(`q${at}`), assistant(`a${at}`)]).flat()
  it('keeps exactly the last N user turns, the new message included', () => {
    expect(sketch(prepare(entriesOf(...turns(5), user('now')), { historyLimit: 2 }))).toBe(
      'user: q4 | assistant: a4 | user: now',
    )
  })
  it('0 means no limit', () => {
    expect(prepare(entriesOf(...turns(5), user('now')), { historyLimit: 0 }).messages).toHaveLength(11)
  })
  it('keeps the summary of a compaction, whatever the limit', () => {
    const compaction = {
      type: 'compaction',
      summary: 'THE SUMMARY',
      firstKeptEntryId: id('e1'),
      tokensBefore: 1,
    } as const
    const prepared = prepare(entriesOf(user('q'), compaction, ...turns(5), user('now')), { historyLimit: 1 })
    expect(sketch(prepared)).toContain('THE SUMMARY')
    expect(sketch(prepared)).not.toContain('q4')
  })
  it('takes calls and results of a turn together', () => {
    const entries = entriesOf(user('q'), ...round('c1', 'old'), user('now'), ...round('c2', 'new'))
    expect(sketch(prepare(entries, { historyLimit: 1 }))).toBe('user: now | assistant: [call c2] | result c2: new')
  })
})

describe('a history larger than the window', () => {
  it('always fits, keeps the latest request and the summary, and says what was left out', () => {
    const compaction = {
      type: 'compaction',
      summary: 'THE SUMMARY',
      firstKeptEntryId: id('e9'),
      tokensBefore: 1,
    } as const
    const long = Array.from({ length: 40 }, (_, at) => [
      user(`question ${at} ${'word '.repeat(100)}`),
      assistant('answer '.repeat(100)),
    ]).flat()
    const prepared = prepare(entriesOf(compaction, ...long, user('the latest request')), {
      budget: { contextWindow: 4_000 },
    })
    expect(prepared.tokens.raw).toBeLessThanOrEqual(maxHistoryTokens(createBudget({ contextWindow: 4_000 })))
    expect(sketch(prepared)).toContain('THE SUMMARY')
    expect(sketch(prepared)).toContain('the latest request')
    expect(sketch(prepared)).toMatch(/\[\d+ earlier messages are left out here/)
    expect(prepared.tokens.wanted).toBeGreaterThan(prepared.tokens.count)
  })
  it.each([
    ['results', 60, 1],
    ['answers', 1, 60],
  ])(
    'never leaves a call without its results, nor results without their call, however large the %s are',
    (_, out, said) => {
      const rounds = Array.from({ length: 30 }, (__, at) => [
        assistant([text('word '.repeat(said)), call(`c${at}`)]),
        result(`c${at}`, 'word '.repeat(out)),
      ]).flat()
      for (const contextWindow of [700, 750, 800, 850, 900]) {
        const prepared = prepare(entriesOf(user('go'), ...rounds), { budget: { contextWindow } })
        const reasons = prepared.report.changes.map((change) => change.reason)
        expect(reasons).not.toContain('missing tool result')
        expect(reasons).not.toContain('result without a call becomes context')
        expect(reasons).toContain('longer than the context window')
      }
    },
  )
  it('does not move its boundary with every message', () => {
    const long = Array.from({ length: 40 }, (_, at) => [
      user(`question ${at} ${'word '.repeat(100)}`),
      assistant('answer '.repeat(100)),
    ]).flat()
    const entries = entriesOf(...long, user('one'))
    const first = prepare(entries, { budget: { contextWindow: 8_000 } })
    const next = entriesOf(
      ...entries.map(() => user('')),
      decisionsEntry(first.decisions),
      assistant('fine'),
      user('two'),
    ).slice(entries.length)
    const second = prepare([...entries, ...next], { budget: { contextWindow: 8_000 } })
    expect(second.decisions).toEqual([])
    expect(JSON.stringify(second.messages).startsWith(JSON.stringify(first.messages).slice(0, -1))).toBe(true)
  })
  it('shows a model with a larger window again what a smaller one could not take', () => {
    const long = Array.from({ length: 40 }, (_, at) => [
      user(`question ${at} ${'word '.repeat(100)}`),
      assistant('answer '.repeat(100)),
    ]).flat()
    const entries = entriesOf(...long, user('one'))
    const { decisions } = prepare(entries, { budget: { contextWindow: 8_000 } })
    const stored = entriesOf(...entries.map(() => user('')), decisionsEntry(decisions)).slice(entries.length)
    expect(prepare([...entries, ...stored], { budget: { contextWindow: 200_000 } }).messages).toHaveLength(81)
    expect(prepare([...entries, ...stored], { budget: { contextWindow: 8_000 } }).messages.length).toBeLessThan(80)
  })
  it('fits the bytes a provider takes, also where its window would take more', () => {
    const long = Array.from({ length: 90 }, (_, at) => round(`c${at}`, '\u0001'.repeat(100_000))).flat()
    const prepared = prepare(entriesOf(user('a'), ...long, user('b')), { budget: { contextWindow: 1_000_000_000 } })
    const bytes = Buffer.byteLength(JSON.stringify(prepared.messages))
    expect(bytes).toBeLessThan(TRANSCRIPT_POLICIES.anthropic.limits.maxRequestBytes)
    expect(prepared.report.changes).toContainEqual(
      expect.objectContaining({ step: 'fit', reason: 'old result cleared', entry: 'e3' }),
    )
    expect(sketch(prepared)).toContain('user: a')
  })
  it('never leaves out the message to answer, although an earlier request did', () => {
    const leftOut = decisionsEntry([{ entry: id('e1'), action: 'leave-out' }])
    expect(sketch(prepare(entriesOf(user('now the latest again'), leftOut)))).toBe('user: now the latest again')
  })
  it('leaves out what was left out, although it was cleared as well', () => {
    const decisions = decisionsEntry([
      { entry: id('e2'), action: 'leave-out' },
      { entry: id('e2'), action: 'clear' },
    ])
    const prepared = prepare(
      entriesOf(user('a'), result('gone', 'x '.repeat(300)), assistant('b'), user('c'), decisions),
    )
    expect(sketch(prepared)).not.toContain('Result of the tool')
    expect(prepared.report.changes).toContainEqual(
      expect.objectContaining({ step: 'fit', action: 'dropped', entry: 'e2' }),
    )
  })
  it('lets what stands in for a missing result alone, because no decision could name it', () => {
    const calls = assistant([call('c1'), call('c2')], { stopReason: 'toolUse' })
    const entries = entriesOf(user('a'), calls, result('c2', 'x '.repeat(300)), assistant('b'), user('c'))
    const prepared = prepare(entries, { budget: { contextWindow: 1_000, maxAllToolResultsShare: 0.01 } })
    expect(sketch(prepared)).toContain('result c1: [clew] missing tool result')
    expect(sketch(prepared)).toContain('result c2: [Old tool result content cleared]')
  })
  it('cuts even a single message that is larger than the window', () => {
    const prepared = prepare(entriesOf(user(`begin ${'word '.repeat(50_000)} end`)), {
      budget: { contextWindow: 2_000 },
    })
    expect(prepared.tokens.raw).toBeLessThanOrEqual(1_500)
    expect(sketch(prepared)).toMatch(/^user: begin[\s\S]*end$/)
  })
})
