import type { Slices } from '../base/loop-work.ts'
import type { Entry } from '../core/entry.ts'
import {
  resolveTranscriptPolicy,
  safestPolicy,
  type ModelIdentity,
  type TranscriptPolicy,
} from '../core/history-rules.ts'
import type { PreparedMessage } from '../core/message.ts'
import { maxHistoryTokens, type HistoryBudget } from './budget.ts'
import { readDecisions, type StickyDecision } from './view-records.ts'
import { fit, type Room } from './fit.ts'
import { brokenInvariant, flatten } from './invariants.ts'
import { change, unchanged, type Change, type Item, type StepContext, type StepResult } from './item.ts'
import { createPart, messagesOf, reportOf, tokensOf, type Part } from './part.ts'
import type { HistoryReport } from './report.ts'
import { prepareGrown, settle, type Grown } from './settled.ts'
import { AFTER_FITTING, BEFORE_FITTING, runSteps, totalTokens } from './steps.ts'
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
  /** The same messages and their report; a part that an earlier history had too is the same object. */
  readonly parts: readonly Part[]
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

/**
 * From transcript to request. Pure: the same input gives the same output, nothing handed in is changed. Total: whatever
 * the entries hold, the messages returned are valid for the target. Runs before every model request, inside the tool
 * loop too.
 */
export function prepareHistory(input: HistoryInput): PreparedHistory {
  const entries = activeEntries(input.entries)
  const context = contextOf(input, entries)
  const { parts, wanted, raw, decisions } = prepareGrown(entries, context) ?? prepareWhole(entries, context)
  const { calibration, contextWindow } = context.budget
  return {
    parts,
    messages: messagesOf(parts),
    report: reportOf(parts),
    tokens: { count: Math.ceil(raw * calibration), estimated: true, wanted: Math.ceil(wanted * calibration), raw },
    decisions: decisions.map((one) => ({ ...one, window: contextWindow })),
  }
}

/**
 * Prepares the beginning of a long conversation before `prepareHistory` needs it, in slices: after a start, or with
 * another model, that is thousands of messages.
 */
export function settleHistory(input: HistoryInput): Slices<void> {
  const entries = activeEntries(input.entries)
  return settle(entries, contextOf(input, entries))
}

/** Every entry looked at: what `prepareGrown` has to equal. */
function prepareWhole(entries: readonly Entry[], context: StepContext): Grown {
  const view = viewOf(entries)
  const shaped = runSteps(BEFORE_FITTING, view.items, context)
  const wanted = totalTokens(shaped.items)
  const fitted = fitAndOrder(shaped.items, context, wanted)
  const changes = [...fitted.changes]
  const items = keepInvariants(fitted.items, context, changes)
  const part = createPart(items, [view.changes, ...shaped.changes, changes])
  return { parts: [part], wanted, raw: tokensOf(part), decisions: [...shaped.decisions, ...fitted.decisions] }
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

const FIT_ATTEMPTS = 6

/** Ordering adds a few words of its own, so the room for fitting is what they leave. */
function fitAndOrder(items: readonly Item[], context: StepContext, tokens: number): Required<StepResult> {
  const limit: Room = { tokens: maxHistoryTokens(context.budget), bytes: context.policy.limits.maxRequestBytes }
  const bytes = bytesMeasure(items, limit.bytes).total
  let isSmall = context.sticky.size === 0 && tokens <= limit.tokens && bytes <= limit.bytes
  let room = limit
  for (let attempt = 1; ; attempt++) {
    const fitted = isSmall ? unchanged(items) : fit(items, context, room, tokens)
    const ordered = runSteps(AFTER_FITTING, fitted.items, context)
    const isSame = ordered.items === items
    const over = {
      tokens: (isSame ? tokens : totalTokens(ordered.items)) - limit.tokens,
      bytes: (isSame ? bytes : bytesMeasure(ordered.items, limit.bytes).total) - limit.bytes,
    }
    if ((over.tokens <= 0 && over.bytes <= 0) || attempt === FIT_ATTEMPTS) {
      const changes = [...fitted.changes, ...ordered.changes.flat()]
      return { items: ordered.items, changes, decisions: fitted.decisions ?? [] }
    }
    isSmall = false
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
