import { describe, expect, it } from 'vitest'
import type { JournalRecord } from '../../../src/base/journal.ts'
import type { SessionId } from '../../../src/core/ids.ts'
import { NOTHING_SPENT, type Spent, type UsageQuery } from '../../../src/core/spent.ts'
import { checkBudget, type SpendingLimits } from '../../../src/session/spending.ts'
import { DEFAULT_LEDGER, UsageLedger } from '../../../src/storage/local/usage-ledger.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'

interface Payer {
  readonly session: SessionId
  readonly model: string
  readonly channel: string
}

const HOUR_MS = 3_600_000
const START = Date.parse('2026-11-16T10:30:00Z')
const paid = (tokens: number, more: Partial<Spent> = {}): Spent => ({
  ...NOTHING_SPENT,
  requests: 1,
  tokens,
  input: tokens,
  ...more,
})
const payer = (session: string, model = 'p/m', channel = 'webhook'): Payer => ({
  session: session as SessionId,
  model,
  channel,
})
const [a, b, c] = [payer('a'), payer('b'), payer('c')]

function recordOf(ledger: UsageLedger, { session, ...payer }: Payer, spent: Spent): readonly JournalRecord[] {
  return ledger.recordsOf({ kind: 'spend', sessionId: session, ...payer, spent })
}

function commit(ledger: UsageLedger, records: readonly JournalRecord[]): void {
  for (const { data } of records) {
    const record = ledger.read(JSON.parse(JSON.stringify(data)))
    if (record !== undefined) ledger.apply(record)
  }
}

function snapshotOf(ledger: UsageLedger): readonly JournalRecord[] {
  return [...ledger.snapshot()].map((data) => ({ topic: 'usage', data }))
}

function check(ledger: UsageLedger, session: SessionId, limits: SpendingLimits): Promise<void> {
  const usage = { ofSession: async (id: SessionId) => ledger.ofSession(id), today: async () => ledger.ofDay() }
  return checkBudget(session, usage, limits)
}

function rows(ledger: UsageLedger, query: Partial<UsageQuery> = {}) {
  return ledger.report({ from: 0, to: Number.MAX_SAFE_INTEGER, by: 'model', bucket: 'hour', ...query })
}

describe('the usage ledger', () => {
  it('forgets nothing of a day when sessions pay at the same time and their commits end later', async () => {
    const ledger = new UsageLedger(new ManualClock(START))
    const first = recordOf(ledger, a, paid(10))
    const second = recordOf(ledger, b, paid(20))
    commit(ledger, first)
    const third = recordOf(ledger, c, paid(5))
    commit(ledger, [...third, ...second])
    expect(ledger.ofDay()).toMatchObject({ tokens: 35, requests: 3 })
    const totals = await Promise.all([a, b, c].map(({ session }) => ledger.ofSession(session)))
    expect(totals.map(({ tokens }) => tokens)).toEqual([10, 20, 5])
    expect(rows(ledger)).toMatchObject([{ group: 'p/m', requests: 3, input: 35 }])
  })

  it('takes back what could not be stored, and keeps what others paid meanwhile', async () => {
    const ledger = new UsageLedger(new ManualClock(START))
    const failed = recordOf(ledger, a, paid(10, { usd: 0.5 }))
    const other = recordOf(ledger, b, paid(20, { usd: 0.25 }))
    for (const record of failed) ledger.dropped(record)
    expect(ledger.ofDay()).toMatchObject({ tokens: 20, requests: 1, usd: 0.25 })
    expect(await ledger.ofSession(a.session)).toEqual(NOTHING_SPENT)
    commit(ledger, recordOf(ledger, a, paid(10)))
    expect(ledger.ofDay()).toMatchObject({ tokens: 30, requests: 2 })
    for (const record of other) ledger.dropped(record)
    expect(rows(ledger)).toMatchObject([{ requests: 1, input: 10 }])
  })

  it('is the same after a restart, and when records are applied again', async () => {
    const clock = new ManualClock(START)
    const ledger = new UsageLedger(clock)
    const records = [recordOf(ledger, a, paid(10, { usd: 0.5, saved: 3 })), recordOf(ledger, b, paid(20))].flat()
    commit(ledger, records)
    const again = new UsageLedger(clock)
    for (const data of ledger.snapshot()) again.apply(JSON.parse(JSON.stringify(data)))
    commit(again, records)
    expect(again.ofDay()).toEqual(ledger.ofDay())
    expect(await again.ofSession(a.session)).toEqual(await ledger.ofSession(a.session))
    for (const by of ['model', 'channel', 'session'] as const) expect(rows(again, { by })).toEqual(rows(ledger, { by }))
  })

  it('counts two costs of one commit, and of commits that end in another order', async () => {
    const ledger = new UsageLedger(new ManualClock(START))
    const first = recordOf(ledger, a, paid(10))
    const second = recordOf(ledger, a, { ...NOTHING_SPENT, saved: 4 })
    commit(ledger, [...second, ...first])
    expect(await ledger.ofSession(a.session)).toMatchObject({ tokens: 10, requests: 1, saved: 4 })
    const again = new UsageLedger(new ManualClock(START))
    commit(again, [...first, ...second])
    expect(await again.ofSession(a.session)).toEqual(await ledger.ofSession(a.session))
  })

  it('reads what earlier versions wrote', async () => {
    const ledger = new UsageLedger(new ManualClock(START))
    const spent = { tokens: 100, usd: 0.25, requests: 2 }
    commit(ledger, [
      { topic: 'usage', data: { session: 'a', spent } },
      { topic: 'usage', data: { day: '2026-11-16', spent } },
    ])
    expect(await ledger.ofSession(a.session)).toEqual({ ...NOTHING_SPENT, tokens: 100, usd: 0.25, requests: 2 })
    await expect(check(ledger, a.session, { daily_tokens: 100 })).rejects.toThrow(/budget\.daily_tokens/u)
  })

  it('stops the next request when a limit is reached and names it', async () => {
    const ledger = new UsageLedger(new ManualClock(START))
    commit(ledger, recordOf(ledger, a, paid(100)))
    await expect(check(ledger, a.session, { session_tokens: 101 })).resolves.toBeUndefined()
    await expect(check(ledger, a.session, { session_tokens: 100 })).rejects.toThrow(/budget\.session_tokens/u)
    await expect(check(ledger, b.session, { daily_tokens: 100 })).rejects.toThrow(/midnight UTC/u)
    await expect(check(ledger, b.session, { session_tokens: 100 })).resolves.toBeUndefined()
  })

  it('tells hours and days apart, by model, channel and session, within a time', async () => {
    const clock = new ManualClock(START)
    const ledger = new UsageLedger(clock)
    commit(
      ledger,
      recordOf(ledger, payer('a', 'p/one'), paid(10, { output: 1, cacheRead: 2, cacheWrite: 3, usd: 0.1 })),
    )
    commit(ledger, recordOf(ledger, payer('b', 'p/two', 'xiaoyi'), paid(20, { usd: 0.2 })))
    await clock.advance(HOUR_MS)
    commit(ledger, recordOf(ledger, payer('a', 'p/one'), paid(30, { usd: 0.3 })))
    await clock.advance(24 * HOUR_MS)
    commit(ledger, recordOf(ledger, payer('a', 'p/one'), { ...NOTHING_SPENT, saved: 7 }))
    const day = Date.parse('2026-11-16T00:00:00Z')
    expect(rows(ledger, { bucket: 'day' })).toMatchObject([
      { at: day, group: 'p/one', requests: 2, input: 40, output: 1, cacheRead: 2, cacheWrite: 3, usd: 0.4, saved: 0 },
      { at: day, group: 'p/two', requests: 1, input: 20, usd: 0.2 },
      { at: day + 24 * HOUR_MS, group: 'p/one', requests: 0, usd: 0, saved: 7 },
    ])
    expect(rows(ledger, { by: 'channel', to: day + 11 * HOUR_MS })).toMatchObject([
      { at: day + 10 * HOUR_MS, group: 'webhook', input: 10 },
      { at: day + 10 * HOUR_MS, group: 'xiaoyi', input: 20 },
    ])
    expect(rows(ledger, { by: 'session', from: day + 11 * HOUR_MS, to: day + 12 * HOUR_MS })).toMatchObject([
      { at: day + 11 * HOUR_MS, group: 'a', input: 30 },
    ])
  })

  it('says that a price is unknown, and how many requests a sum lacks', () => {
    const ledger = new UsageLedger(new ManualClock(START))
    commit(ledger, recordOf(ledger, payer('a', 'p/local'), paid(10, { unpriced: 1 })))
    expect(rows(ledger)).toMatchObject([{ group: 'p/local', usd: null, unpriced: 1 }])
    commit(ledger, recordOf(ledger, payer('a', 'p/sold'), paid(10, { usd: 0.5 })))
    expect(rows(ledger, { by: 'channel' })).toMatchObject([{ usd: 0.5, requests: 2, unpriced: 1 }])
  })

  it('is bounded: the oldest hours and the sessions not used for longest are forgotten first', async () => {
    const clock = new ManualClock(START)
    const ledger = new UsageLedger(clock, { ...DEFAULT_LEDGER, sessions: 2, hours: 2, sessionHours: 2, days: 2 })
    for (const session of ['a', 'b', 'c']) {
      commit(ledger, recordOf(ledger, payer(session), paid(1)))
      await clock.advance(24 * HOUR_MS)
    }
    expect(rows(ledger)).toHaveLength(2)
    expect(rows(ledger, { by: 'session' }).map(({ group }) => group)).toEqual(['b', 'c'])
    expect(await ledger.ofSession(a.session)).toEqual(NOTHING_SPENT)
    expect([...ledger.snapshot()].flat()).toHaveLength(8)
  })

  it('forgets of a full hour what is in it for longest, and finds and counts the others', () => {
    const sessions = Array.from({ length: 12 }, (_, at) => payer(`s${at}`))
    const ledger = new UsageLedger(new ManualClock(START), { ...DEFAULT_LEDGER, sessionHours: 5 })
    for (const session of sessions) commit(ledger, recordOf(ledger, session, paid(1)))
    for (const session of sessions.slice(-2)) commit(ledger, recordOf(ledger, session, paid(2)))
    const kept = (of: UsageLedger) =>
      Object.fromEntries(rows(of, { by: 'session' }).map(({ group, input }) => [group, input]))
    expect(kept(ledger)).toEqual({ s7: 1, s8: 1, s9: 1, s10: 3, s11: 3 })
    const again = new UsageLedger(new ManualClock(START), { ...DEFAULT_LEDGER, sessionHours: 4 })
    commit(again, snapshotOf(ledger))
    expect(kept(again)).toEqual({ s8: 1, s9: 1, s10: 3, s11: 3 })
    for (const session of [...sessions.slice(-2), ...sessions.slice(0, 1)])
      commit(again, recordOf(again, session, paid(4)))
    expect(kept(again)).toEqual({ s9: 1, s10: 7, s11: 7, s0: 4 })
  })

  it('has the sessions of an hour in few records of a snapshot, and puts them beside what it knows', async () => {
    const clock = new ManualClock(START)
    const ledger = new UsageLedger(clock)
    const sessions = Array.from({ length: 1_500 }, (_, at) => payer(`s${at}`))
    for (const [at, session] of sessions.entries()) commit(ledger, recordOf(ledger, session, paid(at + 1)))
    await clock.advance(HOUR_MS)
    commit(ledger, recordOf(ledger, a, paid(7)))
    const hours = snapshotOf(ledger).filter(({ data }) => !Array.isArray(data))
    expect(hours).toHaveLength(3)
    const again = new UsageLedger(clock)
    const known = recordOf(again, a, paid(9))
    commit(again, known)
    for (let turn = 0; turn < 2; turn++) commit(again, hours)
    const wanted = rows(ledger, { by: 'session' })
    expect(wanted).toHaveLength(1_501)
    expect(rows(again, { by: 'session' })).toEqual(
      wanted.map((row) => (row.group === 'a' ? { ...row, input: 9 } : row)),
    )
  })

  it('reads no hour that is not whole', () => {
    const ledger = new UsageLedger(new ManualClock(START))
    const spent = [1, 10, 10, 0, 0, 0, 0, 0, 0]
    const hour = { hour: 5, names: ['a', 'b'], spent: [...spent, ...spent] }
    expect(ledger.read(hour)).toEqual(hour)
    for (const damage of [
      { hour: '5' },
      { names: ['a', 1] },
      { names: [], spent: [] },
      { names: 'ab' },
      { spent },
      { spent: [...spent, ...spent, 1] },
      { spent: [1, 1] },
      { spent: undefined },
    ])
      expect(ledger.read({ ...hour, ...damage }), JSON.stringify(damage)).toBeUndefined()
    expect(ledger.read({ ...hour, spent: [...spent, ...spent.map(() => 'much')] })).toEqual({
      ...hour,
      spent: [...spent, ...spent.map(() => 0)],
    })
    const fewer = [1, 10, 10]
    expect(ledger.read({ ...hour, spent: [...fewer, ...fewer] })).toEqual(hour)
    const more = [...spent, 5]
    expect(ledger.read({ ...hour, spent: [...more, ...more] })).toEqual(hour)
  })

  it('forgets a deleted session’s total, and ignores what is no record of its own', async () => {
    const ledger = new UsageLedger(new ManualClock(START))
    commit(ledger, recordOf(ledger, a, paid(10)))
    commit(ledger, [ledger.forget(a.session)])
    expect(await ledger.ofSession(a.session)).toEqual(NOTHING_SPENT)
    for (const data of [null, 1, {}, { session: 'x', spent: 'much' }, { hour: 'now', spent: [1, 1] }])
      expect(ledger.read(data)).toBeUndefined()
    expect(rows(ledger, { by: 'session' })).toHaveLength(1)
  })
})
