import type { Entry, MessageEntry } from '../core/entry.ts'
import type { EntryId } from '../core/ids.ts'
import { toolCallsOf, type PreparedMessage } from '../core/message.ts'
import { keepWith, keptWith, type KeptKind } from '../core/path-memory.ts'
import { estimateMessageTokens } from '../core/tokens.ts'
import { maxCharsPerResult, maxHistoryTokens, maxTokensPerResult } from './budget.ts'
import { cleanupTargets } from './cleanup-records.ts'
import { decisionsIn, isLeaveOut, type StickyDecision } from './decisions.ts'
import { hasImage, userRuns } from './images.ts'
import { brokenInvariant } from './invariants.ts'
import type { Change, Item, StepContext } from './item.ts'
import { isCold } from './prune.ts'
import { joinReports, reportItems, type HistoryReport, type MessageReport } from './report.ts'
import { textLength, textTokens } from './result-text.ts'
import { AFTER_FITTING, BEFORE_FITTING, runSteps, totalTokens } from './steps.ts'
import { openAiReasoningId } from './thinking.ts'
import { viewOf } from './view.ts'
import { bytesBound } from './wire-bytes.ts'

/** A history as the steps leave it, before it is measured against the model. */
export interface Prepared {
  readonly messages: readonly PreparedMessage[]
  readonly report: HistoryReport
  /** Tokens before fitting. */
  readonly wanted: number
  /** Tokens of the messages. */
  readonly raw: number
  readonly decisions: readonly StickyDecision[]
}

/**
 * The beginning of a conversation, prepared once. It ends before a user's message that follows an answer: what comes
 * later cannot change it, but for the cases that `prepareGrown` looks for.
 */
interface Settled extends Part {
  /** What it was prepared for. */
  readonly purpose: string
  /** So many entries of the path. */
  readonly count: number
}

/** Some entries in a row, prepared as if nothing else were there. */
interface Part {
  readonly messages: readonly PreparedMessage[]
  readonly report: readonly MessageReport[]
  /** Of each step, in their order, the view's first. */
  readonly changes: readonly (readonly Change[])[]
  readonly weight: Weight
  readonly reasoning: ReadonlySet<string>
  /** Entries that it says something about and that are not in it; only the beginning of a path may have some. */
  readonly strays: ReadonlySet<EntryId>
}

/** What limits of the whole history are compared with. */
interface Weight {
  readonly wanted: number
  readonly raw: number
  /** Bounds of the bytes before and behind the steps that order. */
  readonly bytes: number
  readonly orderedBytes: number
  readonly resultTokens: number
  readonly longestResult: number
  readonly heaviestResult: number
  readonly images: number
}

const SETTLED: KeptKind<Settled | undefined> = { name: 'settled' }

/**
 * The history of a path that grew since it was prepared before: its settled beginning as it was, then what is new.
 * Undefined where only a look at everything can tell, and for arrays that no transcript handed out.
 */
export function prepareGrown(entries: readonly Entry[], context: StepContext): Prepared | undefined {
  if (hasLeftOut(context)) return undefined
  const settled = settle(entries, context)
  const start = settled === undefined ? undefined : entries[settled.count]
  if (settled === undefined || start === undefined) return undefined
  const rest = entries.slice(settled.count)
  if (!isOwnAffair(rest) || rest.some(({ id }) => settled.strays.has(id))) return undefined
  const view = viewOf(rest)
  const isLimited = context.historyLimit > 0
  if (isLimited && view.items.filter(({ kind }) => kind === 'user').length < context.historyLimit) return undefined
  const shaped = runSteps(BEFORE_FITTING, view.items, context)
  const ordered = runSteps(AFTER_FITTING, shaped.items, context)
  const part = partOf(
    { changes: [view.changes, ...shaped.changes, ...ordered.changes], images: 0, strays: [] },
    shaped.items,
    ordered.items,
  )
  if (!isLimited && !startsWith(ordered.items, start.id)) return undefined
  if (!isSound(part, context)) return undefined
  const weight = sum(settled.weight, part.weight)
  if (settled.weight.images > 0 && userRuns(shaped.items) <= context.budget.keepImagesOfTurns) return undefined
  if (weight.resultTokens > 0 && isCold(view.items, context)) return undefined
  if (!fits(weight, context) || [...part.reasoning].some((id) => settled.reasoning.has(id))) return undefined
  return {
    messages: [...settled.messages, ...part.messages],
    report: {
      messages: joinReports(settled.report, part.report),
      changes: part.changes.flatMap((own, step) => [...(settled.changes[step] ?? []), ...own]),
    },
    wanted: weight.wanted,
    raw: weight.raw,
    decisions: shaped.decisions,
  }
}

/** The settled beginning, as far as it can reach now. */
function settle(entries: readonly Entry[], context: StepContext): Settled | undefined {
  const purpose = purposeOf(context)
  const kept = keptWith(entries, SETTLED)
  const before = kept?.purpose === purpose ? kept : undefined
  const count = settledCount(entries, before?.count ?? 0, context)
  if (count === undefined) return before
  const settled =
    extend(before, entries, count, context, purpose) ?? extend(undefined, entries, count, context, purpose)
  keepWith(entries, SETTLED, settled)
  return settled
}

function extend(
  before: Settled | undefined,
  entries: readonly Entry[],
  count: number,
  context: StepContext,
  purpose: string,
): Settled | undefined {
  const own = entries.slice(before?.count ?? 0, count)
  if (before !== undefined && (!isOwnAffair(own) || own.some(({ id }) => before.strays.has(id)))) return undefined
  const part = settledPart(own, entries[count], context)
  if (part === undefined) return undefined
  if (before === undefined) return { ...part, purpose, count }
  if ([...part.reasoning].some((id) => before.reasoning.has(id))) return undefined
  return {
    purpose,
    count,
    messages: [...before.messages, ...part.messages],
    report: joinReports(before.report, part.report),
    changes: part.changes.map((own, step) =>
      own.length === 0 ? (before.changes[step] ?? []) : [...(before.changes[step] ?? []), ...own],
    ),
    weight: sum(before.weight, part.weight),
    reasoning: new Set([...before.reasoning, ...part.reasoning]),
    strays: before.strays,
  }
}

/** Entries up to a user's message, prepared as what stands before it. */
function settledPart(own: readonly Entry[], next: Entry | undefined, context: StepContext): Part | undefined {
  if (next === undefined) return undefined
  const isLimited = context.historyLimit > 0
  // Every picture in it is older than those that are still shown, and every turn older than those of a limit.
  const older: StepContext = {
    ...context,
    historyLimit: isLimited ? 1 : 0,
    budget: { ...context.budget, keepImagesOfTurns: 0 },
  }
  const view = viewOf([...own, next])
  const images = isLimited ? 0 : view.items.filter(hasImage).length
  const shaped = runSteps(BEFORE_FITTING, view.items, older)
  const ordered = runSteps(AFTER_FITTING, shaped.items, older)
  const last = ordered.items.at(-1)
  const isLastAlone = last?.sources.length === 1 && last.sources[0] === next.id
  if (!isLastAlone) return undefined
  // A summary would outlive the limit and join the first message behind it.
  if (isLimited ? ordered.items.length > 1 : ordered.items.at(-2)?.message.role !== 'assistant') return undefined
  if (shaped.items.at(-1)?.sources[0] !== next.id || shaped.decisions.length > 0) return undefined
  const changes = [view.changes, ...shaped.changes, ...ordered.changes]
  const ofOwn = changes.map((of) => of.filter(({ entry }) => entry !== next.id))
  const part = partOf(
    { changes: ofOwn, images, strays: straysOf(own) },
    shaped.items.slice(0, -1),
    ordered.items.slice(0, -1),
  )
  return isSound({ ...part, messages: [...part.messages, last.message] }, context) ? part : undefined
}

/** Nothing in it was said about entries before it, no summary stands in it. */
function isOwnAffair(own: readonly Entry[]): boolean {
  return straysOf(own).length === 0 && own.every(({ type }) => type !== 'compaction')
}

function straysOf(own: readonly Entry[]): readonly EntryId[] {
  const targets = own.flatMap(targetsOf)
  if (targets.length === 0) return []
  const ids = new Set(own.map(({ id }) => id))
  return targets.filter((id) => !ids.has(id))
}

function targetsOf(entry: Entry): readonly EntryId[] {
  if (entry.type === 'context_edit') return entry.mirrors === undefined ? [entry.targetId] : []
  return entry.type === 'custom' ? [...cleanupTargets(entry), ...decisionsIn(entry).map((one) => one.entry)] : []
}

/** Paired in itself, and valid as a part of a history. */
function isSound({ changes, messages }: Pick<Part, 'changes' | 'messages'>, context: StepContext): boolean {
  const isPaired = changes.every((own) => own.every(({ step }) => step !== 'pair-results' && step !== 'pair-again'))
  return isPaired && brokenInvariant(messages, context) === undefined
}

interface PartFacts {
  readonly changes: Part['changes']
  readonly images: number
  readonly strays: readonly EntryId[]
}

function partOf({ changes, images, strays }: PartFacts, shaped: readonly Item[], ordered: readonly Item[]): Part {
  const report = reportItems(ordered)
  const results = shaped.flatMap(({ message }) => (message.role === 'toolResult' ? [message] : []))
  return {
    messages: ordered.map(({ message }) => message),
    report,
    changes,
    weight: {
      wanted: totalTokens(shaped),
      raw: report.reduce((all, { tokens }) => all + tokens, 0),
      bytes: bytesBound(shaped),
      orderedBytes: bytesBound(ordered),
      resultTokens: results.reduce((all, message) => all + estimateMessageTokens(message), 0),
      longestResult: results.reduce((most, message) => Math.max(most, textLength(message)), 0),
      heaviestResult: results.reduce((most, message) => Math.max(most, textTokens(message)), 0),
      images,
    },
    reasoning: reasoningIn(ordered),
    strays: new Set(strays),
  }
}

function reasoningIn(items: readonly Item[]): ReadonlySet<string> {
  const ids = items.flatMap(({ message }) => {
    if (message.role !== 'assistant') return []
    return message.content.flatMap((block) =>
      block.type === 'thinking' ? (openAiReasoningId(block.thinkingSignature ?? '') ?? []) : [],
    )
  })
  return new Set(ids)
}

function sum(a: Weight, b: Weight): Weight {
  return {
    wanted: a.wanted + b.wanted,
    raw: a.raw + b.raw,
    bytes: a.bytes + b.bytes,
    orderedBytes: a.orderedBytes + b.orderedBytes,
    resultTokens: a.resultTokens + b.resultTokens,
    longestResult: Math.max(a.longestResult, b.longestResult),
    heaviestResult: Math.max(a.heaviestResult, b.heaviestResult),
    images: a.images + b.images,
  }
}

/** Whether no limit of the whole history cuts anything. */
function fits(weight: Weight, { budget, policy }: StepContext): boolean {
  const { calibration } = budget
  const room = maxHistoryTokens(budget)
  return (
    Math.max(weight.wanted, weight.raw) <= room &&
    Math.max(weight.bytes, weight.orderedBytes) <= policy.limits.maxRequestBytes &&
    weight.resultTokens <= (budget.contextWindow * budget.maxAllToolResultsShare) / calibration &&
    weight.longestResult <= maxCharsPerResult(budget) &&
    weight.heaviestResult * calibration <= maxTokensPerResult(budget)
  )
}

const startsWith = ([first]: readonly Item[], id: EntryId): boolean =>
  first?.message.role === 'user' && first.sources[0] === id

function hasLeftOut({ sticky }: StepContext): boolean {
  for (const decisions of sticky.values()) if (decisions.some(isLeaveOut)) return true
  return false
}

/** Two histories with the same purpose differ only in what their entries and their sizes are. */
function purposeOf({ target, policy, budget, historyLimit }: StepContext): string {
  const { calibration: _, fixedTokens: _f, reservedTokens: _r, ...rest } = budget
  return JSON.stringify([target, policy, rest, historyLimit])
}

/**
 * Where the beginning may end: in front of a user's message behind an answer, so many such messages back that every
 * picture before it was shown and a cleanup of the latest steps reaches nothing of it. Undefined for no further than
 * `from`.
 */
function settledCount(
  entries: readonly Entry[],
  from: number,
  { budget, historyLimit }: StepContext,
): number | undefined {
  let turns = budget.keepImagesOfTurns + 2 + historyLimit
  let question: number | undefined
  for (let at = entries.length - 1; at > from; at--) {
    const entry = entries[at]
    if (entry?.type === 'compaction') return undefined
    if (entry === undefined || !isSaid(entry)) continue
    if (question !== undefined && isAnswer(entry) && --turns === 0) return question
    question = isQuestion(entry) ? at : undefined
  }
  return undefined
}

const isSaid = ({ type }: Entry): boolean => ['message', 'custom_message', 'branch_summary'].includes(type)

const isQuestion = (entry: Entry): entry is MessageEntry => entry.type === 'message' && entry.message.role === 'user'

function isAnswer(entry: Entry): boolean {
  if (entry.type !== 'message' || entry.message.role !== 'assistant') return false
  return entry.message.content.length > 0 && toolCallsOf(entry.message).length === 0
}
