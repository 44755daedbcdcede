import type { Slices } from '../base/loop-work.ts'
import type { Entry } from '../core/entry.ts'
import type { EntryId } from '../core/ids.ts'
import { toolCallsOf } from '../core/message.ts'
import { isRemembered, keepWith, keptWith, type KeptKind } from '../core/path-memory.ts'
import { maxHistoryTokens, maxTokensPerResult } from './budget.ts'
import { cleanupTargets, decisionsIn, isLeaveOut, type StickyDecision } from './view-records.ts'
import { hasImage, userRuns } from './images.ts'
import { brokenInvariant } from './invariants.ts'
import type { Item, StepContext } from './item.ts'
import { CALL_WITHOUT_RESULT, MISSING_RESULT } from './pair-results.ts'
import { joinParts, totalWeight, weighedPart, type Part, type WeighedPart, type Weight } from './part.ts'
import { isCold } from './prune.ts'
import { AFTER_FITTING, BEFORE_FITTING, runSteps } from './steps.ts'
import { statementsIn, viewOf, type Statements } from './view.ts'

/**
 * The beginning of a conversation, prepared once, in parts. A part ends in front of a user's message that follows an
 * answer, so many turns back that nothing usual reaches it. It holds until an entry says something about one of its own
 * (`stillSettled`), and only in a history that no limit of the whole cuts and whose rest stands by itself
 * (`prepareGrown`): these two functions are the whole of the rules.
 */
interface Settled {
  /** What the parts were prepared for. */
  readonly purpose: string
  /** So many entries of the path. */
  readonly count: number
  /** So many entries were looked at for what they say about others. */
  readonly seen: number
  /** Each larger than the next one, so that a long beginning has few. */
  readonly parts: readonly SettledPart[]
  /** Entries that it says something about and that had not come. */
  readonly strays: ReadonlySet<EntryId>
}

interface SettledPart extends WeighedPart {
  /** So many entries of the path. */
  readonly entries: number
}

const SETTLED: KeptKind<Settled> = { name: 'settled' }

/** A history of which only the end was prepared now. */
export interface Grown {
  readonly parts: readonly Part[]
  /** Tokens before fitting. */
  readonly wanted: number
  /** Tokens of the messages. */
  readonly raw: number
  readonly decisions: readonly StickyDecision[]
}

/**
 * The history of a path that grew since it was prepared before: its settled beginning as it was, then what is new.
 * Undefined where only a look at everything can tell, and for arrays that no transcript handed out.
 */
export function prepareGrown(entries: readonly Entry[], context: StepContext): Grown | undefined {
  if (!isRemembered(entries) || hasLeftOut(context)) return undefined
  for (const _ of settle(entries, context)) continue
  const settled = keptWith(entries, SETTLED)
  const start = settled === undefined ? undefined : entries[settled.count]
  if (settled?.seen !== entries.length || settled.parts.length === 0 || start === undefined) return undefined
  const rest = entries.slice(settled.count)
  if (rest.some(({ id }) => settled.strays.has(id))) return undefined

  const view = viewOf(rest, { ...statementsIn(rest), compaction: undefined })
  const isLimited = context.historyLimit > 0
  if (isLimited && view.items.filter(({ kind }) => kind === 'user').length < context.historyLimit) return undefined
  const shaped = runSteps(BEFORE_FITTING, view.items, context)
  const ordered = runSteps(AFTER_FITTING, shaped.items, context)
  const part = weighedPart(shaped.items, ordered.items, [view.changes, ...shaped.changes, ...ordered.changes])
  if (!isLimited && !startsWith(ordered.items, start.id)) return undefined
  if (!standsAlone(part, part.messages, context)) return undefined
  if (repeatsReasoning(part, settled.parts)) return undefined
  // A picture of a settled turn was shown long ago only if enough turns follow it.
  const before = totalWeight(settled.parts)
  if (before.images > 0 && userRuns(shaped.items) <= context.budget.keepImagesOfTurns) return undefined

  // Results that are shortened because there are many: those of the beginning come first.
  if (shaped.decisions.some(({ action }) => action !== 'truncate')) return undefined

  const parts = [...settled.parts, part]
  const weight = totalWeight(parts)
  const { contextWindow, calibration, pruning } = context.budget
  const couldPrune =
    shaped.decisions.length > 0 || (weight.wanted * calibration) / contextWindow >= pruning.softTrimRatio
  if (weight.resultTokens > 0 && couldPrune && isCold(view.items, context)) return undefined
  const { wanted, raw } = weight
  return fits(weight, context) ? { parts, wanted, raw, decisions: shaped.decisions } : undefined
}

/** Enough to prepare in one go; a long conversation that is opened again is settled in parts of this size. */
const PART_ENTRIES = 200

/** Settles as much of the path as may be, one part after the other, with a stop between two of them. */
export function* settle(entries: readonly Entry[], context: StepContext): Slices<void> {
  if (!isRemembered(entries)) return
  const kept = keptWith(entries, SETTLED)
  // An array from before the path grew.
  if (kept !== undefined && kept.seen > entries.length) return
  let settled = stillSettled(entries, kept, purposeOf(context))
  keepWith(entries, SETTLED, settled)
  const said = statementsIn(entries.slice(settled.count))
  let retryAt = 0
  const ends = partEnds(entries, settled.count, said, context)
  for (const end of ends) {
    if (end !== ends[0]) yield
    // What does not stand alone may do so together with what follows; tried in growing steps, it costs no square.
    if (end < retryAt && end !== ends.at(-1)) continue
    const part = settledPart(entries, { from: settled.count, end, said }, context)
    if (part === undefined || repeatsReasoning(part, settled.parts)) {
      retryAt = end + (end - settled.count)
      continue
    }
    const strays = new Set([...settled.strays, ...straysOf(entries, settled.count, end)])
    settled = { ...settled, count: end, parts: withPart(settled.parts, part), strays }
    keepWith(entries, SETTLED, settled)
  }
}

/** What still holds of the parts: those in front of the first entry that a new one says something about. */
function stillSettled(entries: readonly Entry[], kept: Settled | undefined, purpose: string): Settled {
  const none = { purpose, count: 0, seen: entries.length, parts: [], strays: new Set<EntryId>() }
  if (kept?.purpose !== purpose) return none
  const since = entries.slice(kept.seen)
  // A summary stands at the very beginning.
  if (since.some(({ type, id }) => type === 'compaction' || kept.strays.has(id))) return none
  const reached = firstReached(entries, since.flatMap(targetsOf), kept.count)
  const parts: SettledPart[] = []
  let count = 0
  for (const part of kept.parts) {
    if (count + part.entries > reached) break
    count += part.entries
    parts.push(part)
  }
  return { ...kept, count, seen: entries.length, parts }
}

/** The place of the first settled entry among these; infinite for none. */
function firstReached(entries: readonly Entry[], targets: readonly EntryId[], count: number): number {
  if (targets.length === 0) return Infinity
  const reached = new Set(targets)
  // What takes a cleanup back is about everything that the cleanup hid.
  const follow = (entry: Entry): void => {
    if (reached.has(entry.id)) for (const id of targetsOf(entry)) reached.add(id)
  }
  const open = entries.slice(count)
  open.forEach(follow)
  for (const { id } of open) reached.delete(id)
  if (reached.size === 0) return Infinity
  const beginning = entries.slice(0, count)
  beginning.forEach(follow)
  const at = beginning.findIndex(({ id }) => reached.has(id))
  return at < 0 ? Infinity : at
}

/** The entries that it says something about. */
function targetsOf(entry: Entry): readonly EntryId[] {
  if (entry.type === 'context_edit') return entry.mirrors === undefined ? [entry.targetId] : []
  return entry.type === 'custom' ? [...cleanupTargets(entry), ...decisionsIn(entry).map((one) => one.entry)] : []
}

function straysOf(entries: readonly Entry[], from: number, end: number): readonly EntryId[] {
  const own = entries.slice(from, end)
  const targets = own.flatMap(targetsOf)
  if (targets.length === 0) return []
  const ids = new Set(own.map(({ id }) => id))
  const outside = targets.filter((id) => !ids.has(id))
  if (outside.length === 0) return []
  const earlier = new Set(entries.slice(0, from).map(({ id }) => id))
  return outside.filter((id) => !earlier.has(id))
}

/**
 * Where parts may end: in front of a user's message behind an answer, so many such messages back that every picture
 * before it was shown and a cleanup of the latest steps reaches nothing of it, and never between entries that one
 * cleanup hides.
 */
function partEnds(
  entries: readonly Entry[],
  from: number,
  said: Statements,
  { budget, historyLimit }: StepContext,
): readonly number[] {
  const turns = budget.keepImagesOfTurns + 2 + historyLimit
  const questions = questionsBehindAnswers(entries, from, said)
  const settled = questions.slice(0, Math.max(0, questions.length - turns + 1))
  const ends: number[] = []
  for (const at of settled) if (at - (ends.at(-1) ?? from) >= PART_ENTRIES || at === settled.at(-1)) ends.push(at)
  return ends
}

function questionsBehindAnswers(entries: readonly Entry[], from: number, { cleanups }: Statements): readonly number[] {
  const questions: number[] = []
  const hiddenLast = new Map<EntryId, number>()
  for (let at = from; cleanups.size > 0 && at < entries.length; at++) {
    const cleanup = cleanups.get(entries[at]?.id ?? ('' as EntryId))
    if (cleanup !== undefined) hiddenLast.set(cleanup.id, at)
  }
  let within = -1
  let isAnswered = false
  for (let at = from; at < entries.length; at++) {
    const entry = entries[at]
    if (entry === undefined) continue
    const cleanup = cleanups.get(entry.id)
    if (cleanup !== undefined) within = Math.max(within, hiddenLast.get(cleanup.id) ?? -1)
    if (!isSaid(entry)) continue
    if (isAnswered && at > from && at > within && isQuestion(entry)) questions.push(at)
    isAnswered = isAnswer(entry)
  }
  return questions
}

const isSaid = ({ type }: Entry): boolean => ['message', 'custom_message', 'branch_summary'].includes(type)

const isQuestion = (entry: Entry): boolean => entry.type === 'message' && entry.message.role === 'user'

function isAnswer(entry: Entry): boolean {
  if (entry.type !== 'message' || entry.message.role !== 'assistant') return false
  return entry.message.content.length > 0 && toolCallsOf(entry.message).length === 0
}

interface Range {
  readonly from: number
  readonly end: number
  readonly said: Statements
}

/** Entries up to a user's message, prepared as what stands before it. */
function settledPart(
  entries: readonly Entry[],
  { from, end, said }: Range,
  context: StepContext,
): SettledPart | undefined {
  const [first, next] = [entries[from], entries[end]]
  if (first === undefined || next === undefined) return undefined
  const isLimited = context.historyLimit > 0
  // Every picture in it is older than those that are still shown, and every turn older than those of a limit.
  const older: StepContext = {
    ...context,
    historyLimit: isLimited ? 1 : 0,
    budget: { ...context.budget, keepImagesOfTurns: 0 },
  }
  const view = viewOf(entries.slice(from, end + 1), from === 0 ? said : { ...said, compaction: undefined })
  const shaped = runSteps(BEFORE_FITTING, view.items, older)
  const ordered = runSteps(AFTER_FITTING, shaped.items, older)
  if (shaped.decisions.length > 0) return undefined
  if (shaped.items.at(-1)?.sources[0] !== next.id || !isFrom(ordered.items.at(-1), next.id)) return undefined
  if (!isLimited && from > 0 && !startsWith(ordered.items, first.id)) return undefined
  const changes = [view.changes, ...shaped.changes, ...ordered.changes].map((own) =>
    own.filter(({ entry }) => entry !== next.id),
  )
  const part = weighedPart(shaped.items.slice(0, -1), ordered.items.slice(0, -1), changes)
  const images = isLimited ? 0 : view.items.filter(hasImage).length
  const all = ordered.items.map(({ message }) => message)
  if (!standsAlone(part, all, context)) return undefined
  return { ...part, weight: { ...part.weight, images }, entries: end - from }
}

const isFrom = (item: Item | undefined, id: EntryId): boolean => item?.sources.length === 1 && item.sources[0] === id

const startsWith = ([first]: readonly Item[], id: EntryId): boolean =>
  first?.message.role === 'user' && first.sources[0] === id

/** What a call of the part may lack without a result elsewhere being its own. */
const OWN_PAIRING: readonly string[] = [MISSING_RESULT, CALL_WITHOUT_RESULT]

/** Every result in it belongs to a call in front of it, and it is valid as a part of a history. */
function standsAlone({ changes }: Part, messages: Part['messages'], context: StepContext): boolean {
  const isPaired = changes.every((own) =>
    own.every(({ step, reason }) => (step !== 'pair-results' && step !== 'pair-again') || OWN_PAIRING.includes(reason)),
  )
  return isPaired && brokenInvariant(messages, context) === undefined
}

const repeatsReasoning = ({ reasoning }: WeighedPart, earlier: readonly WeighedPart[]): boolean =>
  reasoning.size > 0 && [...reasoning].some((id) => earlier.some((part) => part.reasoning.has(id)))

/** Like digits of a number: a part joins the one before it as soon as that is no larger. */
function withPart(parts: readonly SettledPart[], part: SettledPart): readonly SettledPart[] {
  const last = parts.at(-1)
  if (last === undefined || last.entries > part.entries) return [...parts, part]
  return withPart(parts.slice(0, -1), { ...joinParts(last, part), entries: last.entries + part.entries })
}

/** Whether no limit of the whole history cuts anything. */
function fits(weight: Weight, { budget, policy }: StepContext): boolean {
  const { calibration } = budget
  return (
    Math.max(weight.wanted, weight.raw) <= maxHistoryTokens(budget) &&
    weight.bytes <= policy.limits.maxRequestBytes &&
    weight.resultTokens <= (budget.contextWindow * budget.maxAllToolResultsShare) / calibration &&
    weight.heaviestResult * calibration <= maxTokensPerResult(budget)
  )
}

function hasLeftOut({ sticky }: StepContext): boolean {
  for (const decisions of sticky.values()) if (decisions.some(isLeaveOut)) return true
  return false
}

/** Two histories with the same purpose differ only in what their entries and their sizes are. */
function purposeOf({ target, policy, budget, historyLimit }: StepContext): string {
  const { calibration: _, fixedTokens: _f, reservedTokens: _r, ...rest } = budget
  return JSON.stringify([target, policy, rest, historyLimit])
}
