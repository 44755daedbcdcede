import type { Usage } from './message.ts'

/** What some requests cost, and what was saved beside them. Cumulative: never to be mixed with how full a context is. */
export interface Spent {
  readonly requests: number
  /** All kinds together, as the provider counts. */
  readonly tokens: number
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly usd: number
  /** Requests to models whose price is not known; `usd` lacks them. */
  readonly unpriced: number
  /** Tokens of the context that cleanups took out of later requests. */
  readonly saved: number
}

export const NOTHING_SPENT: Spent = {
  requests: 0,
  tokens: 0,
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  usd: 0,
  unpriced: 0,
  saved: 0,
}

export const SPENT_FIELDS = Object.keys(NOTHING_SPENT) as readonly (keyof Spent)[]

export function spentOn({ totalTokens, input, output, cacheRead, cacheWrite, cost }: Usage, isPriced: boolean): Spent {
  const unpriced = isPriced ? 0 : 1
  return { requests: 1, tokens: totalTokens, input, output, cacheRead, cacheWrite, usd: cost.total, unpriced, saved: 0 }
}

/** US dollars of one stored answer. A cost of zero is taken for an unknown one: most models are not free. */
export function storedUsd({ cost, totalTokens }: Usage): number | null {
  return cost.total > 0 || totalTokens === 0 ? cost.total : null
}

export function addSpent(a: Spent, b: Spent): Spent {
  return combine(a, b, (x, y) => x + y)
}

/** Totals that only grow: the later of two states, field by field. */
export function laterSpent(a: Spent, b: Spent): Spent {
  return combine(a, b, Math.max)
}

/** What is left when `b` did not happen after all. */
export function lessSpent(a: Spent, b: Spent): Spent {
  return combine(a, b, (x, y) => Math.max(0, x - y))
}

/** US dollars; null when none of the requests had a price. */
export function usdOf({ requests, unpriced, usd }: Spent): number | null {
  return unpriced > 0 && unpriced >= requests ? null : usd
}

/** The form of a turn's cost on the wire. */
export interface TurnUsage {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly usd: number | null
}

export function toTurnUsage(spent: Spent): TurnUsage {
  const { input, output, cacheRead, cacheWrite } = spent
  return { input, output, cacheRead, cacheWrite, usd: usdOf(spent) }
}

function combine(a: Spent, b: Spent, join: (x: number, y: number) => number): Spent {
  return {
    requests: join(a.requests, b.requests),
    tokens: join(a.tokens, b.tokens),
    input: join(a.input, b.input),
    output: join(a.output, b.output),
    cacheRead: join(a.cacheRead, b.cacheRead),
    cacheWrite: join(a.cacheWrite, b.cacheWrite),
    usd: join(a.usd, b.usd),
    unpriced: join(a.unpriced, b.unpriced),
    saved: join(a.saved, b.saved),
  }
}

/** One hour of the ledger: of a model and a channel, or of a session. */
export interface UsageHour {
  /** Hours since 1970, UTC. */
  readonly hour: number
  readonly model?: string
  readonly channel?: string
  readonly session?: string
  readonly spent: Spent
}

export const USAGE_GROUPS = ['model', 'channel', 'session'] as const
export const USAGE_BUCKETS = ['hour', 'day'] as const

export interface UsageQuery {
  /** Unix ms; the hours that begin in `[from, to)`. */
  readonly from: number
  readonly to: number
  readonly by: (typeof USAGE_GROUPS)[number]
  readonly bucket: (typeof USAGE_BUCKETS)[number]
}

export interface UsageRow {
  /** Unix ms at which the hour or the day (UTC) begins. */
  readonly at: number
  readonly group: string
  readonly requests: number
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
  /** Null when the price of none of the requests is known. */
  readonly usd: number | null
  /** Requests that `usd` lacks because their model has no known price. */
  readonly unpriced: number
  readonly saved: number
}

const HOUR_MS = 3_600_000
const HOURS_OF_DAY = 24

/** Oldest first, then by group. */
export function summarizeUsage(hours: Iterable<UsageHour>, { from, to, by, bucket }: UsageQuery): readonly UsageRow[] {
  const width = bucket === 'hour' ? 1 : HOURS_OF_DAY
  const groups = new Map<string, { readonly at: number; readonly group: string; spent: Spent }>()
  for (const row of hours) {
    const begin = row.hour * HOUR_MS
    if (begin < from || begin >= to) continue
    const at = Math.floor(row.hour / width) * width * HOUR_MS
    const group = row[by] ?? ''
    const name = `${at}\n${group}`
    const known = groups.get(name) ?? { at, group, spent: NOTHING_SPENT }
    groups.set(name, { ...known, spent: addSpent(known.spent, row.spent) })
  }
  return [...groups.values()]
    .sort((a, b) => a.at - b.at || (a.group < b.group ? -1 : 1))
    .map(({ at, group, spent }) => ({ at, group, ...toRow(spent) }))
}

function toRow(spent: Spent): Omit<UsageRow, 'at' | 'group'> {
  const { requests, input, output, cacheRead, cacheWrite, unpriced, saved } = spent
  return { requests, input, output, cacheRead, cacheWrite, usd: usdOf(spent), unpriced, saved }
}
