import { describe, expect, it } from 'vitest'
import type { SessionId } from '../../../src/core/ids.ts'
import { NO_USAGE, type Usage } from '../../../src/core/message.ts'
import { UsageLedger } from '../../../src/session/usage-ledger.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'

const paid = (totalTokens: number): Usage => ({ ...NO_USAGE, totalTokens })
const a = 'a' as SessionId
const b = 'b' as SessionId
const c = 'c' as SessionId

describe('the usage ledger', () => {
  it('forgets nothing of a day when sessions pay at the same time and their commits end later', () => {
    const ledger = new UsageLedger(new ManualClock())
    const first = ledger.record(a, paid(10))
    const second = ledger.record(b, paid(20))
    for (const { data } of first) ledger.apply(data)
    const third = ledger.record(c, paid(5))
    for (const { data } of [...second, ...third]) ledger.apply(data)
    expect(ledger.ofDay()).toMatchObject({ tokens: 35, requests: 3 })
    expect([a, b, c].map((session) => ledger.ofSession(session).tokens)).toEqual([10, 20, 5])
  })

  it('is the same after a restart, and when records are applied again', () => {
    const clock = new ManualClock()
    const ledger = new UsageLedger(clock)
    const records = [ledger.record(a, paid(10), paid(1)), ledger.record(b, paid(20))].flat()
    for (const { data } of records) ledger.apply(data)
    const again = new UsageLedger(clock)
    for (const data of ledger.snapshot()) again.apply(data)
    for (const { data } of records) again.apply(data)
    expect(again.ofDay()).toEqual(ledger.ofDay())
    expect(again.ofSession(a)).toEqual({ tokens: 11, usd: 0, requests: 2 })
  })

  it('stops the next request when a limit is reached and names it', () => {
    const ledger = new UsageLedger(new ManualClock())
    for (const { data } of ledger.record(a, paid(100))) ledger.apply(data)
    expect(() => ledger.check(a, { session_tokens: 101 })).not.toThrow()
    expect(() => ledger.check(a, { session_tokens: 100 })).toThrow(/budget\.session_tokens/u)
    expect(() => ledger.check(b, { daily_tokens: 100 })).toThrow(/midnight UTC/u)
    expect(() => ledger.check(b, { session_tokens: 100 })).not.toThrow()
  })
})
