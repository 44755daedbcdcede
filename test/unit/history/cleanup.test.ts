import { describe, expect, it } from 'vitest'
import type { Entry } from '../../../src/core/entry.ts'
import { createTokenCounter } from '../../../src/core/token-counter.ts'
import { createBudget } from '../../../src/history/budget.ts'
import { planCleanup, uncleanedSteps, type CleanupOptions, type CleanupPlan } from '../../../src/history/cleanup.ts'
import { cachePricesOf } from '../../../src/history/cleanup-savings.ts'
import { DEFAULT_RULES, type CleanupRules } from '../../../src/history/cleanup-strategy.ts'
import { CLEANUP_ENTRY_TYPE, latestCleanup, RESTORE_ENTRY_TYPE } from '../../../src/history/view-records.ts'
import { deriveSteps } from '../../../src/history/derive-steps.ts'
import { recallRounds } from '../../../src/history/recall-rounds.ts'
import { assistant, call, entriesOf, id, prepare, result, sketch, TARGETS, text, user } from '../../support/history.ts'

const counter = createTokenCounter()

/** The seed's task: an instruction, a script that fails twice, the fix, the answer. */
const step = (stepId: string, name: string) => {
  const of = (message: object, round?: number): Partial<Entry> =>
    ({ type: 'message', message, stepId, ...(round === undefined ? {} : { round }) }) as never
  const failed = { isError: true, toolName: 'exec' }
  return [
    of(user(`write ${name}`)),
    of(assistant([text('first try'), call(`${stepId}a`, 'exec', { code: 'print(x '.repeat(40) })]), 0),
    of(
      result(
        `${stepId}a`,
        `Traceback (most recent call last)\n${'  File "x.py", line 1\n'.repeat(20)}SyntaxError: unexpected EOF`,
        failed,
      ),
      0,
    ),
    of(assistant([text('second try'), call(`${stepId}b`, 'write', { content: 'print(1) '.repeat(60) })]), 1),
    of(
      result(`${stepId}b`, `written ${'ok '.repeat(100)}`, {
        details: { filesWritten: [`${name}.py`], commandsRun: ['python'] },
      }),
      1,
    ),
    of(assistant(`${name} is done: it prints one.`, { timestamp: 2_000 }), 2),
  ]
}

function plan(entries: readonly Entry[], more: Partial<CleanupOptions> = {}): CleanupPlan {
  return planCleanup(entries, {
    stepId: 's1',
    outcome: 'completed',
    policy: 'always',
    minTokens: 0,
    input: {
      target: TARGETS.anthropic,
      budget: createBudget({ contextWindow: 200_000 }),
      historyLimit: 0,
      now: 10_000_000,
    },
    count: (messages) => counter.countMessages(messages, TARGETS.anthropic),
    ...more,
  })
}

function applied(entries: readonly Entry[], made: CleanupPlan, own = 'k1'): readonly Entry[] {
  if (made.kind === 'skipped') throw new Error(made.reason)
  const base = { id: id(own), parentId: null, timestamp: '2026-01-01T00:00:00.000Z' }
  return [
    ...entries,
    ...made.records.map((data, at): Entry => ({
      ...base,
      id: id(at === 0 ? own : `${own}-${at}`),
      type: 'custom',
      customType: CLEANUP_ENTRY_TYPE,
      data,
    })),
  ]
}

const restore = (cleanup: string, own = 'r1'): Entry => ({
  type: 'custom',
  customType: RESTORE_ENTRY_TYPE,
  data: { cleanup },
  id: id(own),
  parentId: null,
  timestamp: '2026-01-01T00:00:00.000Z',
})

describe('deriveSteps', () => {
  it('reads instruction, rounds, results and final answer off the entries', () => {
    const [one] = deriveSteps(entriesOf(...step('s1', 'a')))
    expect(one).toMatchObject({ id: 's1', instruction: 'e1', finalResponse: 'e6' })
    expect(one?.rounds.map((round) => [round.llmResponse.id, round.toolCallResults.map((each) => each.id)])).toEqual([
      ['e2', ['e3']],
      ['e4', ['e5']],
      ['e6', []],
    ])
  })
  it('starts a step with each user message in a transcript of another program', () => {
    const steps = deriveSteps(entriesOf(user('a'), assistant('b'), user('c')))
    expect(steps.map((each) => [each.id, each.finalResponse])).toEqual([
      ['e1', 'e2'],
      ['e3', undefined],
    ])
  })
})

describe('planCleanup', () => {
  it('hides what lies between instruction and final answer and leaves a note in the instruction', () => {
    const entries = entriesOf(...step('s1', 'a'))
    const made = plan(entries)
    expect(made).toMatchObject({ kind: 'clean', records: [{ stepId: 's1', hidden: ['e2', 'e3', 'e4', 'e5'] }] })
    const after = prepare([...applied(entries, made), ...entriesOf(user('next'))])
    expect(sketch(after)).toBe(
      'user: write a + [2 rounds of tool use for this request were removed from context. Files written: a.py. Commands run: python. ' +
        'Failed: exec: SyntaxError: unexpected EOF. Call recall_rounds {"stepId":"s1"} to see them.] | assistant: a is done: it prints one. | user: next',
    )
  })
  it('saves at least 37.7 % on a task of the kind the seed shows, and the numbers add up', () => {
    const made = plan(entriesOf(...step('s1', 'a')))
    const { tokensBefore, tokensSaved, tokensRemaining, cleanedMessages, remainingMessages, estimated } = made.stats
    expect(tokensBefore - tokensRemaining).toBe(tokensSaved)
    expect(tokensSaved / tokensBefore).toBeGreaterThan(0.377)
    expect([cleanedMessages, remainingMessages, estimated]).toEqual([4, 2, true])
  })
  it('touches exactly the finished step: what earlier steps kept stays kept', () => {
    const first = entriesOf(...step('s1', 'a'), ...step('s2', 'b'))
    const afterFirst = applied(first, plan(first))
    const made = plan(afterFirst, { stepId: 's2' })
    const seen = sketch(prepare([...applied(afterFirst, made, 'k2'), ...entriesOf(user('next'))]))
    for (const kept of ['write a', 'a is done', 'write b', 'b is done']) expect(seen).toContain(kept)
    expect(seen).not.toContain('first try')
  })
  it('can be restored, latest first, and cleaned again', () => {
    const entries = entriesOf(...step('s1', 'a'))
    const cleaned = applied(entries, plan(entries))
    expect(latestCleanup(cleaned)?.id).toBe('k1')
    const restored = [...cleaned, restore('k1')]
    expect(sketch(prepare(restored))).toBe(sketch(prepare(entries)))
    expect(latestCleanup(restored)).toBeUndefined()
    expect(plan(restored).kind).toBe('clean')
  })
  it('keeps the last round and what worked when there is no final answer, and says so', () => {
    const entries = entriesOf(...step('s1', 'a').slice(0, -1))
    const made = plan(entries, { outcome: 'round-limit' })
    expect(made).toMatchObject({
      kind: 'clean',
      reason: 'no final answer (round-limit): failed rounds only',
      records: [{ hidden: ['e2', 'e3'] }],
    })
    const seen = sketch(prepare(applied(entries, made)))
    expect(seen).toContain('[call s1b]')
    expect(seen).toContain('The step ended without a final answer: its last round is kept.')
  })
  it.each([
    ['nothing', []],
    ['a blank', [text(' ')]],
  ])('keeps the last round that has content or results when a refused request after it says %s', (_, content) => {
    const [instruction, first, failure] = step('s1', 'a')
    const refused = assistant(content, { stopReason: 'error', errorMessage: 'refused' })
    const entries = entriesOf(instruction!, first!, failure!, {
      type: 'message',
      message: refused,
      stepId: 's1',
    } as never)
    expect(plan(entries, { outcome: 'failed' })).toMatchObject({ kind: 'skipped', reason: 'nothing to hide' })
  })
  it('never hides what a user said in the middle', () => {
    const [instruction, ...rest] = step('s1', 'a')
    const steered = entriesOf(
      instruction!,
      ...rest.slice(0, 2),
      { type: 'message', message: user('and be quick'), stepId: 's1' } as never,
      ...rest.slice(2),
    )
    const made = plan(steered)
    expect(sketch(prepare(applied(steered, made)))).toContain('and be quick')
  })
  it.each([
    ['unknown step', { stepId: 'nobody' }],
    ['below the minimum', { minTokens: 1_000_000 }],
  ])('is skipped with the reason "%s"', (reason, more) => {
    const made = plan(entriesOf(...step('s1', 'a')), more)
    expect(made).toMatchObject({ kind: 'skipped', reason, stats: { tokensSaved: 0, cleanedMessages: 0 } })
    expect(made.stats.tokensBefore).toBe(made.stats.tokensRemaining)
  })
  it('is skipped when there is nothing to hide, nothing to gain, or it was done already', () => {
    const short = entriesOf(
      { type: 'message', message: user('hi'), stepId: 's1' },
      { type: 'message', message: assistant('hello'), stepId: 's1' },
    )
    expect(plan(short)).toMatchObject({ kind: 'skipped', reason: 'nothing to hide' })
    const files = Array.from({ length: 8 }, (_, at) => `a/long/path/to/some/file-number-${at}.txt`)
    const telling = entriesOf(
      { type: 'message', message: user('hi'), stepId: 's1' },
      { type: 'message', message: assistant([call('c')]), stepId: 's1' },
      { type: 'message', message: result('c', '1', { details: { filesWritten: files } }), stepId: 's1' },
      { type: 'message', message: assistant('hello'), stepId: 's1' },
    )
    expect(plan(telling)).toMatchObject({ kind: 'skipped', reason: 'nothing to gain' })
    const entries = entriesOf(...step('s1', 'a'))
    expect(plan(applied(entries, plan(entries)))).toMatchObject({ kind: 'skipped', reason: 'already cleaned' })
  })
})

/** A step with one round of so few words that hiding it hardly pays. */
const tiny = (stepId: string, at: number) => {
  const of = (message: object): Partial<Entry> => ({ type: 'message', message, stepId }) as never
  return [
    of(user('and?')),
    of(assistant([call(`${stepId}c`, 'time')], { timestamp: at })),
    of(result(`${stepId}c`, 'word '.repeat(14), { details: { filesWritten: ['a.txt'] } })),
    of(assistant('one', { timestamp: at })),
  ]
}
const deferred = (stepId: string): Partial<Entry> =>
  ({ type: 'custom', customType: 'clew.cleanup_deferred', data: { stepId } }) as never
const at = (now: number): CleanupOptions['input'] => ({
  target: TARGETS.anthropic,
  budget: createBudget({ contextWindow: 200_000 }),
  historyLimit: 0,
  now,
})

describe('a cleanup that minds the cache', () => {
  const warm = { policy: 'cache-aware', input: at(3_000) } as const
  const cold = { policy: 'cache-aware', input: at(10_000_000) } as const

  it('waits while it would cost more in cache than it saves, and does not where the provider has none', () => {
    const entries = entriesOf(...tiny('s1', 2_000))
    expect(plan(entries, warm)).toMatchObject({ kind: 'skipped', reason: 'the cache is warm' })
    expect(plan(entries, { ...warm, policy: 'always' })).toMatchObject({ kind: 'clean' })
    expect(plan(entries, { ...warm, policy: 'always' }).stats.netTokensSaved).toBeLessThan(0)
    expect(plan(entries, cold).kind).toBe('clean')
    expect(plan(entries, { ...warm, prices: cachePricesOf({ input: 2, cacheRead: 0, cacheWrite: 0 }) }).kind).toBe(
      'clean',
    )
  })

  it('cleans at once where it pays: nothing behind the step is in the cache yet', () => {
    const made = plan(entriesOf(user('context '.repeat(2_000)), assistant('ok'), ...step('s1', 'a')), warm)
    expect(made).toMatchObject({ kind: 'clean', stats: { netRequests: 5 } })
    expect(made.stats.netTokensSaved).toBeGreaterThan(0)
    expect(made.stats.netTokensSaved).toBeLessThan(made.stats.tokensSaved)
  })

  it('takes along what was put off once the cache is cold, in one cleanup whose records add up', () => {
    const entries = entriesOf(
      ...tiny('s1', 1_000),
      deferred('s1'),
      ...tiny('s2', 2_000),
      deferred('s2'),
      ...tiny('s3', 2_000),
    )
    const made = plan(entries, { ...cold, stepId: 's3' })
    if (made.kind === 'skipped') throw new Error(made.reason)
    expect(made.records.map(({ stepId }) => stepId)).toEqual(['s1', 's2', 's3'])
    expect(made.stats.cleanedMessages).toBe(6)
    const { tokensBefore, tokensRemaining } = made.stats
    expect(made.records[0]?.tokensBefore).toBe(tokensBefore)
    expect(made.records.map((each) => each.tokensAfter)).toEqual([
      ...made.records.slice(1).map((each) => each.tokensBefore),
      tokensRemaining,
    ])
  })

  it('leaves alone what was put off far behind while the cache is warm, and what a person has restored', () => {
    const filler = [user('much '.repeat(4_000)), assistant('ok', { timestamp: 2_000 })]
    const entries = entriesOf(...tiny('s1', 1_000), deferred('s1'), ...filler, ...step('s2', 'b'))
    const made = plan(entries, { ...warm, stepId: 's2' })
    expect(made).toMatchObject({ kind: 'clean', records: [{ stepId: 's2' }] })
    const restored = [...applied(entries, plan(entries, cold)), restore('k1')]
    expect(plan(restored, { ...cold, stepId: 's2' })).toMatchObject({ kind: 'clean', records: [{ stepId: 's2' }] })
  })
})

describe('cachePricesOf', () => {
  it.each([
    [
      { input: 3, cacheRead: 0.3, cacheWrite: 3.75 },
      { read: 0.1, written: 1.25 },
    ],
    [
      { input: 1.25, cacheRead: 0.125, cacheWrite: 0 },
      { read: 0.1, written: 1 },
    ],
    [
      { input: 0.5, cacheRead: 0, cacheWrite: 0 },
      { read: 1, written: 1 },
    ],
    [
      { input: 0, cacheRead: 0, cacheWrite: 0 },
      { read: 0.1, written: 1.25 },
    ],
  ])('of %j are %j', (prices, relative) => {
    const { read, written } = cachePricesOf(prices)
    expect(read).toBeCloseTo(relative.read)
    expect(written).toBeCloseTo(relative.written)
  })
})

describe('strategies', () => {
  const entries = entriesOf(...step('s1', 'a'))
  const hidden = (rules: Partial<CleanupRules>): readonly string[] => {
    const made = plan(entries, { rules: { ...DEFAULT_RULES, ...rules } })
    return made.kind === 'clean' ? made.records.flatMap((record) => record.hidden) : []
  }
  it('hide everything in the middle, only what failed, or nothing', () => {
    expect(hidden({})).toEqual(['e2', 'e3', 'e4', 'e5'])
    expect(hidden({ strategy: 'summarise' })).toEqual(['e2', 'e3', 'e4', 'e5'])
    expect(hidden({ strategy: 'errors-only' })).toEqual(['e2', 'e3'])
    expect(hidden({ strategy: 'none' })).toEqual([])
  })
  it('keep rounds of named tools and the last ones before the answer', () => {
    expect(hidden({ keepTools: ['write'] })).toEqual(['e2', 'e3'])
    expect(hidden({ keepRounds: 1 })).toEqual(['e2', 'e3'])
    expect(hidden({ keepRounds: 9 })).toEqual([])
  })
})

describe('a note', () => {
  it('is left out where there is nothing to recall', () => {
    const entries = entriesOf(
      { type: 'message', message: user('hi'), stepId: 's1' },
      { type: 'message', message: assistant([], { stopReason: 'error' }), stepId: 's1' },
      { type: 'message', message: assistant('hello'), stepId: 's1' },
    )
    const made = plan(entries)
    expect(made).toMatchObject(made.kind === 'clean' ? { records: [{ note: '' }] } : { reason: 'nothing to gain' })
  })
})

describe('after cleanups', () => {
  it('hidden rounds can be recalled as text, all or of one step', () => {
    const entries = entriesOf(...step('s1', 'a'))
    const cleaned = applied(entries, plan(entries))
    const recalled = recallRounds(cleaned, { maxChars: 100_000 })
    expect(recalled).toContain('call of exec')
    expect(recalled).toContain('SyntaxError: unexpected EOF')
    expect(recallRounds(cleaned, { stepId: 'other', maxChars: 100 })).toBeUndefined()
    expect(recallRounds(entries, { maxChars: 100 })).toBeUndefined()
    expect(recallRounds(cleaned, { maxChars: 300 })?.length).toBeLessThanOrEqual(300)
  })
  it('uncleaned steps are those with something left to hide', () => {
    const entries = entriesOf(...step('s1', 'a'), ...step('s2', 'b'))
    expect(uncleanedSteps(entries)).toEqual(['s1', 's2'])
    expect(uncleanedSteps(applied(entries, plan(entries)))).toEqual(['s2'])
    const unfinished = entriesOf(...step('s1', 'a').slice(0, -1))
    expect(uncleanedSteps(unfinished)).toEqual([])
    expect(uncleanedSteps(entriesOf(...step('s1', 'a').slice(0, -1), ...step('s2', 'b')))).toEqual(['s1', 's2'])
    expect(plan(unfinished)).toMatchObject({ reason: 'no final answer (interrupted): failed rounds only' })
  })
  it('ten tool-heavy steps keep less than half of their tokens', () => {
    let entries = entriesOf(...Array.from({ length: 10 }, (_, at) => step(`s${at}`, `task${at}`)).flat())
    const before = counter.countMessages(prepare(entries).messages, TARGETS.anthropic).count
    for (let at = 0; at < 10; at++) entries = applied(entries, plan(entries, { stepId: `s${at}` }), `k${at}`)
    const after = counter.countMessages(prepare(entries).messages, TARGETS.anthropic).count
    expect(1 - after / before).toBeGreaterThan(0.5)
  })
})
