import { describe, expect, it } from 'vitest'
import type { Entry } from '../../../src/core/entry.ts'
import type { Message } from '../../../src/core/message.ts'
import { rememberPath } from '../../../src/core/path-memory.ts'
import { createBudget } from '../../../src/history/budget.ts'
import { prepareHistory, type HistoryInput } from '../../../src/history/prepare.ts'
import { assistant, call, entriesOf, result, TARGETS, user } from '../../support/history.ts'

const turn = (at: number): readonly Message[] => [
  user(`question ${at}`),
  assistant([call(`c${at}`)]),
  result(`c${at}`, `found ${at} `.repeat(400)),
  assistant(`answer ${at}`),
]
const PAST = Array.from({ length: 12 }, (_, at) => turn(at)).flat()

const CASES: readonly {
  readonly name: string
  readonly then: readonly (Message | Partial<Entry>)[]
  readonly input?: Partial<HistoryInput>
}[] = [
  { name: 'goes on', then: [user('next')] },
  { name: 'has gone cold', then: [user('next')], input: { now: 10_000_000_000_000 } },
  { name: 'no longer fits', then: [user('long '.repeat(20_000))] },
  { name: 'hears a late result of an old call', then: [user('next'), result('c1', 'late'), user('more')] },
  {
    name: 'is cleaned up far back',
    then: [
      {
        type: 'custom',
        customType: 'clew.cleanup',
        data: { stepId: 's', hidden: ['e2', 'e3'], note: '[n]', tokensBefore: 9, tokensAfter: 3, estimated: true },
      },
      user('next'),
    ],
  },
  {
    name: 'repeats a decision about an old result',
    then: [
      {
        type: 'custom',
        customType: 'clew.view',
        data: { decisions: [{ entry: 'e3', action: 'clear' }] },
      },
      user('next'),
    ],
  },
]

describe('a conversation with a settled beginning', () => {
  it.each(CASES)('that $name is prepared as from its start', ({ then, input = {} }) => {
    const budget = createBudget({ contextWindow: 40_000 })
    const settings = { target: TARGETS.anthropic, budget, historyLimit: 0, now: 3, ...input }
    const entries = entriesOf(...PAST, user('now'), assistant('yes'), ...then)
    const past = rememberPath(entries.slice(0, PAST.length + 1), undefined)
    prepareHistory({ ...settings, now: 3, entries: past })
    const grown = rememberPath([...entries], past)
    expect(prepareHistory({ ...settings, entries: grown })).toEqual(prepareHistory({ ...settings, entries }))
  })
})
