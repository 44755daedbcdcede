import { describe, expect, it } from 'vitest'
import type { Entry } from '../../../src/core/entry.ts'
import { TRANSCRIPT_POLICIES } from '../../../src/core/history-rules.ts'
import type { Message } from '../../../src/core/message.ts'
import { rememberPath } from '../../../src/core/path-memory.ts'
import { createBudget } from '../../../src/history/budget.ts'
import { prepareHistory, type HistoryInput } from '../../../src/history/prepare.ts'
import { ENDS_BY_COUNT } from '../../support/ends-by-count.ts'
import {
  assistant,
  call,
  entriesOf,
  id,
  modelFields,
  PNG_1PX,
  result,
  saidBy,
  TARGETS,
  text,
  user,
} from '../../support/history.ts'

type Draft = Message | Partial<Entry>

/** Four entries each, so that turn 0 is e1 to e4. */
const turn = (at: number, found = `found ${at}`): readonly Draft[] => [
  user(`question ${at}`),
  assistant([call(`c${at}`)]),
  result(`c${at}`, found),
  assistant(`answer ${at}`),
]
const turns = (count: number, found?: string): readonly (readonly Draft[])[] =>
  Array.from({ length: count }, (_, at) => turn(at, found))
/** The turns with one of them in another form. */
const withTurn = (at: number, drafts: readonly Draft[], count = 12): readonly (readonly Draft[])[] =>
  turns(count).with(at, drafts)

const hiding = (...hidden: readonly string[]): Draft => ({
  type: 'custom',
  customType: 'clew.cleanup',
  data: { stepId: 's', hidden, note: '[note]', tokensBefore: 9, tokensAfter: 3, estimated: true },
})
const restoring = (cleanup: string): Draft => ({ type: 'custom', customType: 'clew.restore', data: { cleanup } })
const deciding = (action: 'clear' | 'leave-out', ...entries: readonly string[]): Draft => ({
  type: 'custom',
  customType: 'clew.view',
  data: { decisions: entries.map((entry) => ({ entry, action })) },
})
const editing = (target: string, words?: string): Draft => ({
  type: 'context_edit',
  targetId: id(target),
  replacement: words === undefined ? null : { content: words },
})
const summary = (kept: string, more: object = {}): Draft => ({
  type: 'compaction',
  summary: 'What was said.',
  firstKeptEntryId: id(kept),
  tokensBefore: 9,
  ...more,
})
const reasoning = (name: string): Draft => {
  const item = { type: 'reasoning', id: name, summary: [], encrypted_content: 'x' }
  const block = { type: 'thinking', thinking: '', thinkingSignature: JSON.stringify(item) } as const
  return assistant([block, text('answer')], modelFields('responses'))
}
const picture = { type: 'image', data: PNG_1PX, mimeType: 'image/png' } as const

type Settings = { readonly [Field in keyof Omit<HistoryInput, 'entries'>]?: HistoryInput[Field] }

const window = (contextWindow: number, more: object = {}) => ({
  budget: createBudget({ contextWindow, reservedTokens: 0, ...more }),
})
const bytes = (maxRequestBytes: number): Settings => {
  const policy = TRANSCRIPT_POLICIES.anthropic
  return { policy: { ...policy, limits: { ...policy.limits, maxRequestBytes } } }
}

const USUAL = { target: TARGETS.anthropic, historyLimit: 0, now: 3, ...window(40_000) } as const

interface Case {
  readonly name: string
  readonly past?: readonly (readonly Draft[])[]
  readonly then?: readonly Draft[]
  readonly settings?: Settings
  /** From the last request on. */
  readonly later?: Settings
  /** The beginning is of no use for the last request. */
  readonly whole?: boolean
}

const LONG = 'word '.repeat(1_300)
const CASES: readonly Case[] = [
  { name: 'goes on' },
  { name: 'has gone cold, with much to prune', past: turns(12, LONG), later: { now: 10_000_000_000_000 }, whole: true },
  { name: 'has gone cold, with little to prune', later: { now: 10_000_000_000_000 } },
  { name: 'no longer fits the window', then: [user('long '.repeat(60_000))], whole: true },
  {
    name: 'no longer fits with what stands between its messages',
    settings: { target: TARGETS.mistral },
    past: [...turns(12), [user('q'), assistant([call('x')]), result('x', 'y'), assistant([], { stopReason: 'error' })]],
    // Room for the messages, and none for the answer that is put between a result and the next question.
    later: window(40_000, { fixedTokens: 40_000 - 390 }),
    whole: true,
  },
  {
    name: 'no longer fits the bytes of a request',
    settings: bytes(60_000),
    then: [user('long '.repeat(14_000))],
    whole: true,
  },
  {
    name: 'has results that are together too large',
    past: turns(12, LONG),
    then: [user('q'), assistant([call('x'), call('y')]), result('x', LONG.repeat(7)), result('y', LONG.repeat(5))],
    whole: true,
  },
  {
    name: 'has a result that is too large by a better count',
    settings: window(100_000),
    past: withTurn(1, turn(1, 'word '.repeat(22_000))),
    later: window(100_000, { calibration: 1.8 }),
    whole: true,
  },
  {
    name: 'has new results that are shortened behind old ones',
    past: withTurn(1, turn(1, LONG)).with(2, turn(2, LONG)),
    then: [
      user('q'),
      assistant([call('x')]),
      result('x', 'word '.repeat(9_400)),
      assistant([call('z')]),
      result('z', 'word '.repeat(5_000)),
      assistant([call('y')]),
      result('y', 'word '.repeat(9_400)),
    ],
    whole: true,
  },
  {
    name: 'no longer fits before what is said twice is left out',
    then: [user('next'), user('next')],
    // Room for what is sent, and none for the repetitions.
    later: window(40_000, { fixedTokens: 40_000 - 370 }),
    whole: true,
  },
  {
    name: 'heard a late result in its past',
    past: withTurn(2, [user('q'), assistant([call('open')]), assistant('a')]).with(6, [
      user('q'),
      result('open', 'late'),
      assistant('a'),
    ]),
    whole: true,
  },
  { name: 'has a result that is too large', past: withTurn(2, turn(2, 'word '.repeat(16_000))) },
  { name: 'hears a late result of an old call', then: [user('next'), result('c1', 'late'), user('more')], whole: true },
  {
    name: 'hears the result that an old call lacked',
    past: withTurn(2, [user('q'), assistant([call('open')]), assistant('a')]),
    then: [user('next'), result('open', 'late')],
    whole: true,
  },
  { name: 'has a call without a result', past: withTurn(2, [user('q'), assistant([call('open')]), assistant('a')]) },
  {
    name: 'has a call of a failed answer',
    past: withTurn(2, [user('q'), assistant([call('x'), text('cut')], { stopReason: 'aborted' }), assistant('a')]),
  },
  {
    name: 'has a failed answer before a question',
    past: withTurn(2, [user('q'), assistant('a'), assistant([], { stopReason: 'error' })]),
  },
  { name: 'is cleaned up far back', then: [hiding('e6', 'e7')] },
  { name: 'is cleaned up far back and restored', then: [hiding('e6', 'e7'), restoring('e49')] },
  {
    name: 'takes an old cleanup back',
    past: withTurn(2, [...turn(2), hiding('e10', 'e11')]),
    then: [restoring('e13')],
  },
  { name: 'is cleaned up over several turns', past: withTurn(7, [hiding('e18', 'e19', 'e26', 'e27'), ...turn(7)], 14) },
  { name: 'repeats a decision about an old result', then: [deciding('clear', 'e7')] },
  { name: 'leaves old exchanges out', then: [deciding('leave-out', 'e5', 'e6', 'e7', 'e8')], whole: true },
  { name: 'names what has not come yet', past: withTurn(1, [...turn(1), hiding('e51')]), then: turn(99), whole: true },
  {
    name: 'says the same reasoning again',
    settings: { target: TARGETS.responses },
    past: withTurn(1, [user('q'), reasoning('rs_1')]),
    then: [user('q'), reasoning('rs_1')],
    whole: true,
  },
  {
    name: 'says the same reasoning twice in its past',
    settings: { target: TARGETS.responses },
    past: withTurn(1, [user('q'), reasoning('rs_1')]).with(4, [user('q'), reasoning('rs_1')]),
    whole: true,
  },
  {
    name: 'shows an old picture again, because later turns became one',
    past: withTurn(6, [user([text('see'), picture]), assistant('seen')], 12),
    then: ['e32', 'e33', 'e34', 'e36', 'e37', 'e38', 'e40', 'e41', 'e42', 'e44', 'e45', 'e46'].map((at) => editing(at)),
    whole: true,
  },
  { name: 'has pictures in its past', past: withTurn(1, [user([text('see'), picture]), assistant('seen')]) },
  { name: 'is limited', settings: { historyLimit: 4 } },
  {
    name: 'is limited and loses questions',
    settings: { historyLimit: 4 },
    then: ['e21', 'e25', 'e29', 'e33', 'e37', 'e41', 'e45'].map((at) => editing(at)),
    whole: true,
  },
  {
    name: 'is limited behind a summary',
    settings: { historyLimit: 4 },
    past: withTurn(0, [summary('none'), ...turn(0)]),
    whole: true,
  },
  { name: 'is summarised', past: withTurn(2, [...turn(2), summary('e1')]) },
  { name: 'is summarised now', then: [summary('e1')] },
  {
    name: 'takes a summary back',
    past: withTurn(2, [...turn(2), summary('e1')]),
    then: [summary('e1', { details: { undoes: 'e13' } })],
  },
  { name: 'goes to another model', later: { target: TARGETS.google } },
  { name: 'is sent in the safest form', later: { projection: 'safest' } },
]

/** Turn by turn, as a transcript hands a path out and requests are made of it. */
function grow(past: readonly (readonly Draft[])[], then: readonly Draft[], settings: Omit<HistoryInput, 'entries'>) {
  const entries = entriesOf(...past.flat(), ...then, user('next'))
  let path: readonly Entry[] | undefined
  let count = 0
  for (const own of past) {
    count += own.length
    path = rememberPath(entries.slice(0, count), path)
    prepareHistory({ ...settings, entries: path })
  }
  return { entries, path: rememberPath([...entries], path), before: path ?? [] }
}

describe('a conversation with a settled beginning', () => {
  it.each(CASES)(
    'that $name is prepared as from its start',
    ({ past = turns(12), then = [], settings, later, whole }) => {
      const usual: Omit<HistoryInput, 'entries'> = { ...USUAL, ...settings }
      const { path, entries } = grow(past, then, usual)
      const grown = prepareHistory({ ...usual, ...later, entries: path })
      expect(saidBy(grown)).toBe(saidBy(prepareHistory({ ...usual, ...later, entries })))
      expect(grown.parts.length > 1).toBe(whole !== true)
      // What follows is prepared by what was kept this time.
      const more = [
        ...entries,
        ...entriesOf(...past.flat(), ...then, user('next'), assistant('yes'), user('and')).slice(-2),
      ]
      const longer = rememberPath(more, path)
      expect(saidBy(prepareHistory({ ...usual, ...later, entries: longer }))).toBe(
        saidBy(prepareHistory({ ...usual, ...later, entries: more })),
      )
    },
  )

  const STATEMENTS: readonly (readonly [string, (target: string) => Draft])[] = [
    ['hidden by an edit', (target) => editing(target)],
    ['replaced by an edit', (target) => editing(target, 'other words')],
    ['hidden by a cleanup', (target) => hiding(target)],
    ['cleared', (target) => deciding('clear', target)],
    ['left out', (target) => deciding('leave-out', target)],
  ]
  it.each(STATEMENTS)('is prepared as from its start when any entry of it is %s', (_, say) => {
    for (const target of entriesOf(...turns(9).flat())) {
      for (const settings of [USUAL, { ...USUAL, historyLimit: 3 }, { ...USUAL, target: TARGETS.compatible }]) {
        const { entries, path } = grow(turns(9), [say(target.id)], settings)
        const grown = saidBy(prepareHistory({ ...settings, entries: path }))
        expect(grown, target.id).toBe(saidBy(prepareHistory({ ...settings, entries })))
      }
    }
  })

  it('is prepared as from its start when a cleanup is taken back, wherever it stood', () => {
    for (let at = 1; at < 12; at++) {
      const cleanup = `e${4 * at + 1}`
      const { entries, path } = grow(turns(14).with(at, [hiding('e2', 'e3'), ...turn(at)]), [restoring(cleanup)], USUAL)
      const grown = saidBy(prepareHistory({ ...USUAL, entries: path }))
      expect(grown, cleanup).toBe(saidBy(prepareHistory({ ...USUAL, entries })))
    }
  })

  it('can be prepared as it was before it grew', () => {
    const { path, before } = grow(turns(12), [hiding('e6', 'e7'), user('next'), assistant('yes')], USUAL)
    prepareHistory({ ...USUAL, entries: path })
    expect(saidBy(prepareHistory({ ...USUAL, entries: before }))).toBe(
      saidBy(prepareHistory({ ...USUAL, entries: [...before] })),
    )
  })

  it('is settled in few parts, however it came, and the large ones stay the same', ENDS_BY_COUNT, () => {
    const { path } = grow(withTurn(2, [...turn(2), summary('e1')], 400), [], USUAL)
    const { parts } = prepareHistory({ ...USUAL, entries: path })
    expect(parts.length).toBeLessThan(14)
    const afresh = prepareHistory({ ...USUAL, entries: rememberPath([...path], undefined) })
    expect(afresh.parts.length).toBeLessThan(14)
    expect(afresh.parts.at(-1)?.messages.length).toBeLessThan(40)
    expect(saidBy(afresh)).toBe(saidBy(prepareHistory({ ...USUAL, entries: [...path] })))
    const longer = rememberPath([...path, ...entriesOf(assistant('yes'), user('more'))], path)
    expect(prepareHistory({ ...USUAL, entries: longer }).parts[0] === parts[0]).toBe(true)
  })
})
