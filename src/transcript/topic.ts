import type { JournalRecord, JournalTopic, RecordLog } from '../base/journal.ts'
import { isRecord } from '../base/json.ts'
import type { Change, Owner } from '../core/change.ts'
import type { SessionHeader } from '../core/entry.ts'
import { GatewayError } from '../core/errors.ts'
import type { RunId, SessionId } from '../core/ids.ts'
import { encodeLine, orderedRaw } from './line.ts'
import type { EncodedEntry } from './log.ts'

export const TRANSCRIPT_TOPIC = 'transcript'

/** Entries behind a place in the file of a session; the header with the first of them. */
interface AppendedLines {
  readonly s: SessionId
  readonly o: number
  readonly h: object | undefined
  readonly e: readonly { readonly id?: unknown }[]
}

type TranscriptRecord =
  | AppendedLines
  /** How long the file is. */
  | { readonly s: SessionId; readonly z: number }
  | { readonly s: SessionId; readonly gone: true }

export interface AppendRecord extends JournalRecord {
  readonly data: AppendedLines
}

/** Lines the journal holds and the session's file may not. */
export interface RecoveredBatch {
  /** Where in the file they were to begin. */
  readonly offset: number
  readonly headerLine: string | undefined
  readonly lines: readonly { readonly id: string; readonly line: string }[]
  readonly record: AppendedLines
}

/** How appends become durable: through the journal of a home, together with everything else that commits. */
export interface TranscriptJournal {
  readonly journal: RecordLog
  readonly topic: TranscriptTopic
  /** The storage around the transcripts; without one, appends that bring changes or an owner are refused. */
  readonly storage?: {
    /** Records and changes in one commit; throws `OWNERSHIP_LOST` for a void owner. With the messages that it answered. */
    commitWith(
      records: readonly JournalRecord[],
      changes: readonly Change[],
      owner: Owner | undefined,
    ): Promise<readonly RunId[]>
    requireOwner(owner: Owner | undefined): void
  }
}

/** What the topic asks of the store once there is one. */
export interface TopicOwner {
  /** Puts recovered lines into the session's file. */
  reconcile(sessionId: SessionId): Promise<void>
  /** Makes the session's file durable, after the writes under way. */
  sync(sessionId: SessionId): Promise<void>
  /** Makes the names of new files durable. */
  syncNames(): Promise<void>
}

/** How long the files of transcripts are known to be. */
export interface FileSizes {
  find(sessionId: SessionId): Promise<number | undefined>
  set(sessionId: SessionId, bytes: number): void
  delete(sessionId: SessionId): void
  /** The one set last comes first. */
  newestFirst(): AsyncIterable<readonly [SessionId, number]>
  /** What has to be in a snapshot: all of them, or none where a file has them. */
  held(): Iterable<readonly [SessionId, number]>
}

function sizesInMemory(): FileSizes {
  const sizes = new Map<SessionId, number>()
  return {
    find: async (sessionId) => sizes.get(sessionId),
    set(sessionId, bytes) {
      sizes.delete(sessionId)
      sizes.set(sessionId, bytes)
    },
    delete: (sessionId) => void sizes.delete(sessionId),
    async *newestFirst() {
      yield* [...sizes].toReversed()
    },
    held: () => sizes,
  }
}

/**
 * Transcripts in the one journal of a home: a commit makes an append durable, the session's file follows unsynced and
 * is synced before the journal forgets. Pass it to `openJournal`, then both to `openFileStore`.
 */
export class TranscriptTopic implements JournalTopic<TranscriptRecord> {
  readonly name = TRANSCRIPT_TOPIC
  readonly #recovered = new Map<SessionId, RecoveredBatch[]>()
  /** A file that is shorter has lost something. */
  readonly #sizes: FileSizes
  #dirty = new Set<SessionId>()
  #owner: TopicOwner | undefined

  constructor(sizes: FileSizes = sizesInMemory()) {
    this.#sizes = sizes
  }

  attach(owner: TopicOwner): void {
    this.#owner = owner
  }

  read(data: unknown): TranscriptRecord | undefined {
    if (!isRecord(data) || typeof data['s'] !== 'string') return undefined
    const { gone, z, o, h, e } = data
    const s = data['s'] as SessionId
    if (gone === true) return { s, gone }
    if (typeof z === 'number') return { s, z }
    if (typeof o !== 'number' || !Array.isArray(e)) return undefined
    return { s, o, h: isRecord(h) ? h : undefined, e: e.filter(isRecord) }
  }

  /** Live records are written to their file by the transcript that committed them; recovered ones wait here for `reconcile`. */
  apply(record: TranscriptRecord): void {
    const sessionId = record.s
    if ('gone' in record) {
      this.#recovered.delete(sessionId)
      this.#dirty.delete(sessionId)
      this.#sizes.delete(sessionId)
      return
    }
    if ('z' in record) {
      // Only at recovery: live sizes come from those who write.
      if (this.#owner === undefined) this.#sizes.set(sessionId, record.z)
      return
    }
    if (this.#owner !== undefined) {
      this.#dirty.add(sessionId)
      return
    }
    const batches = this.#recovered.get(sessionId) ?? []
    batches.push(toRecovered(record))
    this.#recovered.set(sessionId, batches)
  }

  /** Live records whose file could not be written: from here on they are treated as if they had been recovered. */
  carry(sessionId: SessionId, records: readonly AppendRecord[]): void {
    const batches = records.map(({ data }) => toRecovered(data))
    this.#recovered.set(sessionId, [...(this.#recovered.get(sessionId) ?? []), ...batches])
  }

  /** The session's file has this length now. */
  hasSize(sessionId: SessionId, bytes: number): void {
    this.#sizes.set(sessionId, bytes)
  }

  /**
   * How long the file is at least, before recovered lines are put into it: what it held when the journal last forgot
   * was durable, and from the first recovered line on the journal has it.
   */
  async leastSizeOf(sessionId: SessionId): Promise<number> {
    return this.#leastOf(sessionId, (await this.#sizes.find(sessionId)) ?? 0)
  }

  /** Least sizes of files, those written last first. */
  async *leastSizes(): AsyncIterable<readonly [SessionId, number]> {
    for await (const [sessionId, bytes] of this.#sizes.newestFirst()) yield [sessionId, this.#leastOf(sessionId, bytes)]
  }

  #leastOf(sessionId: SessionId, known: number): number {
    return Math.min(known, this.#recovered.get(sessionId)?.[0]?.offset ?? Infinity)
  }

  recoveredOf(sessionId: SessionId): readonly RecoveredBatch[] | undefined {
    return this.#recovered.get(sessionId)
  }

  /** The file holds them now; they still need a sync. */
  reconciled(sessionId: SessionId): void {
    this.#recovered.delete(sessionId)
    this.#dirty.add(sessionId)
  }

  /** Everything of this session is durable where it belongs. */
  synced(sessionId: SessionId): void {
    this.#dirty.delete(sessionId)
  }

  async settle(): Promise<void> {
    const owner = this.#owner
    if (owner === undefined) return
    // A session that cannot be reconciled now stays recovered, and `snapshot` carries its records on.
    for (const sessionId of this.#recovered.keys()) await owner.reconcile(sessionId).catch(() => undefined)
    const dirty = this.#dirty
    this.#dirty = new Set()
    try {
      await inParallel([...dirty], 4, async (sessionId) => {
        await owner.sync(sessionId)
        dirty.delete(sessionId)
      })
      await owner.syncNames()
    } catch (error) {
      for (const sessionId of dirty) this.#dirty.add(sessionId)
      throw error
    }
  }

  *snapshot(): Iterable<TranscriptRecord> {
    for (const [s, z] of this.#sizes.held()) yield { s, z }
    yield* this.unwritten()
  }

  /** Entries that are durable in the journal and not in their file yet. */
  *unwritten(): Iterable<TranscriptRecord> {
    for (const batches of this.#recovered.values()) for (const { record } of batches) yield record
  }
}

export function appendRecord(
  sessionId: SessionId,
  offset: number,
  header: SessionHeader | undefined,
  batch: readonly EncodedEntry[],
): AppendRecord {
  const data = {
    s: sessionId,
    o: offset,
    h: header,
    e: batch.map(({ entry }) => (entry.type === 'unknown' ? orderedRaw(entry) : entry)),
  }
  // The same, out of the lines: encoding every entry a second time was a tenth of an append.
  const head = `{"s":"${sessionId}","o":${offset}${header === undefined ? '' : `,"h":${JSON.stringify(header)}`}`
  const json = `${head},"e":[${batch.map(({ line }) => line.slice(0, -1)).join()}]}`
  return { topic: TRANSCRIPT_TOPIC, data, json }
}

/** Earlier records of the session mean nothing any more: it was removed, or its file is durable and moves away. */
export function goneRecord(sessionId: SessionId): JournalRecord {
  return { topic: TRANSCRIPT_TOPIC, data: { s: sessionId, gone: true } }
}

function toRecovered(record: AppendedLines): RecoveredBatch {
  const { o, h, e } = record
  return {
    offset: o,
    headerLine: h === undefined ? undefined : encodeLine(h),
    lines: e.map((raw) => ({ id: String(raw.id), line: encodeLine(raw) })),
    record,
  }
}

async function inParallel<T>(items: readonly T[], width: number, work: (item: T) => Promise<void>): Promise<void> {
  let next = 0
  const lane = async (): Promise<void> => {
    for (let item = items[next++]; item !== undefined; item = items[next++]) await work(item)
  }
  await Promise.all(Array.from({ length: width }, lane))
}

/** Changes that nothing would write must not look committed. */
export function requireStorage<S>(storage: S | undefined): S {
  if (storage !== undefined) return storage
  throw new GatewayError('FIELD_INVALID', 'this store has no storage for other changes', { field: 'changes' })
}
