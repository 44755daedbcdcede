import type { Clock } from '../../base/clock.ts'
import type { JournalRecord, JournalTopic } from '../../base/journal.ts'
import { isRecord } from '../../base/json.ts'
import type { Change, RowChange } from '../../core/change.ts'
import { GatewayError } from '../../core/errors.ts'
import type { SessionId, SessionKey } from '../../core/ids.ts'
import type { Caller, SessionRecord } from '../../core/inbound.ts'
import { mayUse, ownerOf } from '../../core/session-owner.ts'
import { optionalText, withRules, type Rule } from '../../core/sound-fields.ts'
import type { ChatMark, SessionPage, SessionQuery, SessionRow } from '../storage.ts'
import { ChatMarks } from './chat-marks.ts'
import { Recency } from './recency.ts'

/** A change of a row. */
export type SessionChange = Extract<Change, { kind: `${string}-session` }>

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
  readonly #marks = new ChatMarks()
  readonly #clock: Clock
  #revision = 0
  #bytes = 0

  constructor(clock: Clock) {
    this.#clock = clock
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

  byId(id: string): SessionRow | undefined {
    const key = this.#keysById.get(id as SessionId)
    return key === undefined ? undefined : this.#row(key)
  }

  /** Ordered by the last change, newest first. */
  list(query: SessionQuery): SessionPage {
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

  marked(mark: ChatMark, caller: Caller, limit: number): readonly SessionRow[] {
    const found: SessionRow[] = []
    for (const key of this.#marks.of(mark)) {
      if (found.length === limit) break
      const row = this.#row(key)
      if (row !== undefined && mayUse(caller, row.record)) found.push(row)
    }
    return found
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

  /** A time for the next change: never before the latest one, so that the order of the list is the order of changes. */
  now(): number {
    return Math.max(this.#clock.now(), this.#recency.newestTime)
  }

  /**
   * The record of a change. Fields are merged with the row as it will be when the record takes its place in the journal:
   * a reset or delete that is being written at the same time is neither undone nor overlooked.
   */
  recordOf(change: SessionChange): JournalRecord {
    return { topic: TOPIC, data: this.#dataOf(change) }
  }

  #dataOf(change: SessionChange): readonly unknown[] {
    const { key } = change
    switch (change.kind) {
      case 'begin-session':
        return [key, this.#fieldsOf(change), change.sessionId, change.owner]
      case 'change-session':
        return [key, this.#fieldsOf(change), null, change.removed ?? []]
      case 'put-session':
        return [key, change.record]
      case 'delete-session':
        return [key, null]
    }
  }

  /** Removes the row unless a change of it takes its place in the journal before. */
  removeUnchanged(key: SessionKey, { updatedAt }: SessionRecord): JournalRecord {
    return { topic: TOPIC, data: [key, null, updatedAt] }
  }

  #fieldsOf({ key, fields, defaults, added, touched }: RowChange & { readonly key: SessionKey }): object {
    const known = this.#rows.get(key)
    const missing = Object.entries(defaults ?? {}).filter(([name]) => known?.[name] === undefined)
    const messages = typeof known?.messages === 'number' ? known.messages : 0
    return {
      ...(touched === true ? { updatedAt: this.now() } : {}),
      ...Object.fromEntries(missing),
      ...fields,
      ...(added === undefined ? {} : { messages: messages + added.messages }),
    }
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

  #count(query: SessionQuery): number {
    if (!isNarrow(query)) return this.#rows.size
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
    this.#keysById.set(record.sessionId, key)
    this.#foldedKeys.set(key.toLowerCase(), key)
    this.#recency.touch(key, record.updatedAt)
    this.#marks.add(key, record)
  }

  #forget(key: SessionKey): void {
    const record = this.#rows.get(key)
    if (record === undefined) return
    this.#rows.delete(key)
    this.#bytes -= sizeOf(key, record)
    this.#recency.delete(key)
    this.#marks.remove(key, record)
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

function isNarrow({ limit: _l, cursor: _c, caller, ...conditions }: SessionQuery): boolean {
  return Object.keys(conditions).length > 0 || caller?.sees === 'own'
}

function isWanted(key: SessionKey, record: SessionRecord, query: SessionQuery): boolean {
  const { prefix, caller, search, channel, archived, only, without } = query
  if (prefix !== undefined && !key.startsWith(prefix)) return false
  if (only?.has(key) === false || without?.has(key) === true) return false
  if (archived === true && (record.archived ?? []).length === 0) return false
  if (channel !== undefined && record.lastChannel !== channel) return false
  return mayUse(caller, record) && (search === undefined || holdsWords(key, record, search.toLowerCase()))
}

function holdsWords(key: SessionKey, { title, preview }: SessionRecord, words: string): boolean {
  return [key, title, preview].some((text) => text?.toLowerCase().includes(words) === true)
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
