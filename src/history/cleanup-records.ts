import { isRecord } from '../base/json.ts'
import type { Entry } from '../core/entry.ts'
import type { EntryId } from '../core/ids.ts'
import { isEntryId } from './loose.ts'

export const CLEANUP_ENTRY_TYPE = 'clew.cleanup'
export const RESTORE_ENTRY_TYPE = 'clew.restore'

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

function isCleanupRecord(data: unknown): data is CleanupRecord {
  if (!isRecord(data) || typeof data['note'] !== 'string' || typeof data['stepId'] !== 'string') return false
  return Array.isArray(data['hidden']) && data['hidden'].every(isEntryId)
}

function isRestore(data: unknown): data is { readonly cleanup: EntryId } {
  return isRecord(data) && isEntryId(data['cleanup'])
}
