import type { Change, Owner } from '../core/change.ts'
import type { Entry, SessionHeader } from '../core/entry.ts'
import type { EntryId, RunId } from '../core/ids.ts'
import type { ActivePath } from './context.ts'
import type { RepairNote } from './store.ts'

/** What a transcript knows about its log without reading all of it. */
export interface LogState {
  readonly header: SessionHeader
  readonly leafId: EntryId | null
  readonly active: ActivePath
  readonly repairs: readonly RepairNote[]
}

/** An entry and its line, encoded once. */
export interface EncodedEntry {
  readonly entry: Entry
  readonly line: string
}

/** What becomes durable with a batch, or not at all. */
export interface Together {
  readonly changes: readonly Change[]
  readonly owner: Owner | undefined
}

export const ALONE: Together = { changes: [], owner: undefined }

export function isAlone({ changes, owner }: Together): boolean {
  return changes.length === 0 && owner === undefined
}

/**
 * Where the entries of one transcript are kept. `FileLog` and `MemoryLog` are the two we have; everything about
 * meaning (guard, leaf, context) is in `LogTranscript` above it.
 */
export interface EntryLog {
  load(signal: AbortSignal): Promise<LogState>
  /** Takes the right to write. The new state when others wrote since we last looked, undefined when nothing changed. */
  beginWrite(signal: AbortSignal): Promise<LogState | undefined>
  /**
   * All or none; durable when it resolves, with the messages that the changes gave their answer. Only between `beginWrite`
   * and `endWrite`.
   */
  write(batch: readonly EncodedEntry[], together: Together): Promise<readonly RunId[]>
  endWrite(): Promise<void>
  /** How many hexadecimal digits a new id needs: 8 where every id is known, more where only the tail was read. */
  readonly idDigits: number
  /** True also for ids that cannot be looked up: those are long enough not to collide. */
  isIdFree(id: EntryId): boolean
  activeAt(leafId: EntryId): Promise<ActivePath>
  /** Undefined when there is no such entry. */
  path(from: EntryId): Promise<readonly Entry[] | undefined>
  find(id: EntryId): Promise<Entry | undefined>
  all(): AsyncIterable<Entry>
  /** Bytes held in memory beside the state. */
  readonly heldBytes: number
  close(): Promise<void>
}
