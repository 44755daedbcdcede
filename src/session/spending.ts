import type { Change, CleanupTotals } from '../core/change.ts'
import { GatewayError } from '../core/errors.ts'
import type { SessionId } from '../core/ids.ts'
import { addSpent, NOTHING_SPENT, spentOn, type Spent } from '../core/spent.ts'
import type { Storage, Usage } from '../storage/storage.ts'
import type { SavingsAccount, Spending } from '../turn/deps.ts'

export interface SpendingLimits {
  readonly session_tokens?: number
  readonly session_usd?: number
  readonly daily_tokens?: number
  readonly daily_usd?: number
}

export interface SpendingDeps {
  readonly storage: Pick<Storage, 'usage'>
  readonly limits: SpendingLimits
  /** For the metrics; `model` is `provider/model`. */
  onSpent(model: string, spent: Spent): void
}

/** What one turn costs, for the ledger, for the metrics and for its own answer. */
export function createSpending(
  channel: string,
  session: SessionId,
  { storage, limits, onSpent }: SpendingDeps,
): Spending {
  let ofTurn = NOTHING_SPENT
  const record = (model: string, spent: Spent): readonly Change[] => {
    ofTurn = addSpent(ofTurn, spent)
    onSpent(model, spent)
    return [{ kind: 'spend', sessionId: session, model, channel, spent }]
  }
  return {
    check: () => checkBudget(session, storage.usage, limits),
    record: ({ name, isPriced }, ...paid) =>
      record(name, paid.map((one) => spentOn(one, isPriced)).reduce(addSpent, NOTHING_SPENT)),
    recordSaved: ({ name }, saved) => (saved > 0 ? record(name, { ...NOTHING_SPENT, saved }) : []),
    ofTurn: () => ofTurn,
  }
}

const NOTHING_SAVED: CleanupTotals = {
  steps: 0,
  messages: 0,
  tokensSaved: 0,
  netTokensSaved: 0,
  netBasis: 'measured',
}

/** What cleanups save of one conversation, for its ledger. */
export function savingsOf(sessionId: SessionId): SavingsAccount {
  const saved = (change: Partial<CleanupTotals>): readonly Change[] => [
    { kind: 'save', sessionId, ...NOTHING_SAVED, ...change },
  ]
  return {
    cleaned: (change) => saved(change),
    measured: ({ tokens, measured }) =>
      saved({ netTokensSaved: tokens, netBasis: measured ? 'measured' : 'estimated' }),
  }
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
