import { isRecord } from '../base/json.ts'
import type { CustomEntry, Entry, EntryDraft } from '../core/entry.ts'
import type { EntryId } from '../core/ids.ts'
import { readPath, type PathReader } from '../core/path-memory.ts'
import { isEntryId } from './loose.ts'

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
  return [...readPath(entries, ACTIVE_CLEANUPS).values()]
}

const ACTIVE_CLEANUPS: PathReader<Map<EntryId, ActiveCleanup>> = {
  start: () => new Map(),
  add(active, entry) {
    if (entry.type !== 'custom') return
    const { id, customType, data } = entry
    if (customType === CLEANUP_ENTRY_TYPE && isCleanupRecord(data)) active.set(id, { id, record: data })
    if (customType === RESTORE_ENTRY_TYPE && isRestore(data)) active.delete(data.cleanup)
  },
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
  if (customType === CLEANUP_ENTRY_TYPE && isCleanupRecord(data)) return data.hidden
  return customType === RESTORE_ENTRY_TYPE && isRestore(data) ? [data.cleanup] : []
}

function isCleanupRecord(data: unknown): data is CleanupRecord {
  if (!isRecord(data) || typeof data['note'] !== 'string' || typeof data['stepId'] !== 'string') return false
  return Array.isArray(data['hidden']) && data['hidden'].every(isEntryId)
}

function isRestore(data: unknown): data is { readonly cleanup: EntryId } {
  return isRecord(data) && isEntryId(data['cleanup'])
}
