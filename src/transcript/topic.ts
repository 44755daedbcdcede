import type { Journal, JournalRecord, JournalTopic } from '../base/journal.ts'
import type { JsonValue } from '../base/json.ts'
import { isRecord } from '../base/json.ts'
import type { Change, Owner } from '../core/change.ts'
import type { SessionHeader } from '../core/entry.ts'
import type { SessionId } from '../core/ids.ts'
import { encodeLine, orderedRaw } from './line.ts'
import type { EncodedEntry } from './log.ts'

export const TRANSCRIPT_TOPIC = 'transcript'

/** Lines the journal holds and the session's file may not. */
export interface RecoveredBatch {
  /** Where in the file they were to begin. */
  readonly offset: number
  readonly headerLine: string | undefined
  readonly lines: readonly { readonly id: string; readonly line: string }[]
  readonly record: JsonValue
}

/** How appends become durable: through the journal of a home, together with everything else that commits. */
export interface TranscriptJournal {
  readonly journal: Pick<Journal, 'commit'>
  readonly topic: TranscriptTopic
  /** The storage around the transcripts; without one, appends that bring changes or an owner are refused. */
  readonly storage?: {
    /** Records and changes in one commit; throws `OWNERSHIP_LOST` for a void owner. */
    commitWith(records: readonly JournalRecord[], changes: readonly Change[], owner: Owner | undefined): Promise<void>
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

/**
 * Transcripts in the one journal of a home: a commit makes an append durable, the session's file follows unsynced and
 * is synced before the journal forgets. Pass it to `openJournal`, then both to `openFileStore`.
 */
export class TranscriptTopic implements JournalTopic {
  readonly name = TRANSCRIPT_TOPIC
  readonly #recovered = new Map<SessionId, RecoveredBatch[]>()
  /** How long each file is known to be: one that is shorter has lost something. */
  readonly #sizes = new Map<SessionId, number>()
  #dirty = new Set<SessionId>()
  #owner: TopicOwner | undefined

  attach(owner: TopicOwner): void {
    this.#owner = owner
  }

  /** Live records are written to their file by the transcript that committed them; recovered ones wait here for `reconcile`. */
  apply(data: unknown): void {
    if (!isRecord(data) || typeof data['s'] !== 'string') return
    const sessionId = data['s'] as SessionId
    if (data['gone'] === true) {
      this.#recovered.delete(sessionId)
      this.#dirty.delete(sessionId)
      this.#sizes.delete(sessionId)
      return
    }
    if (typeof data['z'] === 'number') {
      // Only at recovery: live sizes come from those who write.
      if (this.#owner === undefined) this.#sizes.set(sessionId, data['z'])
      return
    }
    if (this.#owner !== undefined) {
      this.#dirty.add(sessionId)
      return
    }
    const batch = toRecovered(data)
    if (batch === undefined) return
    const batches = this.#recovered.get(sessionId) ?? []
    batches.push(batch)
    this.#recovered.set(sessionId, batches)
  }

  /** Live records whose file could not be written: from here on they are treated as if they had been recovered. */
  carry(sessionId: SessionId, records: readonly JournalRecord[]): void {
    const batches = records.flatMap(({ data }) => (isRecord(data) ? (toRecovered(data) ?? []) : []))
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
  leastSizeOf(sessionId: SessionId): number {
    return Math.min(this.#sizes.get(sessionId) ?? 0, this.#recovered.get(sessionId)?.[0]?.offset ?? Infinity)
  }

  /** Sessions whose file must be there. */
  sessionsWithFiles(): Iterable<SessionId> {
    return this.#sizes.keys()
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

  *snapshot(): Iterable<JsonValue> {
    for (const [s, z] of this.#sizes) yield { s, z }
    yield* this.unwritten()
  }

  /** Entries that are durable in the journal and not in their file yet. */
  *unwritten(): Iterable<JsonValue> {
    for (const batches of this.#recovered.values()) for (const { record } of batches) yield record
  }
}

export function appendRecord(
  sessionId: SessionId,
  offset: number,
  header: SessionHeader | undefined,
  batch: readonly EncodedEntry[],
): JournalRecord {
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

function toRecovered(data: Record<string, unknown>): RecoveredBatch | undefined {
  const { o, h, e } = data
  if (typeof o !== 'number' || !Array.isArray(e)) return undefined
  return {
    offset: o,
    headerLine: isRecord(h) ? encodeLine(h) : undefined,
    lines: e.filter(isRecord).map((raw) => ({ id: String(raw['id']), line: encodeLine(raw) })),
    record: data as JsonValue,
  }
}

async function inParallel<T>(items: readonly T[], width: number, work: (item: T) => Promise<void>): Promise<void> {
  let next = 0
  const lane = async (): Promise<void> => {
    for (let item = items[next++]; item !== undefined; item = items[next++]) await work(item)
  }
  await Promise.all(Array.from({ length: width }, lane))
}
