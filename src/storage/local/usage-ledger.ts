import type { Clock } from '../../base/clock.ts'
import type { JournalRecord, JournalTopic } from '../../base/journal.ts'
import { inParts } from '../../base/in-parts.ts'
import { isRecord } from '../../base/json.ts'
import type { Change } from '../../core/change.ts'
import type { SessionId } from '../../core/ids.ts'
import { numberOf } from '../../core/sound-message.ts'
import {
  addSpent,
  laterSpent,
  lessSpent,
  NOTHING_SPENT,
  SPENT_FIELDS,
  type Spent,
  summarizeUsage,
  type UsageHour,
  type UsageQuery,
  type UsageRow,
} from '../../core/spent.ts'
import { HourTotals, type Packed, type SpentHour } from './hour-totals.ts'
import { plainForm, Table, TABLE, type Tables } from '../tables/table.ts'

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

/** Of a model and a channel, or of a session. */
type HourOf = Omit<UsageHour, 'spent'>
type HourTotal = HourOf & { readonly spent: Packed }

type UsageTotal =
  /** What the session spent is forgotten. */
  | { readonly session: SessionId; readonly spent: null }
  | { readonly session: SessionId; readonly spent: Packed }
  | { readonly day: string; readonly spent: Packed }
  | HourTotal

/** In a snapshot there are many in one record, or the sessions of an hour: each costs a reading of its own. */
type UsageRecord = UsageTotal | readonly UsageTotal[] | SpentHour

const TOPIC = 'usage'
const FIELDS = SPENT_FIELDS.length
const DAY_MS = 86_400_000
const HOUR_MS = 3_600_000
const TOTALS_PER_RECORD = 128
const SESSIONS_PER_RECORD = 1_024
/** A name and eight numbers. */
const BYTES_PER_ROW = 320

/**
 * The cost ledger: per session, per day (UTC), and per hour by model and channel or by session. An entry is committed
 * together with the answer it belongs to. Records carry totals, not differences: applying one twice changes nothing.
 */
export class UsageLedger implements JournalTopic<UsageRecord> {
  readonly name = TOPIC
  readonly #clock: Clock
  readonly #limits: LedgerLimits
  readonly #sessions: Table<Packed>
  readonly #days = new Map<string, Spent>()
  readonly #hours: HourTotals
  readonly #sessionHours: HourTotals
  /** What records under way added to their totals. */
  readonly #added = new WeakMap<object, Spent>()

  constructor(clock: Clock, limits: LedgerLimits = DEFAULT_LEDGER, tables?: Tables) {
    this.#sessions = tables?.table(TABLE.spending, SESSION_FORM) ?? new Table(SESSION_FORM)
    this.#clock = clock
    this.#limits = limits
    this.#hours = new HourTotals(limits.hours)
    this.#sessionHours = new HourTotals(limits.sessionHours)
  }

  read(data: unknown): UsageRecord | undefined {
    if (!Array.isArray(data)) return readHour(data) ?? readTotal(data)
    const totals = data.map(readTotal).filter((total) => total !== undefined)
    return totals.length > 0 && totals.length === data.length ? totals : undefined
  }

  apply(record: UsageRecord): void {
    if ('names' in record) this.#takeHour(record)
    else if ('spent' in record) this.#put(record)
    else for (const total of record) this.#put(total)
  }

  #takeHour(record: SpentHour): void {
    if (this.#sessionHours.take(record)) return
    const { hour, names, spent } = record
    for (const [at, session] of names.entries())
      this.#put({ hour, session, spent: spent.slice(at * FIELDS, (at + 1) * FIELDS) })
  }

  /** Totals only grow: a commit that ends late takes nothing back. */
  #put(record: UsageTotal, merge = laterSpent): void {
    if (record.spent === null) this.#sessions.delete(record.session)
    else if ('day' in record) this.#keepDay(record.day, merge(this.ofDay(record.day), unpack(record.spent)))
    else if ('hour' in record) this.#keepHour(record, merge)
    else this.#keepSession(record.session, merge(this.#ofSessionNow(record.session), unpack(record.spent)))
  }

  get heldBytes(): number {
    const rows = this.#sessions.heldRows + this.#days.size + this.#hours.size + this.#sessionHours.size
    return this.#sessions.indexBytes + rows * BYTES_PER_ROW
  }

  *snapshot(): Iterable<UsageRecord> {
    yield* inParts(this.#totals(), TOTALS_PER_RECORD)
    yield* this.#sessionHours.parts(SESSIONS_PER_RECORD)
  }

  *#totals(): Iterable<UsageTotal> {
    for (const { key, value } of this.#sessions.held()) yield { session: key as SessionId, spent: value }
    for (const [day, spent] of this.#days) yield { day, spent: pack(spent) }
    for (const { spent, ...about } of this.#modelRows()) yield { ...about, spent: pack(spent) }
  }

  /** Every total, as `totalRecord` takes it. */
  async *rows(): AsyncIterable<LedgerRow> {
    const none = { at: 0, session: '', model: '', channel: '' }
    for await (const { key, value } of this.#sessions.rows())
      yield { ...none, scope: 'session', session: key, spent: unpack(value) }
    for (const [day, spent] of this.#days) yield { ...none, scope: 'day', at: Date.parse(day) / DAY_MS, spent }
    for (const { hour, ...row } of this.#modelRows()) yield { ...none, ...row, scope: 'hour', at: hour }
    for (const { hour, ...row } of this.#sessionRows()) yield { ...none, ...row, scope: 'session-hour', at: hour }
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

  async ofSession(key: SessionId): Promise<Spent> {
    return unpack((await this.#sessions.find(key)) ?? [])
  }

  /** The same at this moment; it was most likely looked up before, so that the disk need not be asked. */
  #ofSessionNow(key: string): Spent {
    return unpack(this.#sessions.get(key) ?? [])
  }

  ofDay(day = this.#today()): Spent {
    return this.#days.get(day) ?? NOTHING_SPENT
  }

  report(query: UsageQuery): readonly UsageRow[] {
    return summarizeUsage(query.by === 'session' ? this.#sessionRows() : this.#modelRows(), query)
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
    const totals = [
      { session, spent: addSpent(this.#ofSessionNow(session), spent) },
      { day, spent: addSpent(this.ofDay(day), spent) },
      { hour, model, channel, spent: addSpent(this.#ofHour({ hour, model, channel }), spent) },
      { hour, session, spent: addSpent(this.#ofHour({ hour, session }), spent) },
    ]
    const rows = totals.map((row): UsageTotal => ({ ...row, spent: pack(row.spent) }))
    for (const row of rows) {
      this.#put(row)
      this.#added.set(row, spent)
    }
    return rows.map((data) => ({ topic: TOPIC, data }))
  }

  /** The record could not be stored: what it added is paid once more when its commit is tried again. */
  dropped({ data }: JournalRecord): void {
    const added = isRecord(data) ? this.#added.get(data) : undefined
    if (added !== undefined) this.#put(data as UsageTotal, (known) => lessSpent(known, added))
  }

  forget(key: SessionId): JournalRecord {
    return { topic: TOPIC, data: { session: key, spent: null } }
  }

  #hoursOf({ session }: HourOf): HourTotals {
    return session === undefined ? this.#hours : this.#sessionHours
  }

  #ofHour(about: HourOf): Spent {
    return unpack(this.#hoursOf(about).get(about.hour, nameOf(about)) ?? [])
  }

  *#modelRows(): Iterable<Required<Omit<UsageHour, 'session'>>> {
    for (const { hour, name, spent } of this.#hours) {
      const [channel, model] = JSON.parse(name) as [string, string]
      yield { hour, model, channel, spent: unpack(spent) }
    }
  }

  *#sessionRows(): Iterable<Required<Omit<UsageHour, 'model' | 'channel'>>> {
    for (const { hour, name, spent } of this.#sessionHours) yield { hour, session: name, spent: unpack(spent) }
  }

  /** Those not used for longest are forgotten first. */
  #keepSession(session: SessionId, spent: Spent): void {
    this.#sessions.put(session, pack(spent))
    const oldest = this.#sessions.size > this.#limits.sessions ? this.#sessions.oldest() : undefined
    if (oldest !== undefined) this.#sessions.delete(oldest.key)
  }

  #keepDay(day: string, spent: Spent): void {
    this.#days.set(day, spent)
    if (this.#days.size > this.#limits.days) this.#days.delete([...this.#days.keys()].sort()[0] ?? '')
  }

  #keepHour(total: HourTotal, merge: typeof laterSpent): void {
    const spent = pack(merge(this.#ofHour(total), unpack(total.spent)))
    this.#hoursOf(total).put({ hour: total.hour, name: nameOf(total), spent })
  }

  #today(): string {
    return new Date(this.#clock.now()).toISOString().slice(0, 10)
  }
}

function readTotal(data: unknown): UsageTotal | undefined {
  if (!isRecord(data)) return undefined
  const { session, day, hour, model, channel } = data
  if (typeof session === 'string' && hour === undefined && data['spent'] === null)
    return { session: session as SessionId, spent: null }
  const spent = readPacked(data['spent'])
  if (spent === undefined) return undefined
  if (typeof hour === 'number') {
    if (typeof session === 'string') return { hour, session, spent }
    return typeof model === 'string' && typeof channel === 'string' ? { hour, model, channel, spent } : undefined
  }
  if (typeof session === 'string') return { session: session as SessionId, spent }
  return typeof day === 'string' ? { day, spent } : undefined
}

/** A version with other fields wrote lists of another length. */
function readHour(data: unknown): SpentHour | undefined {
  if (!isRecord(data) || typeof data['hour'] !== 'number') return undefined
  const { hour, names, spent } = data
  if (!Array.isArray(names) || !Array.isArray(spent) || !names.every((name) => typeof name === 'string'))
    return undefined
  const width = spent.length / names.length
  if (!Number.isInteger(width) || width <= SPENT_FIELDS.indexOf('tokens')) return undefined
  const given = numbersIn(spent)
  const listOf = (at: number): Packed => pack(unpack(given.slice(at * width, (at + 1) * width)))
  return { hour, names, spent: width === FIELDS ? given : names.flatMap((_, at) => listOf(at)) }
}

function nameOf({ model, channel, session }: HourOf): string {
  return session ?? JSON.stringify([channel, model])
}

const SESSION_FORM = plainForm(readPacked)

function pack(spent: Spent): Packed {
  return SPENT_FIELDS.map((field) => spent[field])
}

function unpack(packed: Packed): Spent {
  const [
    requests = 0,
    tokens = 0,
    input = 0,
    output = 0,
    cacheRead = 0,
    cacheWrite = 0,
    usd = 0,
    unpriced = 0,
    saved = 0,
  ] = packed
  return { requests, tokens, input, output, cacheRead, cacheWrite, usd, unpriced, saved }
}

/** Also the form of earlier versions, an object with tokens, dollars and requests. */
function readPacked(value: unknown): Packed | undefined {
  const given: readonly unknown[] = Array.isArray(value)
    ? value
    : isRecord(value)
      ? SPENT_FIELDS.map((field) => value[field])
      : []
  return typeof given[SPENT_FIELDS.indexOf('tokens')] === 'number' ? numbersIn(given) : undefined
}

/** Most lists are as they should be: they are kept as they are. */
function numbersIn(values: readonly unknown[]): Packed {
  return values.every((value): value is number => numberOf(value) === value) ? values : values.map(numberOf)
}
