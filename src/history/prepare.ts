import type { Entry } from '../core/entry.ts'
import {
  resolveTranscriptPolicy,
  safestPolicy,
  type ModelIdentity,
  type TranscriptPolicy,
} from '../core/history-rules.ts'
import type { PreparedMessage } from '../core/message.ts'
import { estimateMessageTokens } from '../core/tokens.ts'
import { annotateInterSessionUserMessages } from './annotate-inter-session.ts'
import { maxHistoryTokens, type HistoryBudget } from './budget.ts'
import { readDecisions, type StickyDecision } from './decisions.ts'
import { fit, type Room } from './fit.ts'
import { sanitizeSessionMessagesImages } from './images.ts'
import { brokenInvariant, flatten } from './invariants.ts'
import { change, type Change, type Item, type Step, type StepContext } from './item.ts'
import { limitHistoryTurns } from './limit-turns.ts'
import { downgradeOpenAIReasoningBlocks } from './openai-reasoning.ts'
import { pairResults, sanitizeToolUseResultPairing, showOrphansAsContext } from './pair-results.ts'
import { pruneContext } from './prune.ts'
import { mergeQueuedMessages } from './queued-messages.ts'
import { createReport, type HistoryReport } from './report.ts'
import { stripToolResultDetails } from './strip-details.ts'
import { sanitizeThinking } from './thinking.ts'
import { sanitizeToolCallInputs } from './tool-call-inputs.ts'
import { splitParallelCalls, tellToolCalls } from './tool-calls.ts'
import { truncateOversizedToolResults } from './truncate-results.ts'
import { applyTurnOrder } from './turn-order.ts'
import { validateTurns } from './validate-turns.ts'
import { activeEntries, viewOf } from './view.ts'
import { bytesMeasure } from './wire-bytes.ts'

/** A conversation and the model it is prepared for. */
export interface HistoryInput {
  /** The active path; the part before the last compaction's first kept entry may be missing. */
  readonly entries: readonly Entry[]
  readonly target: ModelIdentity & { readonly acceptsImages: boolean }
  readonly budget: HistoryBudget
  /** User turns to send, the new message included; 0 for all. */
  readonly historyLimit: number
  /** Unix ms. Decides only whether the provider's cache has gone cold. */
  readonly now: number
  /** `safest` leaves out everything a provider could object to; for the one retry after an unexplained refusal. */
  readonly projection?: 'normal' | 'safest'
  /** Instead of the row that fits the target. */
  readonly policy?: TranscriptPolicy
}

/** What can be sent, and a report of every difference from what is stored. */
export interface PreparedHistory {
  /** Valid for the target: paired, ordered, within every limit. Never empty. */
  readonly messages: readonly PreparedMessage[]
  readonly report: HistoryReport
  readonly tokens: HistoryTokens
  /** New ones; the turn appends them as a `clew.view` entry before it sends the request. */
  readonly decisions: readonly StickyDecision[]
}

export interface HistoryTokens {
  /** Of the messages, calibrated; without system prompt and tools. */
  readonly count: number
  readonly estimated: true
  /** What they would have been without making them fit: tells whether to compact. */
  readonly wanted: number
  /** The uncalibrated count, which the request record keeps for calibration. */
  readonly raw: number
}

const BEFORE_FITTING: readonly Step[] = [
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

const AFTER_FITTING: readonly Step[] = [
  (items, { policy }) => sanitizeToolUseResultPairing(items, policy, 'pair-again'),
  tellToolCalls,
  mergeQueuedMessages,
  applyTurnOrder,
  validateTurns,
  // Once more on the final turns: a placeholder or a merge can make an image older than it was.
  sanitizeSessionMessagesImages,
  splitParallelCalls,
]

/**
 * From transcript to request. Pure: the same input gives the same output, nothing handed in is changed. Total: whatever
 * the entries hold, the messages returned are valid for the target. Runs before every model request, inside the tool
 * loop too.
 */
export function prepareHistory(input: HistoryInput): PreparedHistory {
  const entries = activeEntries(input.entries)
  const context = contextOf(input, entries)
  const view = viewOf(entries)
  const shaped = runSteps(BEFORE_FITTING, view.items, context)
  const wanted = totalTokens(shaped.items)
  const fitted = fitAndOrder(shaped.items, context, wanted)
  const changes = [...view.changes, ...shaped.changes, ...fitted.changes]
  const items = keepInvariants(fitted.items, context, changes)
  const report = createReport(items, changes)
  const raw = report.messages.reduce((sum, message) => sum + message.tokens, 0)
  const { calibration } = context.budget
  return {
    messages: items.map((item) => item.message),
    report,
    tokens: { count: Math.ceil(raw * calibration), estimated: true, wanted: Math.ceil(wanted * calibration), raw },
    decisions: [...shaped.decisions, ...fitted.decisions].map((one) => ({
      ...one,
      window: context.budget.contextWindow,
    })),
  }
}

function contextOf(input: HistoryInput, entries: readonly Entry[]): StepContext {
  const { target, budget, historyLimit, now } = input
  const policy = input.policy ?? resolveTranscriptPolicy(target)
  const sticky = readDecisions(entries, budget.contextWindow)
  return {
    target,
    budget,
    historyLimit,
    now,
    sticky,
    policy: input.projection === 'safest' ? safestPolicy(policy) : policy,
  }
}

interface Progress {
  readonly items: readonly Item[]
  readonly changes: readonly Change[]
  readonly decisions: readonly StickyDecision[]
}

function runSteps(steps: readonly Step[], start: readonly Item[], context: StepContext): Progress {
  let items = start
  const changes: Change[] = []
  const decisions: StickyDecision[] = []
  for (const step of steps) {
    const done = step(items, context)
    items = done.items
    if (done.changes.length > 0) changes.push(...done.changes)
    if (done.decisions !== undefined) decisions.push(...done.decisions)
  }
  return { items, changes, decisions }
}

const FIT_ATTEMPTS = 6

/** Ordering adds a few words of its own, so the room for fitting is what they leave. */
function fitAndOrder(items: readonly Item[], context: StepContext, tokens: number): Progress {
  const limit: Room = { tokens: maxHistoryTokens(context.budget), bytes: context.policy.limits.maxRequestBytes }
  let room = limit
  for (let attempt = 1; ; attempt++) {
    const fitted = fit(items, context, room, tokens)
    const ordered = runSteps(AFTER_FITTING, fitted.items, context)
    const over = {
      tokens: (ordered.items === items ? tokens : totalTokens(ordered.items)) - limit.tokens,
      bytes: bytesMeasure(ordered.items, limit.bytes).total - limit.bytes,
    }
    if ((over.tokens <= 0 && over.bytes <= 0) || attempt === FIT_ATTEMPTS) {
      return { ...ordered, changes: [...fitted.changes, ...ordered.changes], decisions: fitted.decisions ?? [] }
    }
    room = { tokens: room.tokens - stepDown(over.tokens, attempt), bytes: room.bytes - stepDown(over.bytes, attempt) }
  }
}

/** A little more each time: what is cut away can bring a new marker in. */
const stepDown = (over: number, attempt: number): number => (over > 0 ? over + 32 * attempt : 0)

function keepInvariants(items: readonly Item[], context: StepContext, changes: Change[]): readonly Item[] {
  const broken = brokenInvariant(
    items.map((item) => item.message),
    context,
  )
  if (broken === undefined) return items
  changes.push(change('invariants', 'rewritten', broken))
  return flatten(items)
}

const totalTokens = (items: readonly Item[]): number =>
  items.reduce((sum, item) => sum + estimateMessageTokens(item.message), 0)
