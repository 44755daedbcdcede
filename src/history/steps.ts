import { estimateMessageTokens } from '../core/tokens.ts'
import { annotateInterSessionUserMessages } from './annotate-inter-session.ts'
import type { StickyDecision } from './decisions.ts'
import { sanitizeSessionMessagesImages } from './images.ts'
import type { Change, Item, Step, StepContext } from './item.ts'
import { limitHistoryTurns } from './limit-turns.ts'
import { downgradeOpenAIReasoningBlocks } from './openai-reasoning.ts'
import { pairResults, sanitizeToolUseResultPairing, showOrphansAsContext } from './pair-results.ts'
import { pruneContext } from './prune.ts'
import { mergeQueuedMessages } from './queued-messages.ts'
import { stripToolResultDetails } from './strip-details.ts'
import { sanitizeThinking } from './thinking.ts'
import { sanitizeToolCallInputs } from './tool-call-inputs.ts'
import { splitParallelCalls, tellToolCalls } from './tool-calls.ts'
import { truncateOversizedToolResults } from './truncate-results.ts'
import { applyTurnOrder } from './turn-order.ts'
import { validateTurns } from './validate-turns.ts'

export const BEFORE_FITTING: readonly Step[] = [
  annotateInterSessionUserMessages,
  limitHistoryTurns,
  sanitizeToolCallInputs,
  // Before reasoning, because which calls stay and where a turn ends decide what of it may stay; and before anything
  // is cut, because what a result says decides whether it is real and whether it repeats another.
  (items, { policy }) => pairResults(items, policy),
  sanitizeThinking,
  downgradeOpenAIReasoningBlocks,
  sanitizeSessionMessagesImages,
  pruneContext,
  truncateOversizedToolResults,
  stripToolResultDetails,
  (items) => showOrphansAsContext(items),
]

export const AFTER_FITTING: readonly Step[] = [
  (items, { policy }) => sanitizeToolUseResultPairing(items, policy, 'pair-again'),
  tellToolCalls,
  mergeQueuedMessages,
  applyTurnOrder,
  validateTurns,
  // Once more on the final turns: a placeholder or a merge can make an image older than it was.
  sanitizeSessionMessagesImages,
  splitParallelCalls,
]

export interface Progress {
  readonly items: readonly Item[]
  /** Of each step, in their order. */
  readonly changes: readonly (readonly Change[])[]
  readonly decisions: readonly StickyDecision[]
}

export function runSteps(steps: readonly Step[], start: readonly Item[], context: StepContext): Progress {
  let items = start
  const changes: (readonly Change[])[] = []
  const decisions: StickyDecision[] = []
  for (const step of steps) {
    const done = step(items, context)
    items = done.items
    changes.push(done.changes)
    if (done.decisions !== undefined) decisions.push(...done.decisions)
  }
  return { items, changes, decisions }
}

export const totalTokens = (items: readonly Item[]): number =>
  items.reduce((sum, item) => sum + estimateMessageTokens(item.message), 0)
