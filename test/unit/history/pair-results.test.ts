import { describe, expect, it } from 'vitest'
import type { Entry } from '../../../src/core/entry.ts'
import { TRANSCRIPT_POLICIES } from '../../../src/core/history-rules.ts'
import { sanitizeToolUseResultPairing } from '../../../src/history/pair-results.ts'
import { stickyEntryData, VIEW_ENTRY_TYPE } from '../../../src/history/view-records.ts'
import { viewOf } from '../../../src/history/view.ts'
import { assistant, call, entriesOf, id, prepare, result, sketch, text, user } from '../../support/history.ts'

const calls = (...ids: string[]) =>
  assistant(
    ids.map((one) => call(one)),
    { stopReason: 'toolUse' },
  )
const pair = (entries: readonly Entry[]) =>
  sanitizeToolUseResultPairing(viewOf(entries).items, TRANSCRIPT_POLICIES.default)
const MISSING =
  '[clew] missing tool result: the call was interrupted before its result was recorded; this error result stands in for it.'

describe('sanitizeToolUseResultPairing', () => {
  it('returns the same array for a healthy history and reports nothing', () => {
    const { items } = viewOf(entriesOf(user('a'), calls('c1', 'c2'), result('c1'), result('c2'), user('b')))
    const done = sanitizeToolUseResultPairing(items, TRANSCRIPT_POLICIES.default)
    expect(done.items).toBe(items)
    expect(done.changes).toEqual([])
  })

  it('makes an error result for a call that has none', () => {
    const prepared = prepare(entriesOf(user('a'), calls('c1'), user('b')))
    expect(sketch(prepared)).toBe(`user: a | assistant: [call c1] | result c1: ${MISSING} | user: b`)
    expect(prepared.messages[2]).toMatchObject({ isError: true, toolName: 'read' })
    expect(prepared.report.changes).toContainEqual({
      step: 'pair-results',
      action: 'added',
      reason: 'missing tool result',
      entry: 'e2',
    })
  })

  it('puts results in the order of their calls, directly behind them', () => {
    const prepared = prepare(
      entriesOf(user('a'), calls('c1', 'c2'), user('wait'), result('c2', 'two'), result('c1', 'one')),
    )
    expect(sketch(prepared)).toBe(
      'user: a | assistant: [call c1] + [call c2] | result c1: one | result c2: two | user: wait',
    )
  })

  it('keeps one of two equal results for one call', () => {
    const prepared = prepare(entriesOf(user('a'), calls('c1'), result('c1', 'same'), result('c1', 'same')))
    expect(sketch(prepared)).toBe('user: a | assistant: [call c1] | result c1: same')
  })

  it('keeps a second, different result as context', () => {
    const prepared = prepare(entriesOf(user('a'), calls('c1'), result('c1', 'first'), result('c1', 'second')))
    expect(sketch(prepared)).toContain(
      'result c1: first | user: [Result of the tool read, whose call is not in view] + second',
    )
  })

  it('keeps the real result of an id that a later turn uses again', () => {
    const prepared = prepare(
      entriesOf(
        user('a'),
        calls('c1'),
        result('c1', 'first'),
        user('b'),
        calls('c1'),
        result('c1', 'second'),
        user('c'),
      ),
    )
    expect(sketch(prepared)).toBe(
      'user: a | assistant: [call c1] | result c1: first | user: b | assistant: [call c1] | result c1: second | user: c',
    )
  })

  it('pairs the same id twice in one answer first come, first served', () => {
    const prepared = prepare(entriesOf(user('a'), calls('c', 'c'), result('c', 'one'), result('c', 'two')))
    expect(sketch(prepared)).toContain('result c: one | result c: two')
  })

  it('lets a real result replace an earlier synthetic one, ours or the one of OpenClaw', () => {
    const theirs = result('c1', '[openclaw] missing tool result in session history', { isError: true })
    const marked = result('c1', 'aborted', { isError: true, details: { reason: 'missing_tool_result' } })
    for (const synthetic of [theirs, marked, result('c1', MISSING, { isError: true })]) {
      const prepared = prepare(entriesOf(user('a'), calls('c1'), synthetic, result('c1', 'real')))
      expect(sketch(prepared)).toBe('user: a | assistant: [call c1] | result c1: real')
    }
  })

  it('brings a late result home when exactly one call can own it', () => {
    const prepared = prepare(
      entriesOf(user('a'), calls('c1'), user('b'), calls('c2'), result('c2'), result('c1', 'late')),
    )
    expect(sketch(prepared)).toContain('[call c1] | result c1: late | user: b')
  })

  it('gives a result whose call is gone a home as context', () => {
    const prepared = prepare(entriesOf(user('a'), result('gone', 'found it'), assistant('ok'), user('b')))
    expect(sketch(prepared)).toContain('[Result of the tool read, whose call is not in view] + found it')
  })

  it('drops a synthetic result without a call', () => {
    expect(sketch(prepare(entriesOf(user('a'), result('x', MISSING, { isError: true }))))).toBe('user: a')
  })

  it('keeps of an answer that was cut off the text and the calls that were run, and makes nothing up for the rest', () => {
    const cut = assistant([text('let me'), call('c1'), call('c2')], { stopReason: 'aborted' })
    expect(sketch(prepare(entriesOf(user('a'), cut, result('c1', 'ran'), user('b'))))).toBe(
      'user: a | assistant: let me + [call c1] | result c1: ran | user: b',
    )
  })

  it('keeps a real result that only a made-up one repeats, when that one leaves with its call', () => {
    const missing = { details: { reason: 'missing_tool_result' } }
    const cut = assistant([call('c1')], { stopReason: 'error' })
    const entries = entriesOf(result('c1', 'same'), cut, result('c1', 'same', missing), calls('c1'), user('b'))
    expect(sketch(prepare(entries))).toContain('[Result of the tool read, whose call is not in view] + same')
  })

  it('knows a repeated result by what was stored, not by what was cut out of it', () => {
    const entries = entriesOf(
      user('a'),
      calls('c1'),
      result('c1', 'same '.repeat(20)),
      result('c1', 'same '.repeat(20)),
    )
    const cleared = entriesOf(user(''), user(''), user(''), user(''), {
      type: 'custom',
      customType: VIEW_ENTRY_TYPE,
      data: stickyEntryData([{ entry: id('e3'), action: 'clear' }]),
    }).slice(4)
    expect(sketch(prepare([...entries, ...cleared]))).toBe(
      'user: a | assistant: [call c1] | result c1: [Old tool result content cleared]',
    )
  })

  it('cuts a large result without a call like any other', () => {
    const prepared = prepare(entriesOf(user('a'), result('gone', 'x '.repeat(5_000)), user('b')), {
      budget: { contextWindow: 10_000 },
    })
    expect(prepared.decisions).toMatchObject([{ entry: 'e2', action: 'truncate' }])
    expect(sketch(prepared)).toContain('[Result of the tool read, whose call is not in view] + x x')
  })

  it('recognises ids that another program rewrote', () => {
    const prepared = prepare(
      entriesOf(
        user('a'),
        calls('call_abc|fc_1', 'call_def|fc_2'),
        result('callabcfc1', 'one'),
        result('call_def', 'two'),
      ),
    )
    expect(sketch(prepared)).toContain('result call_abc|fc_1: one | result call_def|fc_2: two')
  })

  it('leaves a call without a result out where nothing may be made up', () => {
    const { items } = viewOf(entriesOf(user('a'), assistant([text('hm'), call('c1')])))
    const done = sanitizeToolUseResultPairing(items, {
      repairToolUseResultPairing: true,
      allowSyntheticToolResults: false,
    })
    expect(sketch({ messages: done.items.map((item) => item.message) })).toBe('user: a | assistant: hm')
  })

  it('does nothing where the policy turns it off', () => {
    const { items } = viewOf(entriesOf(user('a'), calls('c1')))
    expect(
      sanitizeToolUseResultPairing(items, { repairToolUseResultPairing: false, allowSyntheticToolResults: true }).items,
    ).toBe(items)
  })

  it('says that results moved only when they did', () => {
    expect(pair(entriesOf(user('a'), calls('c1'), result('c1'), user('b'))).changes).toEqual([])
    const moved = pair(entriesOf(user('a'), calls('c1'), user('b'), result('c1'))).changes
    expect(moved.map((change) => change.action)).toEqual(['moved'])
  })
})
