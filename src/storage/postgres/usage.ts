import type { Database } from '../../base/database.ts'
import type { CleanupTotals } from '../../core/change.ts'
import { NOTHING_SPENT, type Spent, summarizeUsage, type UsageHour } from '../../core/spent.ts'
import type { Usage } from '../storage.ts'
import { fromColumn, toColumn } from './column-text.ts'
import type { HeldSessions } from './held-sessions.ts'

const SUMS = `sum(requests)::bigint as requests, sum(tokens)::bigint as tokens, sum(input)::bigint as input,
  sum(output)::bigint as output, sum(cache_read)::bigint as "cacheRead", sum(cache_write)::bigint as "cacheWrite",
  sum(usd) as usd, sum(unpriced)::bigint as unpriced, sum(saved)::bigint as saved`
const OF_SESSION = {
  name: 'usage_of_session',
  text: `select ${SUMS} from usage where scope = 'session' and at = 0 and session_id = $1 having count(*) > 0`,
}
const TODAY = {
  name: 'usage_today',
  text: `select ${SUMS} from usage where scope = 'day' and at = ms(clock_timestamp()) / 86400000 having count(*) > 0`,
}
const HOURS = {
  name: 'usage_hours',
  text: `select at as hour, session_id, model, channel, ${SUMS} from usage
    where scope = $1 and at >= $2 and at < $3 group by at, session_id, model, channel`,
}
const SAVED = `steps, messages, tokens_saved as "tokensSaved", net_tokens_saved as "netTokensSaved", measured`
const SAVED_BY = { name: 'saved_by', text: `select ${SAVED} from savings where session_id = $1` }
const SAVED_IN_ALL = {
  name: 'saved_in_all',
  text: `select sum(steps)::bigint as steps, sum(messages)::bigint as messages, sum(tokens_saved) as "tokensSaved",
    sum(net_tokens_saved) as "netTokensSaved", bool_and(measured) as measured from savings having count(*) > 0`,
}

const HOUR_MS = 3_600_000
const NOTHING: CleanupTotals = { steps: 0, messages: 0, tokensSaved: 0, netTokensSaved: 0, netBasis: 'measured' }

type HourRow = Spent & { readonly hour: number; session_id: string; model: string; channel: string }
export type SavingColumns = Omit<CleanupTotals, 'netBasis'> & { readonly measured: boolean }

/** `held`: totals that the last transaction of this node came to. */
export function createUsage(database: Pick<Database, 'query'>, held: Pick<HeldSessions, 'totals'>): Usage {
  return {
    async ofSession(sessionId) {
      const known = held.totals(sessionId)
      if (known !== undefined) return known.spent
      return (await database.query<Spent>(OF_SESSION, [toColumn(sessionId)]))[0] ?? NOTHING_SPENT
    },
    async today() {
      return (await database.query<Spent>(TODAY, []))[0] ?? NOTHING_SPENT
    },
    async report(query) {
      const scope = query.by === 'session' ? 'session-hour' : 'hour'
      const from = Math.floor(query.from / HOUR_MS)
      const rows = await database.query<HourRow>(HOURS, [scope, from, Math.ceil(query.to / HOUR_MS)])
      return summarizeUsage(rows.map(readHour), query)
    },
    async savedBy(sessionId) {
      const known = held.totals(sessionId)
      if (known !== undefined) return known.saved
      return readSavings((await database.query<SavingColumns>(SAVED_BY, [toColumn(sessionId)]))[0])
    },
    async savedInAll() {
      return readSavings((await database.query<SavingColumns>(SAVED_IN_ALL, []))[0])
    },
  }
}

function readHour({ hour, session_id: session, model, channel, ...spent }: HourRow): UsageHour {
  return session === ''
    ? { hour, model: fromColumn(model), channel: fromColumn(channel), spent }
    : { hour, session: fromColumn(session), spent }
}

export function readSavings(row: SavingColumns | null | undefined): CleanupTotals {
  if (row === undefined || row === null) return NOTHING
  const { measured, ...totals } = row
  return { ...totals, netBasis: measured ? 'measured' : 'estimated' }
}
