import { describe, expect, it } from 'vitest'
import {
  assistant,
  call,
  entriesOf,
  prepare,
  result,
  sketch,
  TARGETS,
  user,
  type TargetName,
} from '../../support/history.ts'

const names = Object.keys(TARGETS) as TargetName[]

describe('prepareHistory', () => {
  it.each(names)('sends a healthy conversation to %s as it is', (target) => {
    const entries = entriesOf(
      user('find it'),
      assistant([call('c1')], { stopReason: 'toolUse' }),
      result('c1', 'found'),
      assistant('here it is'),
      user('thanks'),
    )
    const prepared = prepare(entries, { target })
    expect(sketch(prepared)).toBe(
      'user: find it | assistant: [call c1] | result c1: found | assistant: here it is | user: thanks',
    )
    expect(prepared.report.changes).toEqual([])
    expect(prepared.report.messages.map((message) => message.entries)).toEqual([['e1'], ['e2'], ['e3'], ['e4'], ['e5']])
  })

  it('gives an empty transcript a minimal history instead of nothing', () => {
    expect(sketch(prepare([]))).toBe('user: (continue)')
  })

  it('never sends the raw history when every message had to go', () => {
    const entries = entriesOf(assistant([], { stopReason: 'error' }))
    expect(sketch(prepare(entries))).toBe('user: (continue)')
  })
})
