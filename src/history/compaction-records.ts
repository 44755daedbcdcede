import { isRecord } from '../base/json.ts'
import type { CompactionEntry, Entry } from '../core/entry.ts'
import type { EntryId } from '../core/ids.ts'
import { readPath, type PathReader } from '../core/path-memory.ts'
import { isEntryId } from './loose.ts'

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
