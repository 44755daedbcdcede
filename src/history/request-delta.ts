import { isRecord } from '../base/json.ts'
import type { RequestRecord } from './request-record.ts'
import { compactReport, isCompactReport, isReportRow, isTexts, type Chunks, type EncodedReport } from './report.ts'

/**
 * A request record as its difference to the one before: a conversation that grows by two messages grows its record by
 * two, and a file would otherwise grow with the square of its messages.
 */
export interface RequestDelta extends Pick<
  RequestRecord,
  'n' | 'leaf' | 'estimate' | 'messages' | 'hash' | 'startedAt' | 'firstByteMs' | 'durationMs'
> {
  /** `n` of the record it differs from. */
  readonly base: number
  /** How many differences stand between it and a whole record. */
  readonly distance: number
  /** Fields of the record, of its input and of its budget that are not as before. */
  readonly fields?: Fields
  readonly input?: Fields
  readonly budget?: Fields
  /** Messages of the report that are no longer in it, where the history is a window that slides: from where, how many. */
  readonly d?: readonly [at: number, count: number]
  /** Messages of the report: so many as before, without those in `d`, then these. */
  readonly m: readonly [kept: number, rest: string]
  /** Reasons of the report, when there are more. */
  readonly reasons?: readonly string[]
  /** Rows of changes that are not as before: which row, so many of its cells as before, then these. */
  readonly c?: readonly (readonly (number | string)[])[]
}

type Cell = number | string
type Fields = Readonly<Record<string, unknown>>

/** A request that is to be recorded; its report is made of the parts of its history. */
export interface NextRequest extends EncodedReport {
  readonly record: Omit<RequestRecord, 'report'>
}

/** A record taken apart, so that a long chain of differences costs what the differences hold. */
export interface RequestState {
  record: Omit<RequestRecord, 'report'>
  distance: number
  reasons: readonly string[]
  readonly messages: Continued<string>
  readonly rows: Continued<Cell>[]
}

/** Undefined for a record of another program, or of a version that recorded less. */
export function stateOf({ report, ...record }: RequestRecord): RequestState | undefined {
  if (!isCompactReport(report) || !isRecord(record.input.budget)) return undefined
  return {
    record,
    distance: 0,
    reasons: report.reasons,
    messages: new Continued(report.m === '' ? [] : report.m.split(' ')),
    rows: report.c.map((row) => new Continued([...row])),
  }
}

export function recordOfNext(next: NextRequest): RequestRecord {
  return { ...next.record, report: compactReport(next) }
}

export function recordOfState({ record, reasons, messages, rows }: RequestState): RequestRecord {
  return recordOfNext({ record, reasons, messages: [messages.items], rows: rows.map(({ items }) => [items]) })
}

/** Makes the state that of the next record; false when the difference belongs to another one, or gives none. */
export function applyDelta(state: RequestState, delta: RequestDelta): boolean {
  const next = recordAfter(state.record, delta)
  if (next === undefined) return false
  const { distance, d, m, reasons, c = [] } = delta
  state.record = next
  state.distance = distance
  state.reasons = reasons ?? state.reasons
  if (d !== undefined) state.messages.without(...d)
  state.messages.goOn(m[0], m[1] === '' ? [] : m[1].split(' '))
  for (const [at, kept, ...cells] of c) {
    const row = (state.rows[Number(at)] ??= new Continued<Cell>([]))
    row.goOn(Number(kept), cells)
  }
  return true
}

function recordAfter(record: RequestState['record'], delta: RequestDelta): RequestState['record'] | undefined {
  if (delta.base !== record.n) return undefined
  const {
    base: _b,
    distance: _n,
    d: _d,
    m: _m,
    c: _c,
    reasons: _r,
    fields = {},
    input = {},
    budget = {},
    ...own
  } = delta
  const { startedAt: _s, firstByteMs: _f, durationMs: _t, ...before } = record
  const next: unknown = Object.assign({}, before, fields, own, {
    input: { ...before.input, ...input, budget: { ...before.input.budget, ...budget } },
  })
  return isRequestRecord(next) ? next : undefined
}

/** Undefined when the record cannot be stored as a difference; it is then stored whole. */
export function deltaOf(state: RequestState, target: NextRequest): RequestDelta | undefined {
  const before = state.record
  const { n, leaf, estimate, messages, hash, input, ...fields } = target.record
  const { kept, rest, ...dropped } = slid(state.messages, target.messages)
  const rows = changedRows(state.rows, target.rows)
  const text = rest.join(' ')
  // Nothing takes a row away, and an id of another program may hold the space that stands between messages.
  if (state.rows.length > target.rows.length || (text === '' ? 0 : text.split(' ').length) !== rest.length)
    return undefined
  const delta: RequestDelta = {
    n,
    leaf,
    estimate,
    ...(messages === undefined ? {} : { messages }),
    hash,
    base: before.n,
    distance: state.distance + 1,
    ...changed('fields', fields, before),
    ...changed('input', { ...input, budget: undefined }, before.input),
    ...changed('budget', input.budget, before.input.budget),
    ...dropped,
    m: [kept, text],
    ...(same(state.reasons, target.reasons) ? {} : { reasons: target.reasons }),
    ...(rows.length === 0 ? {} : { c: rows }),
  }
  return isSameJson(recordAfter(before, delta), target.record) ? delta : undefined
}

function changed(name: 'fields' | 'input' | 'budget', next: object, before: object): Pick<RequestDelta, typeof name> {
  const old = new Map<string, unknown>(Object.entries(before))
  const all: [string, unknown][] = Object.entries(next)
  const different = all.filter(([key, value]) => value !== undefined && !same(value, old.get(key)))
  return different.length === 0 ? {} : { [name]: Object.fromEntries(different) }
}

function slid(
  before: Continued<string>,
  next: Chunks<string>,
): Pick<RequestDelta, 'd'> & { readonly kept: number; readonly rest: readonly string[] } {
  const [at, rest] = before.compare(next)
  const [first] = rest
  const from = first === undefined ? -1 : before.items.indexOf(first, at)
  if (from < 0) return { kept: at, rest }
  const differs = rest.findIndex((message, place) => message !== before.items[from + place])
  const run = differs < 0 ? rest.length : differs
  return { d: [at, from - at], kept: at + run, rest: rest.slice(run) }
}

function changedRows(before: readonly Continued<Cell>[], next: readonly Chunks<Cell>[]): readonly (readonly Cell[])[] {
  return next.flatMap((row, at) => {
    const old = before[at] ?? new Continued<Cell>([])
    const [kept, rest] = old.compare(row)
    return rest.length === 0 && old.items.length === kept ? [] : [[at, kept, ...rest]]
  })
}

const same = (a: unknown, b: unknown): boolean => a === b || JSON.stringify(a) === JSON.stringify(b)

/** The same values in the same fields, in whatever order they stand; a field without a value is none. */
function isSameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (Array.isArray(a))
    return Array.isArray(b) && a.length === b.length && a.every((item, at) => isSameJson(item, b[at]))
  if (!isRecord(a) || !isRecord(b)) return false
  for (const key in b) if (b[key] !== undefined && a[key] === undefined) return false
  for (const key in a) if (!isSameJson(a[key], b[key])) return false
  return true
}

/** The entry may be another program's, or damaged: a record with a field of another kind is none. */
export function isRequestRecord(data: unknown): data is RequestRecord {
  if (!isRecord(data) || 'base' in data || !hasCommonFields(data)) return false
  const { model, api, input, windowLearned } = data
  return [model, api, windowLearned].every(isTextOrAbsent) && isRecord(input)
}

export function isRequestDelta(data: unknown): data is RequestDelta {
  if (!isRecord(data) || !hasCommonFields(data)) return false
  const { base, distance, d = [0, 0], m, c, fields, input, budget, reasons } = data
  return (
    isWholeNumber(base) &&
    isWholeNumber(distance) &&
    Array.isArray(d) &&
    d.length === 2 &&
    d.every(isWholeNumber) &&
    Array.isArray(m) &&
    isWholeNumber(m[0]) &&
    typeof m[1] === 'string' &&
    (c === undefined || (Array.isArray(c) && c.every(isChangedRow))) &&
    [fields, input, budget].every((part) => part === undefined || isRecord(part)) &&
    (reasons === undefined || isTexts(reasons))
  )
}

const TIMES_AND_SIZES = ['messages', 'startedAt', 'firstByteMs', 'durationMs'] as const

function hasCommonFields(data: Readonly<Record<string, unknown>>): boolean {
  const { n, leaf, hash, estimate } = data
  return (
    Number.isFinite(n) &&
    Number.isFinite(estimate) &&
    typeof hash === 'string' &&
    (leaf === null || typeof leaf === 'string') &&
    TIMES_AND_SIZES.every((field) => data[field] === undefined || Number.isFinite(data[field]))
  )
}

const isTextOrAbsent = (value: unknown): boolean => value === undefined || typeof value === 'string'

/** More rows than any request has kinds of changes; a damaged number must not make a list of a million holes. */
const MAX_ROWS = 10_000

function isChangedRow(row: unknown): boolean {
  return isReportRow(row) && isWholeNumber(row[0]) && row[0] < MAX_ROWS && isWholeNumber(row[1])
}

function isWholeNumber(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

/** A list that is nearly always continued. What it was found to begin with is not compared again, however long it is. */
export class Continued<T> {
  readonly #items: T[]
  /** Its beginning. */
  #known: (readonly T[])[] = []

  constructor(items: T[]) {
    this.#items = items
  }

  get items(): readonly T[] {
    return this.#items
  }

  /** How many of its items the other one begins with, and what that one has behind them. */
  compare(chunks: Chunks<T>): readonly [kept: number, rest: readonly T[]] {
    const differs = chunks.findIndex((chunk, at) => !isSameChunk(chunk, this.#known[at]))
    const known = differs < 0 ? chunks.length : differs
    this.#known.length = known
    let kept = lengthOf(this.#known)
    const rest = chunks.slice(known)
    for (const [at, chunk] of rest.entries()) {
      const differing = chunk.findIndex((item, place) => item !== this.#items[kept + place])
      if (differing >= 0) return [kept + differing, [chunk.slice(differing), ...rest.slice(at + 1)].flat()]
      this.#known.push(chunk)
      kept += chunk.length
    }
    return [kept, []]
  }

  /** Takes items out of its middle or beginning: a window that slides. */
  without(at: number, count: number): void {
    this.#items.splice(at, count)
    while (lengthOf(this.#known) > at) this.#known.pop()
  }

  /** So many of its items, then these. */
  goOn(kept: number, items: readonly T[]): void {
    this.#items.length = Math.min(this.#items.length, kept)
    while (lengthOf(this.#known) > kept) this.#known.pop()
    for (const item of items) this.#items.push(item)
  }
}

const lengthOf = (chunks: Chunks<unknown>): number => chunks.reduce((sum, { length }) => sum + length, 0)

const SHORT = 8

/** A short one is made anew for every request. */
function isSameChunk<T>(a: readonly T[], b: readonly T[] | undefined): boolean {
  if (a === b) return true
  return a.length === b?.length && a.length <= SHORT && a.every((item, at) => item === b[at])
}
