import type { Database, SqlValue, Statement } from '../../base/database.ts'
import { GatewayError } from '../../core/errors.ts'
import type { SessionKey } from '../../core/ids.ts'
import type { SessionQuery, SessionRow, Sessions } from '../storage.ts'
import { fromColumn, toColumn } from './column-text.ts'
import type { HeldSessions } from './held-sessions.ts'
import { readRecord, readRow } from './rows.ts'

interface ListedRow {
  readonly key: string
  readonly record: string
  readonly updated_at: number
  readonly changed: number
}

const RECORD = 'row_record(s)::text as record'
const GET = { name: 'session_get', text: `select ${RECORD} from sessions s where key = $1 and begun` }
const RESOLVE = {
  name: 'session_resolve',
  text: `select key, ${RECORD} from sessions s where begun and (key = $1 or lower(key) = lower($1))
    order by key = $1 desc, changed desc limit 1`,
}
const BY_ID = { name: 'session_by_id', text: `select key, ${RECORD} from sessions s where session_id = $1 and begun` }
/** Exact while counting is quick; of very many rows what the database's own statistics say, a few percent off. */
const COUNT = {
  name: 'session_count',
  text: `select case when about > 200000 then about::bigint else (select count(*) from sessions where begun) end as count
    from (select reltuples as about from pg_class where oid = 'sessions'::regclass) as statistics`,
}

const UNTOUCHED = {
  name: 'session_untouched',
  text: `select key, ${RECORD} from sessions s where begun and updated_at < $1 and key <> all ($3)
    order by updated_at, changed limit $2`,
}
const ARCHIVE = { name: 'session_archive', text: 'select archive_rows($1, $2, $3) as key' }
const BRING_BACK = { name: 'session_bring_back', text: 'select bring_back($1) as was_there' }
const HAS_ARCHIVED = { name: 'session_has_archived', text: 'select exists (select from archived_sessions) as has' }
const ARCHIVED = {
  name: 'session_archived',
  text: 'select key, record::text as record from archived_sessions where key > $1 order by key limit $2',
}

const OWNER = `coalesce(owner, record->>'lastAccountId', record->'deliveryContext'->>'accountId')`
const SHOWN = `lower(concat_ws(chr(10), key, record->>'title', record->>'preview'))`
const SHOWN_OF_ARCHIVED = `lower(key || chr(10) || (select coalesce(string_agg(
  concat_ws(chr(10), earlier->>'title', earlier->>'preview'), chr(10)), '')
  from jsonb_array_elements(case jsonb_typeof(record->'archived') when 'array' then record->'archived' else '[]' end)
    as earlier))`
/** Every combination that is asked for is a prepared statement of its own. */
const CONDITIONS = {
  prefix: (at: string) => `starts_with(key, ${at})`,
  owner: (at: string) => `${OWNER} = ${at}`,
  search: (at: string) => `position(lower(${at}) in ${SHOWN}) > 0`,
  searchArchived: (at: string) => `position(lower(${at}) in ${SHOWN_OF_ARCHIVED}) > 0`,
  channel: (at: string) => `record->>'lastChannel' = ${at}`,
  archived: (at: string) => `jsonb_typeof(record->'archived') = 'array' and record->'archived' <> '[]' and ${at}`,
  only: (at: string) => `key = any (${at})`,
  without: (at: string) => `key <> all (${at})`,
}

/** A statement for each kind of mark, and for callers that see all or their own: each has an index. */
const MARKED = (kind: 'root' | 'last', isOwn: boolean): Statement => ({
  name: `session_marked_${kind}${isOwn ? '_own' : ''}`,
  text: `select key, ${RECORD} from sessions s where begun and record ? 'chat' and record->'chat'->>'${kind}' = $1
    ${isOwn ? `and ${OWNER} = $3` : ''} order by changed desc limit $2`,
})

export interface SessionsDeps {
  readonly database: Pick<Database, 'query'>
  readonly node: string
  /** Rows of sessions that this node holds need no look-up. */
  readonly held: Pick<HeldSessions, 'row'>
  /** A row went to the archive or came back. */
  onMoved(key: SessionKey): void
}

export function createSessions({ database, node, held, onMoved }: SessionsDeps): Sessions {
  const one = async (statement: typeof RESOLVE, value: string): Promise<SessionRow | undefined> => {
    const [row] = await database.query<{ key: string; record: string }>(statement, [toColumn(value)])
    return row === undefined ? undefined : readRow(row)
  }
  return {
    async get(key) {
      const known = held.row(key)
      if (known !== undefined) return known.record
      const [row] = await database.query<{ record: string }>(GET, [toColumn(key)])
      return row === undefined ? undefined : readRecord(row.record)
    },
    resolve: (key) => one(RESOLVE, key.trim()),
    byId: (sessionId) => one(BY_ID, sessionId),
    async count() {
      const [row] = await database.query<{ count: number }>(COUNT, [])
      return row?.count ?? 0
    },
    async untouchedSince(before, limit, without) {
      const rows = await database.query<{ key: string; record: string }>(UNTOUCHED, [
        before,
        limit,
        [...without].map(toColumn),
      ])
      return rows.map(readRow)
    },
    async archive(rows) {
      const keys = rows.map(({ key }) => toColumn(key))
      const times = rows.map(({ record }) => record.updatedAt)
      const gone = await database.query<{ key: string }>(ARCHIVE, [keys, times, node])
      for (const { key } of gone) onMoved(fromColumn(key) as SessionKey)
      return gone.length
    },
    async bringBack(key) {
      const [row] = await database.query<{ was_there: boolean }>(BRING_BACK, [toColumn(key.trim())])
      if (row?.was_there !== true) return false
      onMoved(key.trim() as SessionKey)
      return true
    },
    async hasArchived(key) {
      if (key !== undefined && held.row(key.trim()) !== undefined) return false
      const [row] = await database.query<{ has: boolean }>(HAS_ARCHIVED, [])
      return row?.has === true
    },
    async archived({ limit, after = '' }) {
      const found = await database.query<{ key: string; record: string }>(ARCHIVED, [toColumn(after), limit + 1])
      const rows = found.slice(0, limit).map(readRow)
      const last = rows.at(-1)
      return found.length > limit && last !== undefined ? { rows, next: last.key } : { rows }
    },
    async marked({ kind, value }, { sees, owner }, limit) {
      const isOwn = sees === 'own'
      const values = [toColumn(value), limit, ...(isOwn ? [toColumn(owner)] : [])]
      return (await database.query<{ key: string; record: string }>(MARKED(kind, isOwn), values)).map(readRow)
    },
    async list(query) {
      const { name, where, values } = conditionsOf(query)
      const [updatedAt, changed] = decodeCursor(query.cursor)
      const page = {
        name: `session_list${name}`,
        text: `select key, ${RECORD}, updated_at, changed from sessions s
          where ${where} and (updated_at, changed) < ($${values.length + 1}, $${values.length + 2})
          order by updated_at desc, changed desc limit $${values.length + 3}`,
      }
      const [rows, [counted]] = await Promise.all([
        database.query<ListedRow>(page, [...values, updatedAt, changed, query.limit + 1]),
        database.query<{ count: number }>(
          { name: `session_total${name}`, text: `select count(*) as count from sessions s where ${where}` },
          values,
        ),
      ])
      const shown = rows.slice(0, query.limit)
      const last = shown.at(-1)
      const hasMore = rows.length > query.limit && last !== undefined
      return {
        sessions: shown.map(readRow),
        total: counted?.count ?? 0,
        ...(hasMore ? { nextCursor: encodeCursor([last.updated_at, last.changed]) } : {}),
      }
    },
  }
}

function conditionsOf({ prefix, caller, search, channel, archived, only, without }: SessionQuery): {
  readonly name: string
  readonly where: string
  readonly values: readonly SqlValue[]
} {
  const text = (value: string | undefined): string | undefined => (value === undefined ? undefined : toColumn(value))
  const list = (value: ReadonlySet<string> | undefined): readonly string[] | undefined =>
    value === undefined ? undefined : [...value].map(toColumn)
  const wanted: Readonly<Record<keyof typeof CONDITIONS, readonly [SqlValue | undefined, string]>> = {
    prefix: [text(prefix), 'text'],
    owner: [text(caller?.sees === 'own' ? caller.owner : undefined), 'text'],
    search: [text(archived === true ? undefined : search), 'text'],
    channel: [text(channel), 'text'],
    archived: [archived, 'boolean'],
    searchArchived: [text(archived === true ? search : undefined), 'text'],
    only: [list(only), 'text[]'],
    without: [list(without), 'text[]'],
  }
  const parts = ['begun']
  const values: SqlValue[] = []
  let name = ''
  for (const [kind, [value, type]] of Object.entries(wanted)) {
    if (value === undefined) continue
    values.push(value)
    parts.push(CONDITIONS[kind as keyof typeof CONDITIONS](`$${values.length}::${type}`))
    name += `_${kind}`
  }
  return { name, where: parts.join(' and '), values }
}

const FROM_THE_NEWEST: readonly [number, number] = [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]

function encodeCursor(place: readonly [number, number]): string {
  return Buffer.from(JSON.stringify(place)).toString('base64url')
}

function decodeCursor(cursor: string | undefined): readonly [number, number] {
  if (cursor === undefined) return FROM_THE_NEWEST
  try {
    const place: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    if (Array.isArray(place) && place.length === 2 && place.every(Number.isSafeInteger)) {
      return place as unknown as readonly [number, number]
    }
  } catch {
    // Falls through to the error below.
  }
  throw new GatewayError('FIELD_INVALID', 'cursor is not one that session.list returned', { field: 'cursor' })
}
