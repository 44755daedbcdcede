import { addSpent, NOTHING_SPENT, usdOf, type Spent } from './spent.ts'

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
