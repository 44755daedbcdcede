import { isOneOf, isRecord } from '../base/json.ts'
import type { CompactionEntry, CustomEntry, Entry, EntryDraft } from '../core/entry.ts'
import { isEntryId, type EntryId } from '../core/ids.ts'
import { optionalText, withRules, type Fields } from '../core/sound-message.ts'
import { readPath, type PathReader } from '../core/path-memory.ts'

// What earlier entries say about the view: cleanups and restores, compactions and their undos, decisions to repeat. All are
// read from the path, so that a branch has its own.

export const CLEANUP_ENTRY_TYPE = 'clew.cleanup'
export const RESTORE_ENTRY_TYPE = 'clew.restore'
/** A step whose cleanup waits for a better moment (`task.cleanup_policy: "cache-aware"`). */
const DEFERRED_ENTRY_TYPE = 'clew.cleanup_deferred'

/** Data of a `clew.cleanup` entry: what left the model's view when a step was finished. */
export interface CleanupRecord {
  readonly stepId: string
  readonly hidden: readonly EntryId[]
  /** What the model reads in place of the hidden entries. */
  readonly note: string
  readonly tokensBefore: number
  readonly tokensAfter: number
  readonly estimated: boolean
  /** Why less than usual was hidden. */
  readonly reason?: string
}

export interface ActiveCleanup {
  readonly id: EntryId
  readonly record: CleanupRecord
}

/** The cleanups in force, oldest first: written and not undone by a later `clew.restore`. */
export function activeCleanups(entries: readonly Entry[]): readonly ActiveCleanup[] {
  return [...readPath(entries, ACTIVE_CLEANUPS).byId.values()]
}

/** What the cleanups in force come to, without a look at each. */
export interface HiddenInAll {
  readonly tokensSaved: number
  /** Whether the tokens of one of them were estimated. */
  readonly estimated: boolean
}

/** Undefined when nothing is hidden. */
export function hiddenInAll(entries: readonly Entry[]): HiddenInAll | undefined {
  const { byId, tokensSaved, estimates } = readPath(entries, ACTIVE_CLEANUPS)
  return byId.size === 0 ? undefined : { tokensSaved, estimated: estimates > 0 }
}

export const cleanupInForce = (entries: readonly Entry[], id: EntryId): ActiveCleanup | undefined =>
  readPath(entries, ACTIVE_CLEANUPS).byId.get(id)

export const isStepCleaned = (entries: readonly Entry[], stepId: string): boolean =>
  (readPath(entries, ACTIVE_CLEANUPS).perStep.get(stepId) ?? 0) > 0

export const tokensSavedBy = ({ tokensBefore, tokensAfter }: CleanupRecord): number =>
  Math.max(0, tokensBefore - tokensAfter)

interface CleanupsInForce {
  readonly byId: Map<EntryId, ActiveCleanup>
  /** How many of them are of a step. */
  readonly perStep: Map<string, number>
  tokensSaved: number
  estimates: number
}

const ACTIVE_CLEANUPS: PathReader<CleanupsInForce> = {
  start: () => ({ byId: new Map(), perStep: new Map(), tokensSaved: 0, estimates: 0 }),
  add(inForce, entry) {
    if (entry.type !== 'custom') return
    const { id, customType, data } = entry
    if (customType === CLEANUP_ENTRY_TYPE && isCleanup(data)) {
      const record = soundCleanup(data)
      inForce.byId.set(id, { id, record })
      countCleanup(inForce, record, 1)
    }
    if (customType === RESTORE_ENTRY_TYPE && isRestore(data)) {
      const undone = inForce.byId.get(data.cleanup)
      if (undone !== undefined) countCleanup(inForce, undone.record, -1)
      inForce.byId.delete(data.cleanup)
    }
  },
}

function countCleanup(inForce: CleanupsInForce, record: CleanupRecord, by: 1 | -1): void {
  inForce.perStep.set(record.stepId, (inForce.perStep.get(record.stepId) ?? 0) + by)
  inForce.tokensSaved += by * tokensSavedBy(record)
  if (record.estimated) inForce.estimates += by
}

/** The one that `/restore` undoes: the latest still in force. */
export function latestCleanup(entries: readonly Entry[]): ActiveCleanup | undefined {
  return activeCleanups(entries).at(-1)
}

export function deferredDraft(stepId: string): EntryDraft {
  return { type: 'custom', customType: DEFERRED_ENTRY_TYPE, data: { stepId } }
}

/** The steps whose cleanup was put off and not made up for. One that was cleaned and restored is not meant again. */
export function deferredSteps(entries: readonly Entry[]): readonly string[] {
  return [...readPath(entries, DEFERRED_STEPS)]
}

const DEFERRED_STEPS: PathReader<Set<string>> = {
  start: () => new Set(),
  add(deferred, entry) {
    if (entry.type !== 'custom' || !isRecord(entry.data) || typeof entry.data['stepId'] !== 'string') return
    if (entry.customType === DEFERRED_ENTRY_TYPE) deferred.add(entry.data['stepId'])
    if (entry.customType === CLEANUP_ENTRY_TYPE) deferred.delete(entry.data['stepId'])
  },
}

/** The entries that a cleanup hides, or the cleanup that is taken back. */
export function cleanupTargets({ customType, data }: CustomEntry): readonly EntryId[] {
  if (customType === CLEANUP_ENTRY_TYPE && isCleanup(data)) return data.hidden
  return customType === RESTORE_ENTRY_TYPE && isRestore(data) ? [data.cleanup] : []
}

/** Says what is hidden; another program may have written the rest of it. */
function isCleanup(data: unknown): data is CleanupRecord & Fields {
  if (!isRecord(data) || typeof data['note'] !== 'string' || typeof data['stepId'] !== 'string') return false
  return Array.isArray(data['hidden']) && data['hidden'].every(isEntryId)
}

/** Hides what it says, and saves nothing where its numbers are none: none of them was counted then. */
function soundCleanup(record: CleanupRecord & Fields): CleanupRecord {
  const areNumbers = [record.tokensBefore, record.tokensAfter].every(Number.isFinite)
  return withRules(record, areNumbers ? RULES : WITHOUT_NUMBERS) as CleanupRecord & Fields
}

const RULES = { estimated: (value: unknown) => value !== false, reason: optionalText }
const WITHOUT_NUMBERS = { ...RULES, tokensBefore: () => 0, tokensAfter: () => 0, estimated: () => true }

function isRestore(data: unknown): data is { readonly cleanup: EntryId } {
  return isRecord(data) && isEntryId(data['cleanup'])
}

/** `details` of a compaction that takes another one back. */
export interface UndoDetails {
  readonly undoes: EntryId
  /** The compaction that is in force again, if there was one before. */
  readonly reinstates?: EntryId
  /** The command that asked for it. */
  readonly run?: string
}

export function undoDetails({ details }: CompactionEntry): UndoDetails | undefined {
  return isUndoDetails(details) ? details : undefined
}

/** The last compaction decides what the model sees. */
export function latestCompaction(entries: readonly Entry[]): CompactionEntry | undefined {
  return readPath(entries, LATEST_COMPACTION).entry
}

/** Its place on the path; -1 when there is none. */
export function latestCompactionAt(entries: readonly Entry[]): number {
  return readPath(entries, LATEST_COMPACTION).at
}

const LATEST_COMPACTION: PathReader<{ entry: CompactionEntry | undefined; at: number }> = {
  start: () => ({ entry: undefined, at: -1 }),
  copy: (latest) => ({ ...latest }),
  add(latest, entry, at) {
    if (entry.type === 'compaction') Object.assign(latest, { entry, at })
  },
}

/** Oldest first: the ones that no later entry took back. */
export function compactionsInForce(path: readonly Entry[]): readonly CompactionEntry[] {
  const inForce = new Map<EntryId, CompactionEntry>()
  for (const entry of path) {
    if (entry.type !== 'compaction') continue
    const undo = undoDetails(entry)
    if (undo === undefined) inForce.set(entry.id, entry)
    else inForce.delete(undo.undoes)
  }
  return [...inForce.values()]
}

function isUndoDetails(details: unknown): details is UndoDetails {
  return isRecord(details) && isEntryId(details['undoes'])
}

/** The custom entry that holds decisions; the turn appends it before the request it belongs to. */
export const VIEW_ENTRY_TYPE = 'clew.view'

/**
 * What a request decided about an entry and every later one repeats, so that the same bytes are sent again and the
 * provider's prompt cache stays valid. Later decisions about the same entry come on top of the earlier ones.
 */
export interface StickyDecision {
  readonly entry: EntryId
  readonly action: 'truncate' | 'trim' | 'clear' | 'leave-out'
  /** For `truncate`: the characters the result may keep. */
  readonly chars?: number
  /** The context window it was made for; a model with a larger one is not bound by it. */
  readonly window?: number
}

export const stickyEntryData = (decisions: readonly StickyDecision[]): CustomEntry['data'] => ({ decisions })

/** What was decided about each entry, in order; what clears it makes the cuts before it meaningless. */
export type StickyDecisions = ReadonlyMap<EntryId, readonly StickyDecision[]>

/** Reads what is well formed and leaves the rest: another program may have written the file. */
export function readDecisions(entries: readonly Entry[], contextWindow = 0): StickyDecisions {
  const byEntry = new Map<EntryId, readonly StickyDecision[]>()
  for (const decision of readPath(entries, DECISIONS)) {
    if (contextWindow > (decision.window ?? Infinity)) continue
    const before = byEntry.get(decision.entry) ?? []
    // Left out stays left out: results that will be are still measured, and may be cleared, before they go.
    byEntry.set(decision.entry, [...(decision.action === 'clear' ? before.filter(isLeaveOut) : before), decision])
  }
  return byEntry
}

const DECISIONS: PathReader<StickyDecision[]> = {
  start: () => [],
  copy: (decisions) => [...decisions],
  add(decisions, entry) {
    for (const decision of decisionsIn(entry)) decisions.push(decision)
  },
}

export function decisionsIn(entry: Entry): readonly StickyDecision[] {
  return entry.type === 'custom' && entry.customType === VIEW_ENTRY_TYPE ? listOf(entry.data).filter(isDecision) : []
}

export const isLeaveOut = ({ action }: StickyDecision): boolean => action === 'leave-out'

function listOf(data: unknown): readonly unknown[] {
  if (typeof data !== 'object' || data === null || !('decisions' in data)) return []
  return Array.isArray(data.decisions) ? data.decisions : []
}

function isDecision(value: unknown): value is StickyDecision {
  if (typeof value !== 'object' || value === null || !('entry' in value) || !('action' in value)) return false
  if (typeof value.entry !== 'string') return false
  if (value.action !== 'truncate') return isOneOf(value.action, ['trim', 'clear', 'leave-out'])
  return 'chars' in value && typeof value.chars === 'number' && value.chars > 0
}
