import { estimateMessageTokens } from '../core/tokens.ts'
import type { PreparedMessage } from '../core/message.ts'
import { maxTokensPerResult, type HistoryBudget } from './budget.ts'

/** Where the recovery of one turn stands after the provider said that a request was too long. */
export interface OverflowState {
  /** Compactions tried for this reason, successful or not. */
  readonly compactions: number
  readonly truncated: boolean
  readonly compactionFailed: boolean
  /** `hasLargeResults` of the messages that were refused. */
  readonly hasLargeResults: boolean
}

export type OverflowStep =
  /** Prepare again with this budget, then send. */
  | { readonly kind: 'truncate'; readonly budget: HistoryBudget }
  /** Compact, then prepare and send; the budget takes the refusal into account. */
  | { readonly kind: 'compact'; readonly budget: HistoryBudget }
  | { readonly kind: 'give-up'; readonly reason: 'context_overflow' | 'compaction_failure' }

export const MAX_OVERFLOW_COMPACTIONS = 3

/**
 * What to do next: shorten large results once if they are the likely cause, else compact, at most three times, then give
 * up with a clear error. The session stays as it is and usable. The refusal itself is a measurement: the estimate was
 * too low, so the calibration rises with every step.
 */
export function planOverflowRecovery(state: OverflowState, budget: HistoryBudget): OverflowStep {
  const stricter = { ...budget, calibration: budget.calibration * 1.25 }
  if (state.hasLargeResults && !state.truncated) {
    return { kind: 'truncate', budget: { ...stricter, maxToolResultShare: budget.maxToolResultShare / 3 } }
  }
  if (state.compactionFailed) return { kind: 'give-up', reason: 'compaction_failure' }
  if (state.compactions >= MAX_OVERFLOW_COMPACTIONS) return { kind: 'give-up', reason: 'context_overflow' }
  return { kind: 'compact', budget: stricter }
}

/** Results that have been cut to their share already are still the likely cause when they fill half of it. */
export function hasLargeResults(messages: readonly PreparedMessage[], budget: HistoryBudget): boolean {
  const large = maxTokensPerResult(budget) / 2 / budget.calibration
  return messages.some((message) => message.role === 'toolResult' && estimateMessageTokens(message) > large)
}
