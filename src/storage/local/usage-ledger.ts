import type { Clock } from '../../base/clock.ts'
import type { JournalRecord, JournalTopic } from '../../base/journal.ts'
import { isRecord } from '../../base/json.ts'
import type { Change } from '../../core/change.ts'
import type { SessionId } from '../../core/ids.ts'
import { addSpent, laterSpent, NOTHING_SPENT, SPENT_FIELDS, type Spent } from '../../core/spent.ts'
import { summarizeUsage, type UsageHour, type UsageQuery, type UsageRow } from '../../core/usage-report.ts'

export interface LedgerLimits {
  readonly days: number
  readonly sessions: number
  /** Rows of an hour, a model and a channel; those of the oldest hours go first. */
  readonly hours: number
  /** Rows of an hour and a session. */
  readonly sessionHours: number
}

export const DEFAULT_LEDGER: LedgerLimits = { days: 400, sessions: 100_000, hours: 50_000, sessionHours: 50_000 }

/** One total of the ledger and what it is a total of; `at` counts days or hours since 1970. */
export interface LedgerRow {
  readonly scope: 'session' | 'day' | 'hour' | 'session-hour'
  readonly at: number
  readonly session: string
  readonly model: string
  readonly channel: string
  readonly spent: Spent
}

const TOPIC = 'usage'
const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
/** A name and eight numbers. */
const BYTES_PER_ROW = 320

/**
 * The cost ledger: per session, per day (UTC), and per hour by model and channel or by session. An entry is committed
 * together with the answer it belongs to. Records carry totals, not differences: applying one twice changes nothing.
 */
export class UsageLedger implements JournalTopic {
  readonly name = TOPIC
  readonly #clock: Clock
  readonly #limits: LedgerLimits
  readonly #sessions = new Map<SessionId, Spent>()
  readonly #days = new Map<string, Spent>()
  readonly #hours = new Map<string, UsageHour>()
  readonly #sessionHours = new Map<string, UsageHour>()

  constructor(clock: Clock, limits: LedgerLimits = DEFAULT_LEDGER) {
    this.#clock = clock
    this.#limits = limits
  }

  apply(data: unknown): void {
    if (!isRecord(data)) return
    const { session, day, hour, model, channel } = data
    if (typeof session === 'string' && hour === undefined && data['spent'] === null)
      this.#sessions.delete(session as SessionId)
    const spent = readSpent(data['spent'])
    if (spent === undefined) return
    if (typeof hour === 'number') {
      if (typeof session === 'string') this.#keepHour(this.#sessionHours, { hour, session }, spent)
      else if (typeof model === 'string' && typeof channel === 'string')
        this.#keepHour(this.#hours, { hour, model, channel }, spent)
    } else if (typeof session === 'string') this.#keepSession(session as SessionId, spent)
    else if (typeof day === 'string') this.#keepDay(day, spent)
  }

  get heldBytes(): number {
    const rows = this.#sessions.size + this.#days.size + this.#hours.size + this.#sessionHours.size
    return rows * BYTES_PER_ROW
  }

  *snapshot(): Iterable<unknown> {
    for (const [session, spent] of this.#sessions) yield { session, spent: pack(spent) }
    for (const [day, spent] of this.#days) yield { day, spent: pack(spent) }
    for (const rows of [this.#hours, this.#sessionHours])
      for (const { spent, ...about } of rows.values()) yield { ...about, spent: pack(spent) }
  }

  /** Every total, as `totalRecord` takes it. */
  *rows(): Iterable<LedgerRow> {
    const none = { at: 0, session: '', model: '', channel: '' }
    for (const [session, spent] of this.#sessions) yield { ...none, scope: 'session', session, spent }
    for (const [day, spent] of this.#days) yield { ...none, scope: 'day', at: Date.parse(day) / DAY_MS, spent }
    for (const { hour, ...row } of this.#hours.values()) yield { ...none, ...row, scope: 'hour', at: hour }
    for (const { hour, ...row } of this.#sessionHours.values())
      yield { ...none, ...row, scope: 'session-hour', at: hour }
  }

  /** Puts a total in its place, whatever stood there. */
  totalRecord({ scope, at, session, model, channel, spent }: LedgerRow): JournalRecord {
    const about = {
      session: { session },
      day: { day: new Date(at * DAY_MS).toISOString().slice(0, 10) },
      hour: { hour: at, model, channel },
      'session-hour': { hour: at, session },
    }
    return { topic: TOPIC, data: { ...about[scope], spent: pack(spent) } }
  }

  ofSession(key: SessionId): Spent {
    return this.#sessions.get(key) ?? NOTHING_SPENT
  }

  ofDay(day = this.#today()): Spent {
    return this.#days.get(day) ?? NOTHING_SPENT
  }

  report(query: UsageQuery): readonly UsageRow[] {
    return summarizeUsage((query.by === 'session' ? this.#sessionHours : this.#hours).values(), query)
  }

  recordsOf({
    sessionId: session,
    model,
    channel,
    spent,
  }: Extract<Change, { kind: 'spend' }>): readonly JournalRecord[] {
    const day = this.#today()
    const hour = Math.floor(this.#clock.now() / HOUR_MS)
    // Counted here, before the commit: two costs under way at once, or in one commit, must not forget each other.
    const rows = [
      { session, spent: addSpent(this.ofSession(session), spent) },
      { day, spent: addSpent(this.ofDay(day), spent) },
      this.#addedTo(this.#hours, { hour, model, channel }, spent),
      this.#addedTo(this.#sessionHours, { hour, session }, spent),
    ].map((row) => ({ ...row, spent: pack(row.spent) }))
    for (const row of rows) this.apply(row)
    return rows.map((data) => ({ topic: TOPIC, data }))
  }

  forget(key: SessionId): JournalRecord {
    return { topic: TOPIC, data: { session: key, spent: null } }
  }

  #addedTo(rows: ReadonlyMap<string, UsageHour>, about: Omit<UsageHour, 'spent'>, spent: Spent): UsageHour {
    return { ...about, spent: addSpent(rows.get(nameOf(about))?.spent ?? NOTHING_SPENT, spent) }
  }

  /** Those not used for longest are forgotten first. Totals only grow: a commit that ends late takes nothing back. */
  #keepSession(session: SessionId, spent: Spent): void {
    const known = this.ofSession(session)
    this.#sessions.delete(session)
    this.#sessions.set(session, laterSpent(known, spent))
    dropOldest(this.#sessions, this.#limits.sessions)
  }

  #keepDay(day: string, spent: Spent): void {
    this.#days.set(day, laterSpent(this.ofDay(day), spent))
    if (this.#days.size > this.#limits.days) this.#days.delete([...this.#days.keys()].sort()[0] ?? '')
  }

  /** Hours come in their order, apart from a clock that was set back: the first of a map are the oldest. */
  #keepHour(rows: Map<string, UsageHour>, about: Omit<UsageHour, 'spent'>, spent: Spent): void {
    const name = nameOf(about)
    rows.set(name, { ...about, spent: laterSpent(rows.get(name)?.spent ?? NOTHING_SPENT, spent) })
    dropOldest(rows, rows === this.#hours ? this.#limits.hours : this.#limits.sessionHours)
  }

  #today(): string {
    return new Date(this.#clock.now()).toISOString().slice(0, 10)
  }
}

function nameOf({ hour, model = '', channel = '', session = '' }: Omit<UsageHour, 'spent'>): string {
  return [hour, session, channel, model].join('\n')
}

function dropOldest(map: Map<string, unknown>, most: number): void {
  const [oldest] = map.size > most ? map.keys() : []
  if (oldest !== undefined) map.delete(oldest)
}

/** A list in the order of `SPENT_FIELDS`: these stand in the journal four times per answer. */
function pack(spent: Spent): readonly number[] {
  return SPENT_FIELDS.map((field) => spent[field])
}

/** Also the form of earlier versions, an object with tokens, dollars and requests. */
function readSpent(value: unknown): Spent | undefined {
  const given = Array.isArray(value)
    ? Object.fromEntries(SPENT_FIELDS.map((field, at): [string, unknown] => [field, value[at]]))
    : value
  if (!isRecord(given) || typeof given['tokens'] !== 'number') return undefined
  const fields = SPENT_FIELDS.map((field): [string, number] => {
    const count = given[field]
    return [field, typeof count === 'number' && Number.isFinite(count) ? count : 0]
  })
  return { ...NOTHING_SPENT, ...Object.fromEntries(fields) }
}
