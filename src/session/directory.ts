import type { Clock } from '../base/clock.ts'
import type { Ids } from '../base/ids.ts'
import type { Journal, JournalRecord, JournalTopic } from '../base/journal.ts'
import { isRecord } from '../base/json.ts'
import { GatewayError } from '../core/errors.ts'
import type { SessionId, SessionKey } from '../core/ids.ts'
import { callerOf, type AcceptedMessage, type Caller, type SessionRecord } from '../core/inbound.ts'
import { optionalText, withRules, type Rule } from '../core/sound-fields.ts'
import { isLocal, parseSlash } from './commands.ts'
import { Recency } from './recency.ts'
import { previewOf, titleOf } from './row-texts.ts'

export interface SessionRow {
  readonly key: SessionKey
  readonly record: SessionRecord
}

export interface SessionPage {
  readonly sessions: readonly SessionRow[]
  /** How many there are, on this page or not. */
  readonly total: number
  readonly nextCursor?: string
}

export interface ListQuery {
  readonly limit: number
  readonly cursor?: string
  readonly prefix?: string
  /** Only what this one may see. */
  readonly caller?: Caller
  /** A further condition on the row. */
  readonly keep?: (key: SessionKey, record: SessionRecord) => boolean
}

/** What a user can choose for a conversation, also before it begins. */
export type SessionSettings = Pick<SessionRecord, 'providerOverride' | 'modelOverride'>

const TOPIC = 'index'
const MAX_CHOSEN = 1_000

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
  /** Settings for conversations that have not begun, newest last. */
  readonly #chosen = new Map<SessionKey, SessionSettings>()
  readonly #clock: Clock
  readonly #ids: Ids
  #revision = 0
  #bytes = 0

  constructor(parts: { readonly clock: Clock; readonly ids: Ids }) {
    this.#clock = parts.clock
    this.#ids = parts.ids
  }

  get size(): number {
    return this.#rows.size
  }

  /** Of rows and their places in the indexes, roughly. */
  get heldBytes(): number {
    return this.#bytes
  }

  /** Rises with every change; tells the exporter whether there is anything new. */
  get revision(): number {
    return this.#revision
  }

  /** The time of the latest change; 0 without any. */
  get newestTime(): number {
    return this.#recency.newestTime
  }

  apply(data: unknown): void {
    if (!Array.isArray(data) || typeof data[0] !== 'string') return
    const key = data[0] as SessionKey
    if (data[1] === null && typeof data[2] === 'number' && this.#rows.get(key)?.updatedAt !== data[2]) return
    const record: unknown =
      data[2] === undefined || data[1] === null ? data[1] : this.#merged(key, data[1], data[2], data[3])
    this.#forget(key)
    const sound = soundSessionRecord(record)
    if (sound !== undefined) this.#remember(key, Object.freeze(sound))
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

  /** The row of a key; one that the caller may not see is as if it were not there. */
  resolveOrThrow(key: string, caller?: Caller): SessionRow {
    const row = this.resolve(key)
    if (row === undefined || !mayUse(caller, row.record))
      throw new GatewayError('SESSION_NOT_FOUND', 'no session has this key', { key: key.slice(0, 200) })
    return row
  }

  byId(id: string): SessionRow | undefined {
    const key = this.#keysById.get(id as SessionId)
    return key === undefined ? undefined : this.#row(key)
  }

  /** Ordered by the last change, newest first. */
  list(query: ListQuery): SessionPage {
    const sessions: SessionRow[] = []
    const total = this.#count(query)
    for (const key of this.#recency.newestFirst(decodeCursor(query.cursor))) {
      const row = this.#row(key as SessionKey)
      if (row === undefined || !isWanted(row.key, row.record, query)) continue
      if (sessions.length === query.limit) return { sessions, total, nextCursor: encodeCursor(sessions.at(-1)) }
      sessions.push(row)
    }
    return { sessions, total }
  }

  /** Those not changed since, oldest first, of which `keep` is true. */
  untouchedSince(before: number, limit: number, keep: (key: SessionKey) => boolean): readonly SessionRow[] {
    const found: SessionRow[] = []
    for (const key of this.#recency.oldestFirst()) {
      const row = this.#row(key as SessionKey)
      if (row === undefined) continue
      if (row.record.updatedAt >= before || found.length === limit) break
      if (keep(row.key)) found.push(row)
    }
    return found
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
   * that is being written at the same time is neither undone nor overlooked. Without a row it begins a session, which
   * belongs to `owner`.
   */
  merge(key: SessionKey, fields: Omit<SessionRecord, 'sessionId'>, owner: string): JournalRecord {
    const settings = this.#rows.has(key) ? undefined : this.#chosen.get(key)
    const all = settings === undefined ? fields : { ...settings, ...fields }
    return { topic: TOPIC, data: [key, all, this.newSessionId(), owner] }
  }

  /** For a conversation that has not begun: its first message takes the settings along. Not durable until then. */
  choose(key: SessionKey, settings: SessionSettings): void {
    this.#chosen.delete(key)
    this.#chosen.set(key, settings)
    const [oldest] = this.#chosen.keys()
    if (this.#chosen.size > MAX_CHOSEN && oldest !== undefined) this.#chosen.delete(oldest)
  }

  /** The settings chosen for a conversation, whether it has begun or not. */
  settingsOf(key: SessionKey): SessionSettings {
    return this.#rows.get(key) ?? this.#chosen.get(key) ?? {}
  }

  /** The same for a row that exists; without one nothing happens. */
  change(key: SessionKey, fields: Partial<SessionRecord>, removed: readonly string[] = []): JournalRecord {
    return { topic: TOPIC, data: [key, fields, null, removed] }
  }

  remove(key: SessionKey): JournalRecord {
    return { topic: TOPIC, data: [key, null] }
  }

  /** Removes the row unless a change of it takes its place in the journal before. */
  removeUnchanged(key: SessionKey, { updatedAt }: SessionRecord): JournalRecord {
    return { topic: TOPIC, data: [key, null, updatedAt] }
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

  #merged(key: SessionKey, fields: unknown, newSessionId: unknown, more: unknown): unknown {
    const known = this.#rows.get(key)
    if (!isRecord(fields)) return known
    if (typeof newSessionId === 'string') {
      const owner = (known === undefined ? undefined : ownerOf(known)) ?? more
      const owned = typeof owner === 'string' ? { owner } : {}
      return { ...known, ...fields, ...owned, sessionId: known?.sessionId ?? newSessionId }
    }
    if (known === undefined) return undefined
    const gone = Array.isArray(more) ? new Set<unknown>(more) : new Set()
    return Object.fromEntries(Object.entries({ ...known, ...fields }).filter(([field]) => !gone.has(field)))
  }

  #count(query: ListQuery): number {
    if (query.prefix === undefined && query.keep === undefined && query.caller?.sees !== 'own') return this.#rows.size
    let count = 0
    for (const [key, record] of this.#rows) if (isWanted(key, record, query)) count++
    return count
  }

  #row(key: SessionKey): SessionRow | undefined {
    const record = this.#rows.get(key)
    return record === undefined ? undefined : { key, record }
  }

  #remember(key: SessionKey, record: SessionRecord): void {
    this.#rows.set(key, record)
    this.#bytes += sizeOf(key, record)
    this.#chosen.delete(key)
    this.#keysById.set(record.sessionId, key)
    this.#foldedKeys.set(key.toLowerCase(), key)
    this.#recency.touch(key, record.updatedAt)
  }

  #forget(key: SessionKey): void {
    const record = this.#rows.get(key)
    if (record === undefined) return
    this.#rows.delete(key)
    this.#bytes -= sizeOf(key, record)
    this.#recency.delete(key)
    if (this.#keysById.get(record.sessionId) === key) this.#keysById.delete(record.sessionId)
    if (this.#foldedKeys.get(key.toLowerCase()) === key) this.#foldedKeys.delete(key.toLowerCase())
  }
}

/** Rough, but the same when a row is stored and when it is dropped; most of a row is ids, keys and two short texts. */
function sizeOf(key: SessionKey, record: SessionRecord): number {
  let chars = 2 * key.length
  for (const value of Object.values(record)) if (typeof value === 'string') chars += value.length
  return 1_024 + 2 * chars + 128 * (record.archived?.length ?? 0)
}

/**
 * A row as any program may have written it, with fields of the types we read; the same object when nothing had to change.
 * Undefined without a session or a time.
 */
export function soundSessionRecord(value: unknown): SessionRecord | undefined {
  if (!isRecord(value) || typeof value['sessionId'] !== 'string' || value['sessionId'] === '') return undefined
  if (!Number.isFinite(value['updatedAt'])) return undefined
  return withRules(value, ROW_RULES) as SessionRecord
}

/** Some programs write ids as numbers. */
const nameGiven: Rule = (value) => (typeof value === 'number' ? String(value) : optionalText(value))

const ROW_RULES: Readonly<Record<string, Rule>> = {
  deliveryContext: (value) =>
    isRecord(value) && typeof value['channel'] === 'string'
      ? withRules(value, { to: nameGiven, accountId: nameGiven, threadId: nameGiven })
      : undefined,
  archived: (value) => {
    if (!Array.isArray(value)) return undefined
    return value.every(isArchived) ? value : value.filter(isArchived)
  },
  lastChannel: nameGiven,
  lastTo: nameGiven,
  owner: nameGiven,
  lastAccountId: nameGiven,
  lastThreadId: nameGiven,
  webhookMessageId: nameGiven,
  webhookSessionId: nameGiven,
  providerOverride: nameGiven,
  modelOverride: nameGiven,
}

function isArchived(value: unknown): boolean {
  return isRecord(value) && typeof value['sessionId'] === 'string' && typeof value['at'] === 'number'
}

/** Rows of other programs, and of versions that knew no owner, belong to the account that used them last. */
export function ownerOf({ owner, lastAccountId, deliveryContext }: SessionRecord): string | undefined {
  return owner ?? lastAccountId ?? deliveryContext?.accountId
}

export function mayUse(caller: Caller | undefined, record: SessionRecord): boolean {
  return caller === undefined || caller.sees === 'all' || ownerOf(record) === caller.owner
}

function isWanted(key: SessionKey, record: SessionRecord, { prefix, caller, keep }: ListQuery): boolean {
  if (prefix !== undefined && !key.startsWith(prefix)) return false
  return mayUse(caller, record) && (keep === undefined || keep(key, record))
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

/** What a list shows of a conversation: it is named after its first message, and shows its last. */
function summaryFor(known: SessionRecord | undefined, text: string): Partial<SessionRecord> {
  return { ...(known?.title === undefined ? { title: titleOf(text) } : {}), preview: previewOf(text) }
}

/**
 * What a message changes in its session's row: delivery follows the latest message, everything else stays. A command
 * that is answered without the model begins no session.
 */
export function mergeForMessage(directory: SessionDirectory, message: AcceptedMessage): JournalRecord {
  const { channel, account, messageId, route } = message
  const to = route.peerId ?? route.chatId ?? route.senderId ?? messageId
  const threadId = route.topicId ?? route.threadId
  const known = directory.get(message.key)
  const slash = parseSlash(message.text)
  const words = slash.kind === 'message' && slash.text !== '' ? summaryFor(known, slash.text) : {}
  const updatedAt = directory.now()
  if (message.fromDashboard === true && known?.deliveryContext !== undefined)
    return directory.change(message.key, { updatedAt, ...words })
  const fields = {
    updatedAt,
    ...words,
    deliveryContext: { channel, to, accountId: account, ...(threadId === undefined ? {} : { threadId }) },
    lastChannel: channel,
    lastTo: to,
    lastAccountId: account,
    ...(message.client?.mark === undefined ? {} : { chat: message.client.mark }),
    ...(channel === 'webhook' ? { webhookMessageId: messageId, webhookSessionId: message.key } : {}),
  }
  if (isLocal(slash)) return directory.change(message.key, fields)
  return directory.merge(message.key, fields, callerOf(message).owner)
}
