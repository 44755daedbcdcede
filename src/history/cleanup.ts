import type { CustomEntry, Entry } from '../core/entry.ts'
import type { EntryId } from '../core/ids.ts'
import type { Outcome } from '../core/outcome.ts'
import type { PreparedMessage } from '../core/message.ts'
import { activeCleanups, CLEANUP_ENTRY_TYPE, type CleanupRecord } from './cleanup-records.ts'
import { cleanupNote } from './cleanup-note.ts'
import { deriveSteps, isFailedRound, type Round, type TranscriptStep } from './derive-steps.ts'
import { prepareHistory, type HistoryInput, type PreparedHistory } from './prepare.ts'
import type { CountMessages } from './view-tokens.ts'

export interface CleanupOptions {
  readonly stepId: string
  readonly outcome: Outcome['kind']
  /** `task.cleanup_policy` */
  readonly policy: 'always' | 'cache-aware'
  /** `task.cleanup_min_tokens` */
  readonly minTokens: number
  /** How the histories are prepared that are compared: for the session's model, as the next request would be. */
  readonly input: Omit<HistoryInput, 'entries'>
  /** The one counter; both sides are counted with it. */
  readonly count: CountMessages
  /** Requests over which a broken cache has to pay off; 5 by default. */
  readonly cacheHorizonRequests?: number
}

export interface CleanupStats {
  readonly cleanedMessages: number
  /** What the model would be sent, without the system prompt. */
  readonly remainingMessages: number
  readonly tokensBefore: number
  readonly tokensSaved: number
  readonly tokensRemaining: number
  readonly estimated: boolean
}

export type CleanupPlan =
  /** `record` is the data of a `clew.cleanup` entry. `reason` says why less than everything is hidden. */
  | { readonly kind: 'clean'; readonly record: CleanupRecord; readonly stats: CleanupStats; readonly reason?: string }
  | { readonly kind: 'skipped'; readonly reason: SkipReason; readonly stats: CleanupStats }

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
 * message of a user and every other step stay. Pure; the turn appends the record.
 */
export function planCleanup(entries: readonly Entry[], options: CleanupOptions): CleanupPlan {
  const before = prepareHistory({ ...options.input, entries })
  const skip = (reason: SkipReason): CleanupPlan => ({
    kind: 'skipped',
    reason,
    stats: statsOf(before, before, 0, options),
  })
  const step = deriveSteps(entries).find((one) => one.id === options.stepId)
  if (step === undefined) return skip('unknown step')
  if (activeCleanups(entries).some(({ record }) => record.stepId === step.id)) return skip('already cleaned')
  const choice = chooseHidden(step, options.outcome)
  const [first] = choice.hidden
  if (first === undefined) return skip('nothing to hide')

  const draft = draftRecord(step, choice)
  const after = prepareHistory({ ...options.input, entries: [...entries, asEntry(draft, first)] })
  const stats = statsOf(before, after, choice.hidden.length, options)
  if (stats.tokensSaved <= 0) return skip('nothing to gain')
  if (stats.tokensSaved < options.minTokens) return skip('below the minimum')
  if (breaksInvariant(step, choice, before, after)) return skip('an invariant would break')
  if (options.policy === 'cache-aware' && costsMoreThanItSaves(step, stats, after, options))
    return skip('the cache is warm')
  const { tokensBefore, tokensRemaining, estimated } = stats
  const record = { ...draft, tokensBefore, tokensAfter: tokensRemaining, estimated }
  return { kind: 'clean', record, stats, ...(choice.reason === undefined ? {} : { reason: choice.reason }) }
}

/** The steps that `/cleanup` cleans: over, with something in the middle, and not cleaned yet. */
export function uncleanedSteps(entries: readonly Entry[]): readonly string[] {
  const cleaned = new Set(activeCleanups(entries).map(({ record }) => record.stepId))
  return deriveSteps(entries).flatMap((step, at, steps) => {
    // The last one without an answer may still be at work.
    const isOver = step.finalResponse !== undefined || at < steps.length - 1
    if (!isOver || cleaned.has(step.id)) return []
    return chooseHidden(step, 'completed').hidden.length > 0 ? [step.id] : []
  })
}

interface Choice {
  readonly hidden: readonly EntryId[]
  readonly rounds: readonly Round[]
  readonly reason?: string
}

/**
 * With a final answer everything between it and the instruction goes. Without one, only what failed and was superseded:
 * the successful rounds and the last one are what the next request builds on.
 */
function chooseHidden(step: TranscriptStep, outcome: Outcome['kind']): Choice {
  if (outcome === 'completed' && step.finalResponse !== undefined) {
    const rounds = step.rounds.filter((round) => round.answer !== step.finalResponse)
    return { rounds, hidden: hiddenOf(step, rounds) }
  }
  const rounds = step.rounds.slice(0, -1).filter(isFailedRound)
  const ended = outcome === 'completed' ? 'interrupted' : outcome
  return { rounds, hidden: hiddenOf(step, rounds), reason: `no final answer (${ended}): failed rounds only` }
}

function hiddenOf(step: TranscriptStep, rounds: readonly Round[]): readonly EntryId[] {
  const ids = new Set(
    rounds.flatMap((round) => [round.answer, ...round.results.map((one) => one.id), ...round.feedback]),
  )
  return step.entries.filter((entry) => ids.has(entry.id) && mayBeHidden(entry)).map((entry) => entry.id)
}

/** Nobody's words but the model's and the tools'. */
function mayBeHidden(entry: Entry): boolean {
  if (entry.type !== 'message') return entry.type === 'custom_message'
  return entry.message.role !== 'user' && entry.message.role !== 'system'
}

function draftRecord(step: TranscriptStep, { hidden, rounds, reason }: Choice): CleanupRecord {
  const note = cleanupNote(step.id, rounds, reason === undefined ? undefined : 'its last round is kept')
  return {
    stepId: step.id,
    hidden,
    note,
    tokensBefore: 0,
    tokensAfter: 0,
    estimated: true,
    ...(reason === undefined ? {} : { reason }),
  }
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

/** The message that ends a history which stops at an answer is not in the next request, so it counts on neither side. */
function sentMessages({ messages, report }: PreparedHistory): readonly PreparedMessage[] {
  return messages.filter((_, at) => report.messages[at]?.kind !== 'filler')
}

function statsOf(
  before: PreparedHistory,
  after: PreparedHistory,
  cleaned: number,
  { count }: CleanupOptions,
): CleanupStats {
  const remaining = sentMessages(after)
  const counted = count(sentMessages(before))
  const left = after === before ? counted : count(remaining)
  return {
    cleanedMessages: cleaned,
    remainingMessages: remaining.length,
    tokensBefore: counted.count,
    tokensSaved: counted.count - left.count,
    tokensRemaining: left.count,
    estimated: counted.estimated || left.estimated,
  }
}

function breaksInvariant(
  step: TranscriptStep,
  choice: Choice,
  before: PreparedHistory,
  after: PreparedHistory,
): boolean {
  const hidden = new Set(choice.hidden)
  if (step.finalResponse !== undefined && hidden.has(step.finalResponse)) return true
  if (step.instruction !== undefined && hidden.has(step.instruction)) return true
  if (after.report.changes.some((change) => change.step === 'invariants')) return true
  const stillSent = new Set(after.report.messages.flatMap((message) => message.entries))
  return before.report.messages.some((message) =>
    message.entries.some((entry) => !hidden.has(entry) && !stillSent.has(entry)),
  )
}

/** Prices relative to fresh input, as providers publish them: read 0.1, write 1.25. */
const CACHE_READ = 0.1
const CACHE_WRITE = 1.25

function costsMoreThanItSaves(
  step: TranscriptStep,
  stats: CleanupStats,
  after: PreparedHistory,
  options: CleanupOptions,
): boolean {
  const { now, budget } = options.input
  const lastAnswer = step.rounds.at(-1)?.message.timestamp ?? 0
  if (now - lastAnswer > budget.pruning.ttlMs) return false
  const requests = options.cacheHorizonRequests ?? 5
  const at = after.report.messages.findIndex((message) => message.entries.some((entry) => entry === step.instruction))
  const untouched = options.count(after.messages.slice(0, Math.max(0, at))).count
  const rewritten = stats.tokensRemaining - untouched
  const withCleanup =
    CACHE_READ * untouched + CACHE_WRITE * rewritten + CACHE_READ * stats.tokensRemaining * (requests - 1)
  return withCleanup >= CACHE_READ * stats.tokensBefore * requests
}
