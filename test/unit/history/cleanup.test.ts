import { describe, expect, it } from 'vitest'
import type { Entry } from '../../../src/core/entry.ts'
import { createTokenCounter } from '../../../src/core/token-counter.ts'
import { createBudget } from '../../../src/history/budget.ts'
import { planCleanup, uncleanedSteps, type CleanupOptions, type CleanupPlan } from '../../../src/history/cleanup.ts'
import { CLEANUP_ENTRY_TYPE, latestCleanup, RESTORE_ENTRY_TYPE } from '../../../src/history/cleanup-records.ts'
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
  return [...entries, { ...base, type: 'custom', customType: CLEANUP_ENTRY_TYPE, data: made.record }]
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
    expect(one?.rounds.map((round) => [round.answer, round.results.map((each) => each.id)])).toEqual([
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
    expect(made).toMatchObject({ kind: 'clean', record: { stepId: 's1', hidden: ['e2', 'e3', 'e4', 'e5'] } })
    const after = prepare([...applied(entries, made), ...entriesOf(user('next'))])
    expect(sketch(after)).toBe(
      'user: write a + [2 rounds of work on this (2 tool calls, 1 failed) left the context. Files written: a.py. Commands run: python. ' +
        'Failed: exec: SyntaxError: unexpected EOF. recall_rounds {"stepId":"s1"} shows them.] | assistant: a is done: it prints one. | user: next',
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
      record: { hidden: ['e2', 'e3'] },
    })
    const seen = sketch(prepare(applied(entries, made)))
    expect(seen).toContain('[call s1b]')
    expect(seen).toContain('The step ended without a final answer: its last round is kept.')
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
    const tiny = entriesOf(
      { type: 'message', message: user('hi'), stepId: 's1' },
      { type: 'message', message: assistant([call('c')]), stepId: 's1' },
      { type: 'message', message: result('c', '1'), stepId: 's1' },
      { type: 'message', message: assistant('hello'), stepId: 's1' },
    )
    expect(plan(tiny)).toMatchObject({ kind: 'skipped', reason: 'nothing to gain' })
    const entries = entriesOf(...step('s1', 'a'))
    expect(plan(applied(entries, plan(entries)))).toMatchObject({ kind: 'skipped', reason: 'already cleaned' })
  })
  it('waits, when it minds the cache, while breaking a warm one would cost more than it saves', () => {
    const long = { type: 'message', message: user('context '.repeat(20_000)), stepId: 's0' } as const
    const answer = {
      type: 'message',
      message: assistant('answer '.repeat(4_000), { timestamp: 2_000 }),
      stepId: 's1',
    } as never
    const entries = entriesOf(
      long,
      { type: 'message', message: assistant('ok'), stepId: 's0' } as never,
      ...step('s1', 'a').slice(0, -1),
      answer,
    )
    const input = {
      target: TARGETS.anthropic,
      budget: createBudget({ contextWindow: 200_000 }),
      historyLimit: 0,
      now: 3_000,
    }
    expect(plan(entries, { policy: 'cache-aware', input })).toMatchObject({
      kind: 'skipped',
      reason: 'the cache is warm',
    })
    expect(plan(entries, { policy: 'always', input }).kind).toBe('clean')
    expect(plan(entries, { policy: 'cache-aware', input: { ...input, now: 10_000_000 } }).kind).toBe('clean')
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
