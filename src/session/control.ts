import type { Clock } from '../base/clock.ts'
import type { Ids } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { Change, Owner } from '../core/change.ts'
import type { SessionId, SessionKey } from '../core/ids.ts'
import type { AcceptedMessage, ArchivedConversation, SessionRecord } from '../core/inbound.ts'
import { GatewayError } from '../core/errors.ts'
import type { Storage } from '../storage/storage.ts'
import { newSessionId, wordsOf } from './message-row.ts'

export interface SessionControlDeps {
  readonly clock: Clock
  readonly ids: Ids
  readonly storage: Storage
  readonly log: Log
  readonly maxArchivedPerSession: number
  /** Before a conversation ends; undefined when no hook wants to know. Must not throw. */
  onEnding(key: SessionKey, sessionId: SessionId, reason: 'reset' | 'delete'): Promise<void> | undefined
}

/** Fields of a row that describe its present conversation; another one begins without them. */
const OF_ONE_CONVERSATION = ['title', 'preview', 'messages', 'contextTokens'] as const

/** Those that another conversation does not bring along. */
const notIn = (fields: object): readonly string[] => OF_ONE_CONVERSATION.filter((name) => !(name in fields))

/** A new, empty conversation under the same key, as a change that its caller commits. */
export interface PlannedReset {
  readonly old: SessionId
  readonly change: Change
  /** Archived conversations that the row no longer lists. */
  readonly dropped: readonly { readonly sessionId: SessionId }[]
}

/** Reset, delete and restore of a whole conversation. Its callers see to it that no turn of it starts meanwhile. */
export class SessionControl {
  readonly #deps: SessionControlDeps
  /** Files of conversations that are no longer listed, being renamed. */
  #tidying: Promise<void> = Promise.resolve()

  constructor(deps: SessionControlDeps) {
    this.#deps = deps
  }

  /**
   * A new, empty conversation under the same key. Settings and delivery stay. The old transcript is archived: the row
   * lists it, its file stays where it is. So a reset moves nothing and costs one transaction. `written`: the conversation
   * that its caller writes to in that transaction; `first`: the message that the new one begins with and is named after.
   */
  async planReset(
    key: SessionKey,
    { written, first }: { readonly written?: SessionId | undefined; readonly first?: AcceptedMessage | undefined },
  ): Promise<PlannedReset> {
    const { clock, ids, storage, maxArchivedPerSession } = this.#deps
    const record = await this.#recordOf(key)
    // A session that never got an answer has nothing to bring back.
    const hasTranscript = written === record.sessionId || (await storage.transcripts.exists(record.sessionId))
    const latest = hasTranscript ? [archivedOf(record, clock.now())] : []
    const archived = [...(record.archived ?? []), ...latest]
    const listed = archived.slice(-maxArchivedPerSession)
    const fields = { sessionId: newSessionId(ids), archived: listed, ...(first && wordsOf(first)) }
    return {
      old: record.sessionId,
      change: { kind: 'change-session', key, fields, removed: notIn(fields), touched: true },
      dropped: archived.slice(0, -maxArchivedPerSession),
    }
  }

  /** Before a conversation ends; undefined when no hook wants to know. */
  announceEnding(key: SessionKey, sessionId: SessionId, reason: 'reset' | 'delete'): Promise<void> | undefined {
    return this.#deps.onEnding(key, sessionId, reason)
  }

  /** After a reset: what the row no longer lists is not deleted, its name says that it is out of use. */
  tidyUp({ dropped }: PlannedReset): void {
    const { transcripts } = this.#deps.storage
    if (dropped.length === 0) return
    this.#tidy(async () => {
      for (const { sessionId } of dropped) await transcripts.archive(sessionId)
    })
  }

  /** Resolves when every file is where it belongs. */
  async settled(): Promise<void> {
    await this.#tidying
  }

  #tidy(task: () => Promise<void>): void {
    this.#tidying = this.#tidying.then(task).catch((error: unknown) => {
      this.#deps.log.warn('an old transcript could not be renamed; it stays under its old name', {
        reason: error instanceof Error ? error.name : 'unknown',
      })
    })
  }

  /** For good: row, transcript, archived transcripts, stored replies. Files first, so that an unfinished delete can be repeated. */
  async delete(key: SessionKey, owner: Owner): Promise<void> {
    const { storage } = this.#deps
    const record = await this.#recordOf(key)
    await this.announceEnding(key, record.sessionId, 'delete')
    await this.settled()
    const ids = [record.sessionId, ...(record.archived ?? []).map(({ sessionId }) => sessionId)]
    for (const sessionId of ids) await storage.transcripts.remove(sessionId)
    const forgotten = ids.map((sessionId) => ({ kind: 'forget-usage', sessionId }) as const)
    await storage.transact([{ kind: 'delete-session', key }, ...forgotten], owner)
  }

  /** An archived conversation takes the place of the present one, which is archived, as a change that its caller commits. */
  async planRestore(key: SessionKey, sessionId: SessionId): Promise<Change> {
    const { clock, storage } = this.#deps
    const { transcripts } = storage
    await this.settled()
    const record = await this.#recordOf(key)
    const wanted = record.archived?.find((old) => old.sessionId === sessionId)
    if (wanted === undefined) {
      throw new GatewayError('SESSION_NOT_FOUND', 'this session has no archived conversation with that id', {
        sessionId,
      })
    }
    const others = (record.archived ?? []).filter((old) => old.sessionId !== sessionId)
    const hasTranscript = await transcripts.exists(record.sessionId)
    const archived = hasTranscript ? [...others, archivedOf(record, clock.now())] : others
    if (!(await transcripts.exists(sessionId))) await transcripts.restore(sessionId)
    const fields = { sessionId, archived, ...shownOf(wanted) }
    return { kind: 'change-session', key, fields, removed: notIn(fields), touched: true }
  }

  async #recordOf(key: SessionKey): Promise<SessionRecord> {
    const record = await this.#deps.storage.sessions.get(key)
    if (record === undefined) throw new GatewayError('SESSION_NOT_FOUND', 'no session has this key', {})
    return record
  }
}

function archivedOf(record: SessionRecord, at: number): ArchivedConversation {
  return { sessionId: record.sessionId, at, ...shownOf(record) }
}

/** What a list shows of a conversation, as far as it is known. */
function shownOf(record: Pick<SessionRecord, (typeof OF_ONE_CONVERSATION)[number]>): Partial<typeof record> {
  return Object.fromEntries(
    OF_ONE_CONVERSATION.flatMap((name) => (record[name] === undefined ? [] : [[name, record[name]]])),
  )
}
