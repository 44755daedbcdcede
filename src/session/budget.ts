import { GatewayError } from '../core/errors.ts'
import type { SessionId } from '../core/ids.ts'
import type { Usage } from '../storage/storage.ts'

export interface SpendingLimits {
  readonly session_tokens?: number
  readonly session_usd?: number
  readonly daily_tokens?: number
  readonly daily_usd?: number
}

/** Throws `BUDGET_REACHED` with the limit that stops the next request. */
export async function checkBudget(
  sessionId: SessionId,
  usage: Pick<Usage, 'ofSession' | 'today'>,
  limits: SpendingLimits,
): Promise<void> {
  if (Object.values(limits).every((limit) => limit === undefined)) return
  const [session, today] = await Promise.all([usage.ofSession(sessionId), usage.today()])
  refuseOver(session.tokens, limits.session_tokens, 'this conversation', 'tokens', 'budget.session_tokens')
  refuseOver(session.usd, limits.session_usd, 'this conversation', 'US dollars', 'budget.session_usd')
  refuseOver(today.tokens, limits.daily_tokens, 'today', 'tokens', 'budget.daily_tokens')
  refuseOver(today.usd, limits.daily_usd, 'today', 'US dollars', 'budget.daily_usd')
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
