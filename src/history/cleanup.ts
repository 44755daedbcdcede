import type { CustomEntry, Entry } from '../core/entry.ts'
import type { CleanupNumbers } from '../core/event.ts'
import type { EntryId } from '../core/ids.ts'
import { tryOutPath } from '../core/path-memory.ts'
import { USUAL_CACHE_PRICES, type CachePrices } from './cleanup-savings.ts'
import { batches, createDraft, deferredDrafts, numbersOf, type CleanupDraft } from './cleanup-drafts.ts'
import { CLEANUP_ENTRY_TYPE, isStepCleaned, type CleanupRecord } from './view-records.ts'
import { statsOf } from './cleanup-stats.ts'
import { chooseHidden, DEFAULT_RULES, type CleanupChoice, type CleanupRules } from './cleanup-strategy.ts'
import { deriveStep, deriveSteps, type StepOutcome } from './derive-steps.ts'
import { prepareHistory, type HistoryInput, type PreparedHistory } from './prepare.ts'
import type { CountMessages } from './view-tokens.ts'

/** What a cleanup has to know besides the entries. */
export interface CleanupOptions {
  readonly stepId: string
  readonly outcome: StepOutcome
  /** `task.cleanup_policy` */
  readonly policy: 'always' | 'cache-aware'
  /** `task.cleanup_min_tokens` */
  readonly minTokens: number
  /** How the histories are prepared that are compared: for the session's model, as the next request would be. */
  readonly input: Omit<HistoryInput, 'entries'>
  /** The one counter; both sides are counted with it. */
  readonly count: CountMessages
  /** What is hidden when `choice` does not say it. */
  readonly rules?: CleanupRules
  /** What of this step is hidden, already made sound (`soundChoice`). */
  readonly choice?: CleanupChoice
  /** In place of the usual note. */
  readonly summary?: string
  readonly prices?: CachePrices
  /** Requests over which the net is computed and a broken cache has to pay off; 5 by default. */
  readonly cacheHorizonRequests?: number
}

/** What a cleanup would hide, and what that saves. */
export type CleanupPlan =
  /** `records` are the data of `clew.cleanup` entries, one for each step. `reason` says why less than everything is hidden. */
  | {
      readonly kind: 'clean'
      readonly records: readonly CleanupRecord[]
      readonly stats: CleanupNumbers
      readonly reason?: string
    }
  | { readonly kind: 'skipped'; readonly reason: SkipReason; readonly stats: CleanupNumbers }

export type SkipReason =
  | 'unknown step'
  | 'already cleaned'
  | 'nothing to hide'
  | 'nothing to gain'
  | 'below the minimum'
  | 'the cache is warm'
  | 'an invariant would break'

/**
 * What hiding the finished step's middle would do. Scope is exactly that step: its instruction, its final answer, every
 * message of a user and every other step stay. A cleanup that minds the cache takes steps along that were put off
 * before, when all of them together are cheaper. Pure; the turn appends the records.
 */
export function planCleanup(entries: readonly Entry[], options: CleanupOptions): CleanupPlan {
  const { rules = DEFAULT_RULES } = options
  const before = prepareHistory({ ...options.input, entries })
  const skip = (reason: SkipReason): CleanupPlan => ({
    kind: 'skipped',
    reason,
    stats: measure(before, before, options),
  })
  const step = deriveStep(entries, options.stepId) ?? deriveSteps(entries).find(({ id }) => id === options.stepId)
  if (step === undefined) return skip('unknown step')
  if (isStepCleaned(entries, step.id)) return skip('already cleaned')
  const choice = options.choice ?? chooseHidden(step, options.outcome, rules)
  if (choice.hidden.length === 0) return skip('nothing to hide')

  const others = options.policy === 'always' ? [] : deferredDrafts(entries, deriveSteps(entries), rules)
  const own = createDraft(step, choice, options.summary)
  const attempts = batches(others, own).map((drafts) => tryOut(drafts, entries, before, options))
  const [best] = attempts
    .filter(({ problem }) => problem === undefined)
    .toSorted((a, b) => b.stats.netTokensSaved - a.stats.netTokensSaved)
  if (best === undefined) return skip(attempts.at(-1)?.problem ?? 'nothing to gain')
  const { drafts, stats } = best
  const numbers = numbersOf(drafts, stats)
  return {
    kind: 'clean',
    records: drafts.map(({ record }, at) => ({ ...record, ...numbers[at] })),
    stats,
    ...(choice.reason === undefined ? {} : { reason: choice.reason }),
  }
}

/** The steps that `/cleanup` cleans: over, with something in the middle, and not cleaned yet. */
export function uncleanedSteps(entries: readonly Entry[], rules: CleanupRules = DEFAULT_RULES): readonly string[] {
  return deriveSteps(entries).flatMap((step, at, steps) => {
    // The last one without an answer may still be at work.
    const isOver = step.finalResponse !== undefined || at < steps.length - 1
    if (!isOver || isStepCleaned(entries, step.id)) return []
    return chooseHidden(step, 'completed', rules).hidden.length > 0 ? [step.id] : []
  })
}

interface Attempt {
  readonly drafts: readonly CleanupDraft[]
  readonly stats: CleanupNumbers
  /** Why it is not to be done. */
  readonly problem?: SkipReason | undefined
}

function tryOut(
  drafts: readonly CleanupDraft[],
  entries: readonly Entry[],
  before: PreparedHistory,
  options: CleanupOptions,
): Attempt {
  const added = drafts.flatMap(({ record }) => record.hidden.slice(0, 1).map((id) => asEntry(record, id)))
  const after = prepareHistory({ ...options.input, entries: tryOutPath(entries, added) })
  const stats = measure(before, after, options, drafts)
  return { drafts, stats, problem: problemOf(stats, options) ?? brokenInvariant(drafts, before, after) }
}

function measure(
  before: PreparedHistory,
  after: PreparedHistory,
  { input, count, prices = USUAL_CACHE_PRICES, cacheHorizonRequests: requests = 5 }: CleanupOptions,
  drafts: readonly CleanupDraft[] = [],
): CleanupNumbers {
  const cleaned = drafts.reduce((sum, { record }) => sum + record.hidden.length, 0)
  return statsOf(before, after, { cleaned, count, prices, requests, now: input.now, ttlMs: input.budget.pruning.ttlMs })
}

function problemOf({ tokensSaved, netTokensSaved }: CleanupNumbers, options: CleanupOptions): SkipReason | undefined {
  if (tokensSaved <= 0) return 'nothing to gain'
  if (tokensSaved < options.minTokens) return 'below the minimum'
  return options.policy === 'cache-aware' && netTokensSaved <= 0 ? 'the cache is warm' : undefined
}

/** Under the id of an entry that is no cleanup: nothing else looks at it. */
function asEntry(data: CleanupRecord, id: EntryId): CustomEntry {
  return {
    type: 'custom',
    customType: CLEANUP_ENTRY_TYPE,
    id,
    parentId: null,
    timestamp: '1970-01-01T00:00:00.000Z',
    data,
  }
}

function brokenInvariant(
  drafts: readonly CleanupDraft[],
  before: PreparedHistory,
  after: PreparedHistory,
): SkipReason | undefined {
  const hidden = new Set(drafts.flatMap(({ record }) => record.hidden))
  // What both have in common is sent all the same, and is the most of a long conversation.
  const differs = before.parts.findIndex((part, at) => part !== after.parts[at])
  const [mine, yours] = [before, after].map(({ parts }) => parts.slice(differs < 0 ? parts.length : differs))
  const stillSent = new Set(yours?.flatMap(({ report }) => report.flatMap((message) => message.entries)))
  const isBroken =
    drafts.some(({ step: { finalResponse, instruction } }) =>
      [finalResponse, instruction].some((id) => id !== undefined && hidden.has(id)),
    ) ||
    yours?.some(({ changes }) => changes.some((own) => own.some((change) => change.step === 'invariants'))) === true ||
    mine?.some(({ report }) =>
      report.some((message) => message.entries.some((entry) => !hidden.has(entry) && !stillSent.has(entry))),
    ) === true
  return isBroken ? 'an invariant would break' : undefined
}
