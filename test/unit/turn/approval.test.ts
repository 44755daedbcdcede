import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { isUndecided } from '../../../src/turn/approval.ts'
import { entriesOf } from '../../support/history.ts'

describe('the record of a decision about a call', () => {
  const call = { type: 'toolCall', id: 'call_1', name: 'exec', arguments: {} } as const
  const round = { run: 'run_1', round: 1 } as Parameters<typeof isUndecided>[1]
  const id = createHash('sha256').update('run_1\n1\ncall_1').digest('hex').slice(0, 8)
  const recorded = (state: unknown) =>
    entriesOf({ type: 'custom', customType: 'clew.approval', data: { id, at: 1, state } })

  it('counts when it says so', () => {
    expect(isUndecided(call, round, recorded('approved'))).toBe(false)
  })

  it.each([[['approved']], [{ toString: null }], [null], [true]])('does not count with the state %j', (state) => {
    expect(isUndecided(call, round, recorded(state))).toBe(true)
  })
})
