import type { Clock } from '../base/clock.ts'
import type { JournalRecord, JournalTopic } from '../base/journal.ts'
import { isRecord } from '../base/json.ts'
import { GatewayError } from '../core/errors.ts'
import type { SessionId } from '../core/ids.ts'
import type { Usage } from '../core/message.ts'

export interface SpendingLimits {
  readonly session_tokens?: number
  readonly session_usd?: number
  readonly daily_tokens?: number
  readonly daily_usd?: number
}

/** What was paid for: cumulative, never to be mixed with how full a context is. */
export interface Spent {
  readonly tokens: number
  readonly usd: number
  readonly requests: number
}

const TOPIC = 'usage'
const DAYS_KEPT = 400
const SESSIONS_KEPT = 100_000
const NOTHING: Spent = { tokens: 0, usd: 0, requests: 0 }

/**
 * The cost ledger, per session and per day (UTC). An entry is committed together with the answer it belongs to. Records
 * carry totals, not differences: applying one twice changes nothing.
 */
export class UsageLedger implements JournalTopic {
  readonly name = TOPIC
  readonly #clock: Clock
  readonly #sessions = new Map<SessionId, Spent>()
  readonly #days = new Map<string, Spent>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  apply(data: unknown): void {
    if (!isRecord(data)) return
    const { session, day, spent } = data
    if (typeof session === 'string') {
      if (spent === null) this.#sessions.delete(session as SessionId)
      else if (isSpent(spent)) this.#keepSession(session as SessionId, spent)
    }
    if (typeof day === 'string' && isSpent(spent)) {
      // The totals of a day only grow: an older commit of another session must not take back what is counted already.
      this.#days.set(day, larger(this.ofDay(day), spent))
      if (this.#days.size > DAYS_KEPT) this.#days.delete([...this.#days.keys()].sort()[0] ?? '')
    }
  }

  *snapshot(): Iterable<unknown> {
    for (const [session, spent] of this.#sessions) yield { session, spent }
    for (const [day, spent] of this.#days) yield { day, spent }
  }

  ofSession(key: SessionId): Spent {
    return this.#sessions.get(key) ?? NOTHING
  }

  ofDay(day = this.#today()): Spent {
    return this.#days.get(day) ?? NOTHING
  }

  /** To be committed with the answer. Turns of one session do not overlap, those of several sessions do. */
  record(key: SessionId, ...usages: readonly Usage[]): readonly JournalRecord[] {
    const paid = usages
      .map(({ totalTokens, cost }) => ({ tokens: totalTokens, usd: cost.total, requests: 1 }))
      .reduce(add, NOTHING)
    const day = this.#today()
    // The day's total is counted here, before the commit: two answers under way at once must not forget each other.
    const ofDay = add(this.ofDay(day), paid)
    this.#days.set(day, ofDay)
    return [
      { topic: TOPIC, data: { session: key, spent: add(this.ofSession(key), paid) } },
      { topic: TOPIC, data: { day, spent: ofDay } },
    ]
  }

  forget(key: SessionId): JournalRecord {
    return { topic: TOPIC, data: { session: key, spent: null } }
  }

  /** Throws `BUDGET_REACHED` with the limit that stops the next request. */
  check(key: SessionId, limits: SpendingLimits): void {
    const session = this.ofSession(key)
    const today = this.ofDay()
    refuseOver(session.tokens, limits.session_tokens, 'this conversation', 'tokens', 'budget.session_tokens')
    refuseOver(session.usd, limits.session_usd, 'this conversation', 'US dollars', 'budget.session_usd')
    refuseOver(today.tokens, limits.daily_tokens, 'today', 'tokens', 'budget.daily_tokens')
    refuseOver(today.usd, limits.daily_usd, 'today', 'US dollars', 'budget.daily_usd')
  }

  /** Those not used for longest are forgotten first. */
  #keepSession(session: SessionId, spent: Spent): void {
    this.#sessions.delete(session)
    this.#sessions.set(session, spent)
    const [oldest] = this.#sessions.size > SESSIONS_KEPT ? this.#sessions.keys() : []
    if (oldest !== undefined) this.#sessions.delete(oldest)
  }

  #today(): string {
    return new Date(this.#clock.now()).toISOString().slice(0, 10)
  }
}

function refuseOver(spent: number, limit: number | undefined, scope: string, unit: string, key: string): void {
  if (limit === undefined || spent < limit) return
  const until = scope === 'today' ? 'It starts again at midnight UTC.' : 'Start a new one with /new.'
  throw new GatewayError('BUDGET_REACHED', `The limit of ${limit} ${unit} for ${scope} is used up (${key}). ${until}`, {
    limit,
    spent,
    key,
  })
}

function add(a: Spent, b: Spent): Spent {
  return { tokens: a.tokens + b.tokens, usd: a.usd + b.usd, requests: a.requests + b.requests }
}

function larger(a: Spent, b: Spent): Spent {
  return {
    tokens: Math.max(a.tokens, b.tokens),
    usd: Math.max(a.usd, b.usd),
    requests: Math.max(a.requests, b.requests),
  }
}

function isSpent(value: unknown): value is Spent {
  return (
    isRecord(value) &&
    typeof value['tokens'] === 'number' &&
    typeof value['usd'] === 'number' &&
    typeof value['requests'] === 'number'
  )
}
