import type { HistoryBudget } from './budget.ts'

/** What a provider said when it refused a request for its length. */
export interface LengthRefusal {
  /** Tokens one request may have; absent when it did not say. */
  readonly contextWindow?: number
  /** Tokens it counted in the prompt. */
  readonly promptTokens?: number
  /** Its limit is one of bytes, which says nothing about the window. */
  readonly isAboutBytes?: boolean
}

/** The sizes the next request is prepared for. */
export interface Sizes {
  readonly contextWindow: number
  /** At least this, whatever earlier answers were measured with. */
  readonly calibration: number
}

export type SizesAfterRefusal = Sizes & {
  /** `told`: the provider's number. `halved`: ours was wrong by an unknown amount. `estimate`: we count too few tokens. */
  readonly by: 'told' | 'halved' | 'estimate'
}

export interface RefusedRequest {
  /** What we had counted in it, uncalibrated. */
  readonly estimate: number
  /** The provider has named its window before, and the request was prepared for that. */
  readonly isWindowTold: boolean
  /** No more than this is believed, whatever the provider says: the configuration's number. */
  readonly largestWindow: number
}

/** Refusals of one request before the conversation is given up; enough to halve the largest window to the smallest. */
export const MAX_LENGTH_REFUSALS = 16
/** Nothing that is sold or run has less; below it the refusal is about something else. */
export const SMALLEST_HALVED_WINDOW = 512

/** Estimates are lower than the truth for some scripts: a little more is left free than was measured. */
const MARGIN = 1.05
const STRICTER = 1.25
const HALF_THE_BYTES = 2

/**
 * What to believe after a refusal. A window that the provider names is its window; when the request was prepared for
 * that one already, our estimate is too low; when it names none, half of what we believe is tried. Undefined when
 * nothing smaller is left to try.
 */
export function sizesAfterRefusal(
  refusal: LengthRefusal,
  { contextWindow, calibration }: Pick<HistoryBudget, 'contextWindow' | 'calibration'>,
  { estimate, isWindowTold, largestWindow }: RefusedRequest,
): SizesAfterRefusal | undefined {
  const measured = refusal.promptTokens === undefined ? 0 : (refusal.promptTokens / Math.max(1, estimate)) * MARGIN
  const told = refusal.contextWindow === undefined ? undefined : Math.min(refusal.contextWindow, largestWindow)
  if (told !== undefined && (told !== contextWindow || !isWindowTold))
    return { contextWindow: told, calibration: Math.max(calibration, measured), by: 'told' }
  if (told !== undefined)
    return { contextWindow, calibration: Math.max(calibration * STRICTER, measured), by: 'estimate' }
  if (refusal.isAboutBytes === true) return { contextWindow, calibration: calibration * HALF_THE_BYTES, by: 'estimate' }
  const half = Math.floor(contextWindow / 2)
  return half < SMALLEST_HALVED_WINDOW ? undefined : { contextWindow: half, calibration, by: 'halved' }
}
