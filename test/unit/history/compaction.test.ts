import { describe, expect, it } from 'vitest'
import type { Entry } from '../../../src/core/entry.ts'
import { createBudget, exceedsWindowWithoutHistory, shouldCompact } from '../../../src/history/budget.ts'
import {
  DEFAULT_COMPACTION,
  planCompaction,
  runCompaction,
  type CompactionPlan,
} from '../../../src/history/compaction.ts'
import { prepareHistory, type HistoryInput } from '../../../src/history/prepare.ts'
import { assistant, call, entriesOf, id, result, sketch, TARGETS, user } from '../../support/history.ts'

const inputFor = (entries: readonly Entry[], contextWindow = 20_000): HistoryInput => ({
  entries,
  target: TARGETS.anthropic,
  budget: createBudget({ contextWindow }),
  historyLimit: 0,
  now: 3_000,
})
const never = new AbortController().signal
const settings = { ...DEFAULT_COMPACTION, keepRecentTokens: 2_000 }
const turns = (count: number) =>
  Array.from({ length: count }, (_, at) => [
    user(`question ${at}: ${'word '.repeat(200)}`),
    assistant('answer '.repeat(300)),
  ]).flat()
const story = entriesOf(...turns(30), user('the latest request'))

function planned(input: HistoryInput): CompactionPlan {
  const plan = planCompaction(input, settings)
  if (plan === undefined) throw new Error('nothing planned')
  return plan
}

const wanting = (wanted: number) => ({ count: 0, raw: 0, estimated: true as const, wanted })

describe('shouldCompact', () => {
  it('is true when the history exceeds its share of the window, which is half', () => {
    expect(DEFAULT_COMPACTION).toMatchObject({ mode: 'safeguard', maxHistoryShare: 0.5, keepRecentTokens: 20_000 })
    const input = { entries: [], budget: createBudget({ contextWindow: 100_000 }) }
    expect(shouldCompact(wanting(50_000), input, DEFAULT_COMPACTION)).toBe(false)
    expect(shouldCompact(wanting(50_001), input, DEFAULT_COMPACTION)).toBe(true)
    expect(shouldCompact(wanting(50_001), input, { ...DEFAULT_COMPACTION, mode: 'off' })).toBe(false)
  })
  it('keeps so much free for the answer as is configured, at most a quarter of the window', () => {
    const budget = createBudget({ contextWindow: 100_000, reservedTokens: 5_000 })
    const isDue = (wanted: number, reserveTokens: number): boolean =>
      shouldCompact(
        wanting(wanted),
        { entries: [], budget },
        { ...DEFAULT_COMPACTION, maxHistoryShare: 1, reserveTokens },
      )
    expect([isDue(95_000, 0), isDue(95_001, 0)]).toEqual([false, true])
    expect([isDue(85_000, 15_000), isDue(85_001, 15_000)]).toEqual([false, true])
    expect([isDue(75_000, 80_000), isDue(75_001, 80_000)]).toEqual([false, true])
  })
  it('is true only when nothing else helps after somebody took a summary back', () => {
    const compaction = { type: 'compaction', summary: 'S', firstKeptEntryId: id('e1'), tokensBefore: 1 } as const
    const undo = { ...compaction, details: { undoes: id('e2') } }
    const budget = createBudget({ contextWindow: 100_000 })
    const room = budget.contextWindow - budget.reservedTokens - budget.fixedTokens
    const input = { entries: entriesOf(user('hi'), compaction, undo), budget }
    expect(shouldCompact(wanting(room), input, DEFAULT_COMPACTION)).toBe(false)
    expect(shouldCompact(wanting(room + 1), input, DEFAULT_COMPACTION)).toBe(true)
    const again = { entries: entriesOf(user('hi'), compaction, undo, compaction), budget }
    expect(shouldCompact(wanting(50_001), again, DEFAULT_COMPACTION)).toBe(true)
  })
  it('knows when no compaction can help', () => {
    expect(exceedsWindowWithoutHistory(createBudget({ contextWindow: 8_000, fixedTokens: 7_000 }))).toBe(true)
    expect(exceedsWindowWithoutHistory(createBudget({ contextWindow: 8_000 }))).toBe(false)
  })
})

describe('planCompaction', () => {
  it('keeps recent turns word for word and cuts at the start of one', () => {
    const plan = planned(inputFor(story))
    const kept = story.findIndex((entry) => entry.id === plan.firstKeptEntryId)
    expect(story[kept]).toMatchObject({ message: { role: 'user' } })
    expect(kept).toBeGreaterThan(50)
    expect(plan.facts.latestRequest).toBe('')
  })
  it('never cuts between a call and its result, and takes the latest request along when it lies before the cut', () => {
    const rounds = Array.from({ length: 40 }, (_, at) => [
      assistant([call(`c${at}`)]),
      result(`c${at}`, 'word '.repeat(300)),
    ]).flat()
    const entries = entriesOf(user('do it all'), ...rounds)
    const plan = planned(inputFor(entries))
    expect(entries.find((entry) => entry.id === plan.firstKeptEntryId)).toMatchObject({
      message: { role: 'assistant' },
    })
    expect(plan.facts.latestRequest).toBe('do it all')
  })
  it('splits what it summarises into chunks that fit the model', () => {
    const plan = planned(inputFor(story))
    expect(plan.chunks.length).toBeGreaterThan(1)
    for (const chunk of plan.chunks) expect(chunk.tokens).toBeLessThan(20_000 * 0.4)
  })
  it('plans nothing when there is nothing to summarise', () => {
    expect(planCompaction(inputFor(entriesOf(user('hi'))), settings)).toBeUndefined()
    expect(planCompaction(inputFor([]), settings)).toBeUndefined()
  })
  it('keeps lists of files and tool failures out of the model’s hands, over several compactions', () => {
    const earlier = {
      type: 'compaction',
      summary: 'S\n\n<modified-files>\nold.ts\n</modified-files>',
      firstKeptEntryId: id('e2'),
      tokensBefore: 1,
    } as const
    const details = { filesWritten: ['new.ts'], filesRead: ['read.ts'], exitCode: 2 }
    const failed = result('c', 'boom\nbang', { isError: true, details, toolName: 'exec' })
    const entries = entriesOf(earlier, user('go'), assistant([call('c', 'exec')]), failed, ...turns(20), user('latest'))
    expect(planned(inputFor(entries)).facts).toMatchObject({
      modifiedFiles: ['new.ts', 'old.ts'],
      readFiles: ['read.ts'],
      toolFailures: ['exec: exitCode=2 boom bang'],
    })
  })
})

describe('runCompaction', () => {
  it('gives each chunk the summary so far and ends with an entry that makes the history smaller', async () => {
    const input = inputFor(story)
    const prompts: string[] = []
    const done = await runCompaction(
      planned(input),
      input,
      async (prompt) => `summary ${prompts.push(prompt.user)}`,
      never,
    )
    expect(prompts[1]).toContain('<summary>\nsummary 1\n</summary>')
    expect(done).toMatchObject({
      kind: 'compacted',
      draft: { type: 'compaction', summary: `summary ${prompts.length}` },
    })
    if (done.kind !== 'compacted') throw new Error('not compacted')
    expect(done.tokensAfter).toBeLessThan(done.tokensBefore)
    const entry = { ...done.draft, id: id('k'), parentId: null, timestamp: '2026-01-01T00:00:00.000Z' } as Entry
    const after = prepareHistory({ ...input, entries: [...story, entry] })
    expect(sketch(after)).toContain('the latest request')
    expect(sketch(after)).toContain(`summary ${prompts.length}`)
  })
  it.each([
    ['the summary failed', () => Promise.reject(new Error('overloaded'))],
    ['the summary is empty', () => Promise.resolve(' ')],
    ['the summary is larger than what it replaces', () => Promise.resolve('word '.repeat(50_000))],
  ])('is cancelled when %s, and nothing has changed', async (reason, summarize) => {
    const input = inputFor(story)
    expect(await runCompaction(planned(input), input, summarize, never)).toMatchObject({ kind: 'cancelled', reason })
  })
  it('is cancelled when the history would not get smaller', async () => {
    const input = inputFor(story)
    const plan = { ...planned(input), tokensBefore: 10 }
    expect(await runCompaction(plan, input, async () => 'short', never)).toMatchObject({
      kind: 'cancelled',
      reason: 'the history would not get smaller',
    })
  })
  it('throws the reason when it is aborted', async () => {
    const input = inputFor(story)
    const abort = new AbortController()
    const failing = () => {
      abort.abort(new Error('stop'))
      return Promise.reject(new Error('closed'))
    }
    await expect(runCompaction(planned(input), input, failing, abort.signal)).rejects.toThrow('stop')
  })
})
