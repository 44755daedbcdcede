import type { Clock } from '../base/clock.ts'
import type { Ids } from '../base/ids.ts'
import type { Journal, JournalRecord, JournalTopic } from '../base/journal.ts'
import { isRecord } from '../base/json.ts'
import { GatewayError } from '../core/errors.ts'
import type { SessionId, SessionKey } from '../core/ids.ts'
import type { AcceptedMessage, SessionRecord } from '../core/inbound.ts'
import { Recency } from './recency.ts'

export interface SessionRow {
  readonly key: SessionKey
  readonly record: SessionRecord
}

export interface SessionPage {
  readonly sessions: readonly SessionRow[]
  readonly nextCursor?: string
}

export interface ListQuery {
  readonly limit: number
  readonly cursor?: string
  readonly prefix?: string
}

const TOPIC = 'index'

/**
 * All sessions of this home, in memory, changed only through the journal. The cost of a change or of a look-up does not
 * depend on how many sessions there are.
 */
export class SessionDirectory implements JournalTopic {
  readonly name = TOPIC
  readonly #rows = new Map<SessionKey, SessionRecord>()
  readonly #keysById = new Map<SessionId, SessionKey>()
  readonly #foldedKeys = new Map<string, SessionKey>()
  readonly #recency = new Recency()
  readonly #clock: Clock
  readonly #ids: Ids
  #revision = 0

  constructor(parts: { readonly clock: Clock; readonly ids: Ids }) {
    this.#clock = parts.clock
    this.#ids = parts.ids
  }

  get size(): number {
    return this.#rows.size
  }

  /** Rises with every change; tells the exporter whether there is anything new. */
  get revision(): number {
    return this.#revision
  }

  apply(data: unknown): void {
    if (!Array.isArray(data) || typeof data[0] !== 'string') return
    const key = data[0] as SessionKey
    const record: unknown = data[2] === undefined ? data[1] : this.#merged(key, data[1], data[2], data[3])
    this.#forget(key)
    if (isSessionRecord(record)) this.#remember(key, Object.freeze(record))
    this.#revision++
  }

  *snapshot(): Iterable<unknown> {
    // Oldest first, so that replaying rebuilds the order of the list.
    for (const key of [...this.#recency.newestFirst()].toReversed()) {
      const record = this.#rows.get(key as SessionKey)
      if (record !== undefined) yield [key, record]
    }
  }

  get(key: SessionKey): SessionRecord | undefined {
    return this.#rows.get(key)
  }

  /** The key as stored: exactly as given, else the one that differs by case only. */
  resolve(key: string): SessionRow | undefined {
    const trimmed = key.trim()
    const exact = this.#row(trimmed as SessionKey)
    if (exact !== undefined) return exact
    const folded = this.#foldedKeys.get(trimmed.toLowerCase())
    return folded === undefined ? undefined : this.#row(folded)
  }

  resolveOrThrow(key: string): SessionRow {
    const row = this.resolve(key)
    if (row === undefined)
      throw new GatewayError('SESSION_NOT_FOUND', 'no session has this key', { key: key.slice(0, 200) })
    return row
  }

  byId(id: string): SessionRow | undefined {
    const key = this.#keysById.get(id as SessionId)
    return key === undefined ? undefined : this.#row(key)
  }

  /** Ordered by the last change, newest first. */
  list({ limit, cursor, prefix }: ListQuery): SessionPage {
    const sessions: SessionRow[] = []
    for (const key of this.#recency.newestFirst(decodeCursor(cursor))) {
      if (prefix !== undefined && !key.startsWith(prefix)) continue
      const row = this.#row(key as SessionKey)
      if (row === undefined) continue
      if (sessions.length === limit) return { sessions, nextCursor: encodeCursor(sessions.at(-1)) }
      sessions.push(row)
    }
    return { sessions }
  }

  rows(): Iterable<[SessionKey, SessionRecord]> {
    return this.#rows.entries()
  }

  newSessionId(): SessionId {
    return `sess_${this.#ids.hex(32)}` as SessionId
  }

  /** A time for the next change: never before the latest one, so that the order of the list is the order of changes. */
  now(): number {
    return Math.max(this.#clock.now(), this.#recency.newestTime)
  }

  put(key: SessionKey, record: SessionRecord): JournalRecord {
    return { topic: TOPIC, data: [key, record] }
  }

  /**
   * Changes some fields of the row as it will be when this record takes its place in the journal: a reset or delete
   * that is being written at the same time is neither undone nor overlooked. Without a row it begins a session.
   */
  merge(key: SessionKey, fields: Omit<SessionRecord, 'sessionId'>): JournalRecord {
    return { topic: TOPIC, data: [key, fields, this.newSessionId()] }
  }

  /** The same for a row that exists; without one nothing happens. */
  change(key: SessionKey, fields: Partial<SessionRecord>, removed: readonly string[] = []): JournalRecord {
    return { topic: TOPIC, data: [key, fields, null, removed] }
  }

  remove(key: SessionKey): JournalRecord {
    return { topic: TOPIC, data: [key, null] }
  }

  /** Changes one row and returns when the change is durable. */
  async update(journal: Journal, key: SessionKey, change: (record: SessionRecord) => SessionRecord): Promise<void> {
    const record = this.#rows.get(key)
    if (record === undefined) throw new GatewayError('SESSION_NOT_FOUND', 'no session has this key', {})
    const changed = change(record)
    const fields = Object.fromEntries(Object.entries(changed).filter(([name, value]) => record[name] !== value))
    const removed = Object.keys(record).filter((name) => !(name in changed))
    await journal.commit([this.change(key, { ...fields, updatedAt: this.now() }, removed)])
  }

  #merged(key: SessionKey, fields: unknown, newSessionId: unknown, removed: unknown): unknown {
    const known = this.#rows.get(key)
    if (!isRecord(fields)) return known
    if (typeof newSessionId === 'string') return { ...known, ...fields, sessionId: known?.sessionId ?? newSessionId }
    if (known === undefined) return undefined
    const gone = Array.isArray(removed) ? new Set<unknown>(removed) : new Set()
    return Object.fromEntries(Object.entries({ ...known, ...fields }).filter(([field]) => !gone.has(field)))
  }

  #row(key: SessionKey): SessionRow | undefined {
    const record = this.#rows.get(key)
    return record === undefined ? undefined : { key, record }
  }

  #remember(key: SessionKey, record: SessionRecord): void {
    this.#rows.set(key, record)
    this.#keysById.set(record.sessionId, key)
    this.#foldedKeys.set(key.toLowerCase(), key)
    this.#recency.touch(key, record.updatedAt)
  }

  #forget(key: SessionKey): void {
    const record = this.#rows.get(key)
    if (record === undefined) return
    this.#rows.delete(key)
    this.#recency.delete(key)
    if (this.#keysById.get(record.sessionId) === key) this.#keysById.delete(record.sessionId)
    if (this.#foldedKeys.get(key.toLowerCase()) === key) this.#foldedKeys.delete(key.toLowerCase())
  }
}

export function isSessionRecord(value: unknown): value is SessionRecord {
  return (
    isRecord(value) &&
    typeof value['sessionId'] === 'string' &&
    value['sessionId'] !== '' &&
    typeof value['updatedAt'] === 'number'
  )
}

function encodeCursor(row: SessionRow | undefined): string {
  return Buffer.from(JSON.stringify([row?.record.updatedAt ?? 0, row?.key ?? ''])).toString('base64url')
}

function decodeCursor(cursor: string | undefined): { key: string; at: number } | undefined {
  if (cursor === undefined) return undefined
  try {
    const decoded: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    if (Array.isArray(decoded) && typeof decoded[0] === 'number' && typeof decoded[1] === 'string') {
      return { at: decoded[0], key: decoded[1] }
    }
  } catch {
    // falls through to the error below
  }
  throw new GatewayError('FIELD_INVALID', 'cursor is not one that session.list returned', { field: 'cursor' })
}

/** What a message changes in its session's row: delivery follows the latest message, everything else stays. */
export function mergeForMessage(directory: SessionDirectory, message: AcceptedMessage): JournalRecord {
  const { channel, account, messageId, route } = message
  const to = route.peerId ?? route.chatId ?? route.senderId ?? messageId
  const threadId = route.topicId ?? route.threadId
  return directory.merge(message.key, {
    updatedAt: directory.now(),
    deliveryContext: { channel, to, accountId: account, ...(threadId === undefined ? {} : { threadId }) },
    lastChannel: channel,
    lastTo: to,
    lastAccountId: account,
    ...(channel === 'webhook' ? { webhookMessageId: messageId, webhookSessionId: message.key } : {}),
  })
}
