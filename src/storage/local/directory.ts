import type { Clock } from '../../base/clock.ts'
import type { JournalRecord, JournalTopic } from '../../base/journal.ts'
import { isRecord } from '../../base/json.ts'
import type { Change, RowChange } from '../../core/change.ts'
import { GatewayError } from '../../core/errors.ts'
import type { SessionId, SessionKey } from '../../core/ids.ts'
import { type Caller, type SessionRecord, holdsWords, mayUse, ownerOf } from '../../core/inbound.ts'
import { nameOf, optionalText, type Fields } from '../../core/sound-message.ts'
import { soundSessionFields, soundSessionRecord } from '../../core/sound-session.ts'
import type { ChatMark, SessionPage, SessionQuery, SessionRow } from '../storage.ts'
import { SlotSet, type Tag, type Walk } from '../tables/slots.ts'
import { Table, TABLE, type Row, type TableForm, type Tables } from '../tables/table.ts'

/** A change of a row. */
export type SessionChange = Extract<Change, { kind: `${string}-session` }>

/** Fields of a row as they stand in a journal; what a row must have is looked at when they are merged. */
type RowFields = Fields
type BegunRow = readonly [key: SessionKey, fields: RowFields, sessionId: SessionId, owner: string | undefined]
type ChangedRow = readonly [key: SessionKey, fields: RowFields, sessionId: null, removed: readonly string[]]
type IndexRecord =
  | BegunRow
  | ChangedRow
  | readonly [key: SessionKey, row: SessionRecord]
  /** With a time only when the row has not changed since. */
  | readonly [key: SessionKey, row: null, unlessChangedFrom?: number]

const TOPIC = 'index'

const [BY_KEY, BY_ID, BY_ROOT, BY_LAST] = [0, 1, 2, 3] as const
const [OWNER, CHANNEL, ARCHIVED, SCOPE] = [0, 1, 2, 3] as const
const HAS_ARCHIVED = 'archived'

const FORM: TableForm<SessionRecord> = {
  shape: { names: 4, tags: 4 },
  nameOf: folded,
  namesOf: (record) => [record.sessionId, markOf(record, 'root'), markOf(record, 'last')],
  tagsOf: (key, record) => [
    ownerOf(record),
    record.lastChannel,
    (record.archived ?? []).length > 0 ? HAS_ARCHIVED : undefined,
    scopeOf(key),
  ],
  timeOf: ({ updatedAt }) => updatedAt,
  decode: (value) => {
    const sound = soundSessionRecord(value)
    return sound && Object.freeze(sound)
  },
}

/** Of a row as an object with its texts, roughly. */
const HELD_ROW_BYTES = 1_536

/**
 * All sessions of this home, changed only through the journal. The cost of a change or of a look-up, and the memory of a
 * session that is not in use, do not depend on how many sessions there are; only a search for words reads them all.
 */
export class SessionDirectory implements JournalTopic<IndexRecord> {
  readonly name = TOPIC
  readonly #rows: Table<SessionRecord>
  readonly #clock: Clock
  #revision = 0

  constructor(clock: Clock, tables?: Tables) {
    this.#clock = clock
    this.#rows = tables?.table(TABLE.sessions, FORM) ?? new Table(FORM)
  }

  get size(): number {
    return this.#rows.size
  }

  /** Of rows and their places in the indexes, roughly. */
  get heldBytes(): number {
    return this.#rows.indexBytes + this.#rows.heldRows * HELD_ROW_BYTES
  }

  /** Rises with every change; tells the exporter whether there is anything new. */
  get revision(): number {
    return this.#revision
  }

  /** The time of the latest change; 0 without any. */
  get newestTime(): number {
    return this.#rows.slots.newestTime
  }

  readonly read = readIndexRecord

  apply(record: IndexRecord): void {
    const [key, row, unlessChangedFrom] = record
    if (row === null && unlessChangedFrom !== undefined && this.#rows.get(key)?.updatedAt !== unlessChangedFrom) return
    const sound = FORM.decode(record.length === 4 ? this.#merged(key, record) : row)
    if (sound === undefined) this.#rows.delete(key)
    else this.#rows.put(key, sound)
    this.#revision++
  }

  /** Oldest first, so that replaying rebuilds the order of the list; nothing where a file has the rows. */
  *snapshot(): Iterable<IndexRecord> {
    for (const { key, value } of this.#rows.held()) yield [key as SessionKey, value]
  }

  get(key: SessionKey): Promise<SessionRecord | undefined> {
    return this.#rows.find(key)
  }

  /** The key as stored: exactly as given, else the one that differs by case only. */
  async resolve(key: string): Promise<SessionRow | undefined> {
    const trimmed = key.trim()
    const rows = await this.#named(BY_KEY, folded(trimmed))
    return rows.find((row) => row.key === trimmed) ?? rows.find((row) => folded(row.key) === folded(trimmed))
  }

  async byId(id: string): Promise<SessionRow | undefined> {
    return (await this.#named(BY_ID, id)).find(({ record }) => record.sessionId === id)
  }

  /** The row at this moment; it was most likely looked up before, so that the disk need not be asked. */
  held(key: SessionKey): SessionRecord | undefined {
    return this.#rows.get(key)
  }

  /** Ordered by the last change, newest first. */
  async list(query: SessionQuery): Promise<SessionPage> {
    const walk = await this.#walkBehind(decodeCursor(query.cursor))
    try {
      const wanted = await this.#wanted(query)
      const sessions: SessionRow[] = []
      // With all of them found, nothing is left to walk for.
      const most = query.cursor === undefined ? wanted.total : Number.POSITIVE_INFINITY
      for (;;) {
        const part = nextSlots(walk, wanted, Math.min(query.limit + 1, most) - sessions.length)
        if (part.length === 0) return { sessions, total: wanted.total }
        for (const row of await this.#load(part)) {
          if (!isWanted(row, query)) continue
          if (sessions.length === query.limit)
            return { sessions, total: wanted.total, nextCursor: encodeCursor(sessions.at(-1)) }
          sessions.push(row)
        }
      }
    } finally {
      walk.end()
    }
  }

  async marked({ kind, value }: ChatMark, caller: Caller, limit: number): Promise<readonly SessionRow[]> {
    const theirs = this.#tag(OWNER, caller.sees === 'own' ? caller.owner : undefined)
    const named = this.#rows.named(kind === 'root' ? BY_ROOT : BY_LAST, value)
    const slots = named.filter((slot) => this.#rows.slots.hasTags(slot, theirs))
    const found: SessionRow[] = []
    for (let at = 0; at < slots.length && found.length < limit; at += limit)
      for (const row of await this.#load(slots.slice(at, at + limit)))
        if (markOf(row.record, kind) === value && mayUse(caller, row.record)) found.push(row)
    return found.slice(0, limit)
  }

  /** Those not changed since, oldest first, of which `keep` is true. */
  async untouchedSince(
    before: number,
    limit: number,
    keep: (key: SessionKey) => boolean,
  ): Promise<readonly SessionRow[]> {
    const found: SessionRow[] = []
    for await (const row of this.rows()) {
      if (row.record.updatedAt >= before || found.length === limit) break
      if (keep(row.key)) found.push(row)
    }
    return found
  }

  /** Oldest first; what is changed meanwhile may come or not. */
  async *rows(): AsyncIterable<SessionRow> {
    for await (const row of this.#rows.rows()) yield toSessionRow(row)
  }

  /** Every row once, as an object or as `["key",{…}]`; `pause` comes after each megabyte. */
  scan(visit: (row: SessionRow | string) => void, pause?: () => Promise<void>): Promise<void> {
    return this.#rows.scan((_, row) => visit(typeof row === 'string' ? row : toSessionRow(row)), pause)
  }

  /** A time for the next change: never before the latest one, so that the order of the list is the order of changes. */
  now(): number {
    return Math.max(this.#clock.now(), this.newestTime)
  }

  /**
   * The record of a change. Fields are merged with the row as it will be when the record takes its place in the journal:
   * a reset or delete that is being written at the same time is neither undone nor overlooked.
   */
  recordOf(change: SessionChange): JournalRecord {
    return { topic: TOPIC, data: this.#dataOf(change) }
  }

  #dataOf(change: SessionChange): IndexRecord {
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

  #fieldsOf({ key, fields, defaults, added, touched }: RowChange & { readonly key: SessionKey }): RowFields {
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

  #merged(key: SessionKey, [, fields, newSessionId, more]: BegunRow | ChangedRow): Fields | undefined {
    const known = this.#rows.get(key)
    if (newSessionId !== null) {
      const owner = (known === undefined ? undefined : ownerOf(known)) ?? more
      return { ...known, ...fields, owner, sessionId: known?.sessionId ?? newSessionId }
    }
    if (known === undefined) return undefined
    const gone = new Set(more)
    return Object.fromEntries(Object.entries({ ...known, ...fields }).filter(([field]) => !gone.has(field)))
  }

  async #named(name: number, text: string): Promise<readonly SessionRow[]> {
    return this.#load(this.#rows.named(name, text))
  }

  async #load(slots: readonly number[]): Promise<readonly SessionRow[]> {
    await this.#rows.load(slots)
    return slots.flatMap((slot) => {
      const row = this.#rows.at(slot)
      return row === undefined ? [] : [toSessionRow(row)]
    })
  }

  /** Older rows than this one, or than the time it had if it has changed since. */
  async #walkBehind(cursor: { readonly key: string; readonly at: number } | undefined): Promise<Walk> {
    const { slots } = this.#rows
    if (cursor === undefined) return slots.walk('older')
    const candidates = this.#rows.named(BY_KEY, folded(cursor.key))
    await this.#rows.load(candidates)
    const slot = candidates.find((one) => this.#rows.at(one)?.key === cursor.key && slots.timeOf(one) === cursor.at)
    const walk = slots.walk('older', slot)
    if (slot === undefined) walk.skipWhile((one) => slots.timeOf(one) > cursor.at)
    return walk
  }

  /** Without a reading of rows where their tags say enough. */
  async #wanted(query: SessionQuery): Promise<Wanted> {
    const { caller, channel, archived, prefix, search, only, without } = query
    const tags = [
      ...this.#tag(OWNER, caller?.sees === 'own' ? caller.owner : undefined),
      ...this.#tag(CHANNEL, channel),
      ...this.#tag(ARCHIVED, archived === true ? HAS_ARCHIVED : undefined),
      ...this.#tag(SCOPE, prefix === undefined ? undefined : scopeOf(prefix)),
    ]
    if (only !== undefined || without !== undefined || prefix !== undefined || search !== undefined)
      return this.#searched(query, tags)
    const { slots, size } = this.#rows
    if (tags.length === 0) return { total: size, has: () => true }
    return { total: slots.tagged(tags, size).length, has: (slot) => slots.hasTags(slot, tags) }
  }

  async #searched(query: SessionQuery, tags: readonly Tag[]): Promise<Wanted> {
    const found = new SlotSet()
    let total = 0
    const visit = (slot: number, row: SessionRow | undefined): void => {
      if (row === undefined || !isWanted(row, query) || found.has(slot)) return
      found.add(slot)
      total++
    }
    const few =
      query.only === undefined
        ? this.#rows.slots.tagged(tags, READ_ONE_BY_ONE + 1)
        : [...query.only].flatMap((key) => this.#rows.named(BY_KEY, folded(key)))
    if (query.only !== undefined || few.length <= READ_ONE_BY_ONE) {
      for (const slot of few) visit(slot, (await this.#load([slot]))[0])
    } else {
      const mayFit = textFilter(query)
      await this.#rows.scan((slot, row) => {
        if (!this.#rows.slots.hasTags(slot, tags)) return
        if (typeof row !== 'string') visit(slot, toSessionRow(row))
        else if (mayFit(row)) visit(slot, readRow(row))
      })
    }
    return { total, has: (slot) => found.has(slot) }
  }

  /** A row of another owner may have the same tag, once in four thousand million. */
  #tag(tag: number, text: string | undefined): readonly Tag[] {
    return text === undefined ? [] : [[tag, this.#rows.hashOf(text)]]
  }
}

/** Of more, all are read one behind the other as they stand in their file. */
const READ_ONE_BY_ONE = 1_024

interface Wanted {
  readonly total: number
  has(slot: number): boolean
}

function nextSlots(walk: Walk, wanted: Pick<Wanted, 'has'>, count: number): readonly number[] {
  const slots: number[] = []
  while (slots.length < count) {
    const slot = walk.step()
    if (slot === undefined) break
    if (wanted.has(slot)) slots.push(slot)
  }
  return slots
}

function toSessionRow({ key, value }: Row<SessionRecord>): SessionRow {
  return { key: key as SessionKey, record: value }
}

/** `["key",{…}]` of a line that is whole. */
function readRow(text: string): SessionRow | undefined {
  const [key, value] = JSON.parse(text) as readonly [SessionKey, unknown]
  const record = FORM.decode(value)
  return record && { key, record }
}

/** Most rows need not be parsed: a text that does not hold the words is of a row that does not. */
function textFilter({ prefix = '', search = '' }: SessionQuery): (text: string) => boolean {
  const start = `[${JSON.stringify(prefix).slice(0, -1)}`
  const words = JSON.stringify(search.toLowerCase()).slice(1, -1)
  return (text) => text.startsWith(start) && (words === '' || text.toLowerCase().includes(words))
}

/** What a key begins with: its channel, or who made it. */
function scopeOf(key: string): string | undefined {
  const end = key.indexOf(':')
  return end < 0 ? undefined : key.slice(0, end)
}

function folded(key: string): string {
  return key.toLowerCase()
}

function markOf({ chat }: SessionRecord, kind: ChatMark['kind']): string | undefined {
  const mark = isRecord(chat) ? chat[kind] : undefined
  return typeof mark === 'string' ? mark : undefined
}

/** A record of the journal; fields of the types we read, whichever version wrote it. */
function readIndexRecord(data: unknown): IndexRecord | undefined {
  if (!Array.isArray(data) || typeof data[0] !== 'string') return undefined
  const [, row, third, more] = data as readonly unknown[]
  const key = data[0] as SessionKey
  if (row === null) return typeof third === 'number' ? [key, null, third] : [key, null]
  if (!isRecord(row)) return undefined
  if (third === undefined) {
    const sound = soundSessionRecord(row)
    return sound === undefined ? undefined : [key, sound]
  }
  const fields = soundSessionFields(row)
  if (third === null) return [key, fields, null, Array.isArray(more) ? more.map(nameOf) : []]
  if (typeof third !== 'string') return undefined
  return [key, fields, third as SessionId, optionalText(more)]
}

function isWanted({ key, record }: SessionRow, query: SessionQuery): boolean {
  const { prefix, caller, search, channel, archived, only, without } = query
  if (prefix !== undefined && !key.startsWith(prefix)) return false
  if (only?.has(key) === false || without?.has(key) === true) return false
  if (archived === true && (record.archived ?? []).length === 0) return false
  if (channel !== undefined && record.lastChannel !== channel) return false
  if (!mayUse(caller, record)) return false
  const words = search?.toLowerCase()
  const shown = archived === true ? (record.archived ?? []) : [record]
  return words === undefined || shown.some((one) => holdsWords(key, one, words))
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
