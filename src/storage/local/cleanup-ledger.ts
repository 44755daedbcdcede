import type { JournalRecord, JournalTopic } from '../../base/journal.ts'
import { isRecord } from '../../base/json.ts'
import type { SessionId } from '../../core/ids.ts'
import type { Change, CleanupTotals } from '../../core/change.ts'

const TOPIC = 'cleanups'
/** An id and five fields. */
const BYTES_PER_ROW = 256
const NOTHING: CleanupTotals = { steps: 0, messages: 0, tokensSaved: 0, netTokensSaved: 0, netBasis: 'measured' }

interface CleanupRecord {
  readonly session: SessionId
  /** Null when they are forgotten. */
  readonly totals: CleanupTotals | null
}

/**
 * What cleanups saved, per session. An entry is committed together with the cleanup or the answer it belongs to. Records
 * carry totals, not differences: applying one twice changes nothing.
 */
export class CleanupLedger implements JournalTopic<CleanupRecord> {
  readonly name = TOPIC
  readonly #sessions = new Map<SessionId, CleanupTotals>()
  readonly #maxSessions: number

  constructor(maxSessions: number) {
    this.#maxSessions = maxSessions
  }

  get heldBytes(): number {
    return this.#sessions.size * BYTES_PER_ROW
  }
  /** Totals of records under way: what is added meanwhile is added to them. */
  readonly #counted = new Map<SessionId, CleanupTotals>()

  read(data: unknown): CleanupRecord | undefined {
    if (!isRecord(data) || typeof data['session'] !== 'string') return undefined
    const { totals } = data
    return totals === null || isTotals(totals) ? { session: data['session'] as SessionId, totals } : undefined
  }

  apply({ session, totals }: CleanupRecord): void {
    // The ones not used for longest come first and are forgotten first.
    this.#sessions.delete(session)
    if (this.#counted.get(session) === totals) this.#counted.delete(session)
    if (totals !== null) this.#sessions.set(session, totals)
    const [oldest] = this.#sessions.size > this.#maxSessions ? this.#sessions.keys() : []
    if (oldest !== undefined) this.#sessions.delete(oldest)
  }

  *snapshot(): Iterable<CleanupRecord> {
    for (const [session, totals] of this.#sessions) yield { session, totals }
  }

  ofSession(session: SessionId): CleanupTotals {
    return this.#sessions.get(session) ?? NOTHING
  }

  /** Of all sessions together. */
  total(): CleanupTotals {
    return [...this.#sessions.values()].reduce(add, NOTHING)
  }

  recordOf({ sessionId, kind: _kind, ...added }: Extract<Change, { kind: 'save' }>): JournalRecord {
    const totals = add(this.#counted.get(sessionId) ?? this.ofSession(sessionId), added)
    this.#counted.set(sessionId, totals)
    return { topic: TOPIC, data: { session: sessionId, totals } }
  }

  /** The record could not be stored. */
  dropped({ topic, data }: JournalRecord): void {
    if (topic !== TOPIC || !isRecord(data)) return
    const session = data['session'] as SessionId
    if (this.#counted.get(session) === data['totals']) this.#counted.delete(session)
  }

  forget(session: SessionId): JournalRecord {
    return { topic: TOPIC, data: { session, totals: null } }
  }
}

function add(a: CleanupTotals, b: CleanupTotals): CleanupTotals {
  return {
    steps: a.steps + b.steps,
    messages: a.messages + b.messages,
    tokensSaved: a.tokensSaved + b.tokensSaved,
    netTokensSaved: a.netTokensSaved + b.netTokensSaved,
    netBasis: a.netBasis === 'measured' && b.netBasis === 'measured' ? 'measured' : 'estimated',
  }
}

function isTotals(value: unknown): value is CleanupTotals {
  return (
    isRecord(value) &&
    ['steps', 'messages', 'tokensSaved', 'netTokensSaved'].every((field) => typeof value[field] === 'number') &&
    (value['netBasis'] === 'measured' || value['netBasis'] === 'estimated')
  )
}
