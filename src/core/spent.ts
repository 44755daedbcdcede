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
