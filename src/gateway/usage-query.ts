import { GatewayError } from '../core/errors.ts'
import { USAGE_BUCKETS, USAGE_GROUPS, type UsageQuery } from '../core/spent.ts'

const DEFAULT_DAYS = 30
const DAY_MS = 86_400_000

/** `from`, `to` (an ISO date or time, or Unix ms), `by` and `bucket` of a request; the last 30 days by model unless given. */
export function usageQuery(url: URL, now: number): UsageQuery {
  const to = timeOf(url, 'to') ?? now + 1
  const from = timeOf(url, 'from') ?? startOfDay(to - 1) - (DEFAULT_DAYS - 1) * DAY_MS
  return { from, to, by: oneOf(url, 'by', USAGE_GROUPS, 'model'), bucket: oneOf(url, 'bucket', USAGE_BUCKETS, 'day') }
}

function startOfDay(at: number): number {
  return Math.floor(at / DAY_MS) * DAY_MS
}

function timeOf(url: URL, name: string): number | undefined {
  const text = url.searchParams.get(name)
  if (text === null || text === '') return undefined
  const at = /^\d{10,15}$/u.test(text) ? Number(text) : isIso(text) ? Date.parse(text) : Number.NaN
  if (Number.isNaN(at))
    throw new GatewayError(
      'FIELD_INVALID',
      `${name} must be a date (2026-11-16), a time (2026-11-16T12:00:00Z) or Unix ms`,
      {
        field: name,
      },
    )
  return at
}

const isIso = (text: string): boolean => /^\d{4}-\d\d-\d\d(?:T[\d:.]{4,12}(?:Z|[+-]\d\d:\d\d))?$/u.test(text)

function oneOf<T extends string>(url: URL, name: string, known: readonly T[], otherwise: T): T {
  const given = url.searchParams.get(name)
  if (given === null || given === '') return otherwise
  const found = known.find((value) => value === given)
  if (found === undefined)
    throw new GatewayError('FIELD_INVALID', `${name} must be one of ${known.join(', ')}`, { field: name })
  return found
}
