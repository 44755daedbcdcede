import type { Journal, JournalRecord } from '../base/journal.ts'
import type { Log } from '../base/log.ts'
import type { SessionId, SessionKey } from '../core/ids.ts'
import type { SessionRecord } from '../core/inbound.ts'
import { GatewayError } from '../core/errors.ts'
import type { TranscriptStore } from '../transcript/store.ts'
import type { SessionDirectory } from './directory.ts'

export interface SessionControlParts {
  readonly journal: Journal
  readonly directory: SessionDirectory
  readonly transcripts: TranscriptStore
  readonly log: Log
  readonly maxArchivedPerSession: number
  /** What was counted for a conversation goes with it. */
  forgetUsage(sessionId: SessionId): readonly JournalRecord[]
  /** Before a conversation goes; undefined when nobody wants to know. Must not throw. */
  onLeaving(key: SessionKey, sessionId: SessionId, reason: 'reset' | 'delete'): Promise<void> | undefined
}

/** Fields of a row that describe its present conversation; another one begins without them. */
const OF_ONE_CONVERSATION = ['title', 'preview', 'messages', 'contextTokens'] as const

/** The running turn of a conversation that is left, and the answers it leaves open. Its owner stops it afterwards. */
export interface LeftTurn {
  /** Now: what comes next may take a while. */
  stop(): void
  /** Makes the change durable, with the answers of what is stopped. */
  commit(change: JournalRecord): Promise<void>
}

/** Reset, delete and restore of a whole conversation. No turn of it starts meanwhile. */
export class SessionControl {
  readonly #parts: SessionControlParts
  /** Files of conversations that are no longer listed, being renamed. */
  #tidying: Promise<void> = Promise.resolve()

  constructor(parts: SessionControlParts) {
    this.#parts = parts
  }

  /**
   * A new, empty conversation under the same key. Settings and delivery stay. The old transcript is archived: the row
   * lists it, its file stays where it is. So a reset moves nothing and costs one commit.
   */
  async reset(key: SessionKey, turn: LeftTurn): Promise<void> {
    const { directory, transcripts, maxArchivedPerSession } = this.#parts
    const record = this.#recordOf(key)
    const leaving = this.#parts.onLeaving(key, record.sessionId, 'reset')
    if (leaving !== undefined) {
      turn.stop()
      await leaving
    }
    // A session that never got an answer has nothing to bring back.
    const hasTranscript = await transcripts.exists(record.sessionId)
    const at = directory.now()
    const archived = [...(record.archived ?? []), ...(hasTranscript ? [{ sessionId: record.sessionId, at }] : [])]
    const dropped = archived.slice(0, -maxArchivedPerSession)
    const next = {
      sessionId: directory.newSessionId(),
      updatedAt: at,
      archived: archived.slice(-maxArchivedPerSession),
    }
    await turn.commit(directory.change(key, next, OF_ONE_CONVERSATION))
    // What the row no longer lists is not deleted: only a delete deletes. Its name says that nobody uses it any more.
    if (dropped.length > 0) {
      this.#tidy(async () => {
        for (const old of dropped) await transcripts.archive(old.sessionId)
      })
    }
  }

  /** Resolves when every file is where it belongs. */
  async settled(): Promise<void> {
    await this.#tidying
  }

  #tidy(task: () => Promise<void>): void {
    this.#tidying = this.#tidying.then(task).catch((error: unknown) => {
      this.#parts.log.warn('an old transcript could not be renamed; it stays under its old name', {
        reason: error instanceof Error ? error.name : 'unknown',
      })
    })
  }

  /** For good: row, transcript, archived transcripts, stored replies. Files first, so that an unfinished delete can be repeated. */
  async delete(key: SessionKey, alongside: () => readonly JournalRecord[]): Promise<void> {
    const { journal, directory, transcripts } = this.#parts
    const record = this.#recordOf(key)
    await this.#parts.onLeaving(key, record.sessionId, 'delete')
    await this.settled()
    await transcripts.remove(record.sessionId)
    for (const { sessionId } of record.archived ?? []) await transcripts.remove(sessionId)
    const ids = [record.sessionId, ...(record.archived ?? []).map(({ sessionId }) => sessionId)]
    await journal.commit([directory.remove(key), ...alongside(), ...ids.flatMap((id) => this.#parts.forgetUsage(id))])
  }

  /** Brings an archived conversation back; the present one takes its place in the archive. */
  async restoreArchive(key: SessionKey, sessionId: SessionId): Promise<void> {
    const { journal, directory, transcripts } = this.#parts
    await this.settled()
    const record = this.#recordOf(key)
    if (!(record.archived ?? []).some((old) => old.sessionId === sessionId)) {
      throw new GatewayError('SESSION_NOT_FOUND', 'this session has no archived conversation with that id', {
        sessionId,
      })
    }
    const at = directory.now()
    const archived = [
      ...(record.archived ?? []).filter((old) => old.sessionId !== sessionId),
      { sessionId: record.sessionId, at },
    ]
    if (!(await transcripts.exists(sessionId))) await transcripts.restore(sessionId)
    await journal.commit([directory.change(key, { sessionId, updatedAt: at, archived }, OF_ONE_CONVERSATION)])
  }

  #recordOf(key: SessionKey): SessionRecord {
    const record = this.#parts.directory.get(key)
    if (record === undefined) throw new GatewayError('SESSION_NOT_FOUND', 'no session has this key', {})
    return record
  }
}
