import { isRecord } from '../base/json.ts'
import type { Entry, EntryDraft } from '../core/entry.ts'
import type { EntryId } from '../core/ids.ts'
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
  const active = new Map<EntryId, CleanupRecord>()
  for (const entry of entries) {
    if (entry.type !== 'custom') continue
    if (entry.customType === CLEANUP_ENTRY_TYPE && isCleanupRecord(entry.data)) active.set(entry.id, entry.data)
    if (entry.customType === RESTORE_ENTRY_TYPE && isRestore(entry.data)) active.delete(entry.data.cleanup)
  }
  return [...active].map(([id, record]) => ({ id, record }))
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
  const deferred = new Set<string>()
  for (const entry of entries) {
    if (entry.type !== 'custom' || !isRecord(entry.data) || typeof entry.data['stepId'] !== 'string') continue
    if (entry.customType === DEFERRED_ENTRY_TYPE) deferred.add(entry.data['stepId'])
    if (entry.customType === CLEANUP_ENTRY_TYPE) deferred.delete(entry.data['stepId'])
  }
  return [...deferred]
}

function isCleanupRecord(data: unknown): data is CleanupRecord {
  if (!isRecord(data) || typeof data['note'] !== 'string' || typeof data['stepId'] !== 'string') return false
  return Array.isArray(data['hidden']) && data['hidden'].every(isEntryId)
}

function isRestore(data: unknown): data is { readonly cleanup: EntryId } {
  return isRecord(data) && isEntryId(data['cleanup'])
}
