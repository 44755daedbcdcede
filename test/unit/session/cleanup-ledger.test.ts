import { describe, expect, it } from 'vitest'
import type { Change } from '../../../src/core/change.ts'
import type { SessionId } from '../../../src/core/ids.ts'
import { savingsOf } from '../../../src/session/spending.ts'
import { CleanupLedger } from '../../../src/storage/local/cleanup-ledger.ts'

const session = 'sess_1' as SessionId
const recordsOf = (ledger: CleanupLedger, changes: readonly Change[]) =>
  changes.map((change) => ledger.recordOf(change as Change & { kind: 'save' }))
const commit = (ledger: CleanupLedger, records: readonly { readonly data: unknown }[]): void => {
  for (const { data } of records) {
    const record = ledger.read(JSON.parse(JSON.stringify(data)))
    if (record !== undefined) ledger.apply(record)
  }
}

describe('the ledger of cleanups', () => {
  it('adds up what was cleaned and measured, and says when one of the numbers was an estimate', () => {
    const ledger = new CleanupLedger(100)
    const account = savingsOf(session)
    commit(ledger, recordsOf(ledger, account.cleaned({ steps: 1, messages: 4, tokensSaved: 100 })))
    commit(ledger, recordsOf(ledger, account.measured({ tokens: -30, measured: true })))
    expect(ledger.ofSession(session)).toEqual({
      steps: 1,
      messages: 4,
      tokensSaved: 100,
      netTokensSaved: -30,
      netBasis: 'measured',
    })
    commit(ledger, recordsOf(ledger, account.measured({ tokens: 80, measured: false })))
    commit(ledger, recordsOf(ledger, account.cleaned({ steps: -1, messages: -4, tokensSaved: -100 })))
    expect(ledger.total()).toEqual({
      steps: 0,
      messages: 0,
      tokensSaved: 0,
      netTokensSaved: 50,
      netBasis: 'estimated',
    })
  })

  it('survives a restart, a record that comes twice, and nonsense; what is forgotten is gone', () => {
    const ledger = new CleanupLedger(100)
    const records = recordsOf(ledger, savingsOf(session).cleaned({ steps: 1, messages: 2, tokensSaved: 10 }))
    commit(ledger, [...records, ...records, { data: { session, totals: { steps: 'many' } } }, { data: 7 }])
    const again = new CleanupLedger(100)
    for (const data of ledger.snapshot()) again.apply(data)
    expect(again.ofSession(session)).toMatchObject({ steps: 1, messages: 2, tokensSaved: 10 })
    commit(again, [again.forget(session)])
    expect(again.ofSession(session)).toMatchObject({ steps: 0, netBasis: 'measured' })
  })
})
