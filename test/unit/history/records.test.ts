import { describe, expect, it } from 'vitest'
import type { Entry } from '../../../src/core/entry.ts'
import { NO_USAGE } from '../../../src/core/message.ts'
import { createBudget } from '../../../src/history/budget.ts'
import {
  calibrationFrom,
  createRequestState,
  hashOfBody,
  inputOfRecord,
  REQUEST_ENTRY_TYPE,
  requestRecords,
} from '../../../src/history/request-record.ts'
import { readDecisions } from '../../../src/history/view-records.ts'
import { prepareHistory, type HistoryInput } from '../../../src/history/prepare.ts'
import { compactReport, decodeReport, encodeReport, renderReport } from '../../../src/history/report.ts'
import { recordOfNext } from '../../../src/history/request-delta.ts'
import { assistant, call, entriesOf, id, result, TARGETS, user } from '../../support/history.ts'

const entries = entriesOf(
  user('a'),
  user('b'),
  assistant([call('c1')]),
  result('c1', 'ok', { details: {} }),
  assistant('done'),
  result('x', 'late'),
  user('c'),
)
const input: HistoryInput = {
  entries,
  target: TARGETS.mistral,
  budget: createBudget({ contextWindow: 50_000 }),
  historyLimit: 3,
  now: 99,
}
const prepared = prepareHistory(input)

describe('the report', () => {
  it('survives its compact form', () => {
    const stored: unknown = JSON.parse(JSON.stringify(compactReport(encodeReport(prepared.parts))))
    const read = decodeReport(stored)
    expect(read?.messages).toEqual(prepared.report.messages)
    const sorted = (changes: readonly object[] | undefined) =>
      changes
        ?.map((change) => JSON.stringify(Object.entries(change).toSorted(([a], [b]) => a.localeCompare(b))))
        .toSorted()
    expect(sorted(read?.changes)).toEqual(sorted(prepared.report.changes))
  })
  it('takes about a dozen bytes per message', () => {
    const long = entriesOf(...Array.from({ length: 500 }, () => [user('q'), assistant('a')]).flat(), user('x'))
    const size = JSON.stringify(
      compactReport(encodeReport(prepareHistory({ ...input, entries: long, historyLimit: 0 }).parts)),
    ).length
    expect(size / 1_001).toBeLessThan(14)
  })
  it('is not read from what something else wrote', () => {
    for (const data of [null, 1, {}, { v: 2 }, { v: 1, m: 'u1', c: [1], reasons: [] }])
      expect(decodeReport(data)).toBeUndefined()
  })
  it('can be read by a person, message by message', () => {
    expect(renderReport(prepared.report)).toMatchInlineSnapshot(`
      "   1  user, 23 tokens, from e1 e2
              merged by queued-messages: not answered yet
         2  assistant, 11 tokens, from e3
         3  toolResult, 5 tokens, from e4
              rewritten by strip-details: details
         4  assistant, 5 tokens, from e5
         5  user, 19 tokens, from e6 e7
              rewritten by pair-results: result without a call becomes context
              merged by queued-messages: context of the message next to it"
    `)
  })
  it('holds no text of any message', () => {
    const secret = 'the secret words'
    const of = (parts: readonly Entry[]) => JSON.stringify(prepareHistory({ ...input, entries: parts }).report)
    expect(of(entriesOf(user(secret), user(secret), result('x', secret)))).not.toContain(secret)
  })
})

describe('the request record', () => {
  const body = '{"model":"m"}'
  const record = recordOfNext(createRequestState({ n: 1, input, prepared, body }))
  const stored = (data: unknown, own = 'rec'): Entry => ({
    type: 'custom',
    customType: REQUEST_ENTRY_TYPE,
    data,
    id: id(own),
    parentId: null,
    timestamp: '2026-01-01T00:00:00.000Z',
  })

  it('gives the same history again from the transcript, years and entries later', () => {
    const later = [...entries, stored(JSON.parse(JSON.stringify(record))), ...entriesOf(assistant('x'), user('y'))]
    const [read] = requestRecords(later)
    const again = read === undefined ? undefined : inputOfRecord(read, later)
    expect(JSON.stringify(again === undefined ? undefined : prepareHistory(again).messages)).toBe(
      JSON.stringify(prepared.messages),
    )
    expect(read?.hash).toBe(hashOfBody(body))
  })
  it('is the same whether the path is whole or begins at the first kept entry', () => {
    const compaction = { type: 'compaction', summary: 'S', firstKeptEntryId: id('e3'), tokensBefore: 1 } as const
    const whole = entriesOf(user('old'), assistant('old'), user('kept'), assistant('kept'), compaction, user('new'))
    const bytes = (path: readonly Entry[]) =>
      JSON.stringify(prepareHistory({ ...input, entries: path, historyLimit: 0 }).messages)
    expect(bytes(whole)).toBe(bytes(whole.slice(2)))
    expect(bytes(whole)).not.toContain('old')
  })
  it('is refused when its last entry is not on the path', () => {
    expect(inputOfRecord(record, entries.slice(0, 3))).toBeUndefined()
  })
  it('is not tried from a record that holds too little', () => {
    const { budget, target } = record.input
    for (const odd of [{}, { ...record.input, target: { ...target, provider: 5 } }, { ...record.input, now: null }])
      expect(inputOfRecord({ ...record, input: odd as never }, entries)).toBeUndefined()
    const oddBudget = { ...budget, pruning: { ...budget.pruning, softTrim: null } } as never
    expect(inputOfRecord({ ...record, input: { ...record.input, budget: oddBudget } }, entries)).toBeUndefined()
    expect(inputOfRecord(record, entries)).toBeDefined()
  })
})

describe('calibration', () => {
  const request = (estimate: number): Partial<Entry> => ({
    type: 'custom',
    customType: REQUEST_ENTRY_TYPE,
    data: { n: 1, hash: 'h', estimate, input: {}, leaf: null },
  })
  const answer = (tokens: number, model: string = TARGETS.anthropic.model) =>
    assistant('a', { model, usage: { ...NO_USAGE, input: tokens / 2, cacheRead: tokens / 2 } })

  it('is what the provider reported against what we counted, the median of the latest', () => {
    const path = entriesOf(request(100), answer(150), request(100), answer(130), request(100), answer(140))
    expect(calibrationFrom(path, TARGETS.anthropic)).toBe(1.4)
  })
  it('is 1 while nothing is known, and for another model', () => {
    expect(calibrationFrom(entriesOf(user('a'), assistant('b')), TARGETS.anthropic)).toBe(1)
    expect(calibrationFrom(entriesOf(request(100), answer(200, 'other')), TARGETS.anthropic)).toBe(1)
  })
  it('stays within reason', () => {
    expect(calibrationFrom(entriesOf(request(1), answer(1_000)), TARGETS.anthropic)).toBe(4)
    expect(calibrationFrom(entriesOf(request(1_000), answer(2)), TARGETS.anthropic)).toBe(0.25)
  })
})

describe('decisions', () => {
  it('are read as far as they are well formed', () => {
    const junk = [
      null,
      {},
      { entry: 1, action: 'trim' },
      { entry: 'a', action: 'explode' },
      { entry: 'a', action: 'truncate' },
      { entry: 'a', action: ['trim'] },
      { entry: 'a', action: { toString: null } },
    ]
    const good = { entry: 'a', action: 'trim' }
    const read = readDecisions(
      entriesOf(
        { type: 'custom', customType: 'clew.view', data: { decisions: [...junk, good] } },
        { type: 'custom', customType: 'clew.view', data: 7 },
      ),
    )
    expect([...read]).toEqual([['a', [good]]])
  })
})
