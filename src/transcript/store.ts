import type { Entry, EntryDraft, SessionHeader } from '../core/entry.ts'
import type { EntryId, RunId, SessionId } from '../core/ids.ts'
import type { Change, Owner } from '../core/change.ts'
import type { Message, Provenance } from '../core/message.ts'

/** Where transcripts live. Implementations: files, memory, later PostgreSQL; all run `describeTranscriptStore`. */
export interface TranscriptStore {
  /**
   * Creates the transcript when it does not exist; it reaches the disk, header and all, with its first append. Opening
   * a healthy one changes nothing on disk. Several opens of one session share one transcript.
   */
  open(sessionId: SessionId, signal: AbortSignal): Promise<Transcript>
  exists(sessionId: SessionId): Promise<boolean>
  /** Takes the transcript out of the way without destroying it; `restore` brings it back. */
  archive(sessionId: SessionId): Promise<void>
  restore(sessionId: SessionId): Promise<void>
  /** For good: the transcript, its archive and its blobs. */
  remove(sessionId: SessionId): Promise<void>
  close(): Promise<void>
}

/**
 * One conversation's append-only tree. Entries returned are frozen. All methods of one transcript run in the order they
 * were called.
 */
export interface Transcript {
  readonly sessionId: SessionId
  readonly header: SessionHeader
  readonly leafId: EntryId | null
  /** What opening had to repair, worst first; empty for a healthy file. */
  readonly repairs: readonly RepairNote[]
  /**
   * Appends below the leaf, in order, all or none; durable when it resolves. The guard may replace a draft (size caps,
   * hooks) or put synthetic results for calls left open in front: the entries returned are what was stored.
   */
  append(drafts: readonly EntryDraft[], options?: AppendOptions): Promise<readonly Entry[]>
  /** The active context: what `buildContext` of pi-coding-agent would give, as entries and as messages. */
  context(): Promise<TranscriptContext>
  /** The whole path from the root to the leaf (or to `from`). */
  branch(from?: EntryId): Promise<readonly Entry[]>
  /** Every entry in file order. Costs what the file holds. */
  entries(): AsyncIterable<Entry>
  entry(id: EntryId): Promise<Entry | undefined>
  /** Moves the leaf, durably. Null starts a new root. */
  branchTo(id: EntryId | null, options?: Pick<AppendOptions, 'owner'>): Promise<void>
  branchWithSummary(id: EntryId | null, summary: string, options?: Pick<AppendOptions, 'owner'>): Promise<Entry>
  /** The full text of a tool result that was cut, by the id its notice names. */
  blob(id: string): Promise<string | undefined>
  close(): Promise<void>
}

/** What goes with an append. */
export interface AppendOptions {
  /** Other changes of the same transaction. Stores without a storage around them refuse them with `FIELD_INVALID`. */
  readonly changes?: readonly Change[]
  /** Fails with `OWNERSHIP_LOST`, and writes nothing, when this is no longer the session's owner. */
  readonly owner?: Owner
  /** Hears which messages these changes gave their answer, before the append resolves; not of those that had one. */
  onAnswered?(runs: readonly RunId[]): void
  /** For user messages of these drafts that carry none of their own. */
  readonly provenance?: Provenance
}

/** The part of a conversation that the model may see. */
export interface TranscriptContext {
  /**
   * Entries of the path that can matter to the model's view: from the first kept entry of the last compaction on
   * (that compaction included, where it stands), or the whole path when there is none.
   */
  readonly entries: readonly Entry[]
  readonly messages: readonly Message[]
  readonly thinkingLevel: string
  readonly model: { readonly provider: string; readonly modelId: string } | null
}

/** One thing that opening a damaged file had to repair. */
export interface RepairNote {
  readonly kind:
    | 'torn-tail'
    | 'corrupt'
    | 'wrong-shape'
    | 'not-utf8'
    | 'header'
    | 'duplicate-id'
    | 'cycle'
    | 'relinked'
    | 'too-long'
    /** Fields of a wrong type: read as the type they should have, the line stays as it is. */
    | 'odd-fields'
    /** The file holds this line a second time. */
    | 'copy'
  readonly line: number
  readonly bytes: number
}
