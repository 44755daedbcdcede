import type { Database, Queries, SqlValue } from '../../base/database.ts'
import { isRecord, parseJson } from '../../base/json.ts'
import { isEphemeralAccount } from '../../core/inbound.ts'
import {
  COPY_KEY,
  COPY_SECTION,
  isProgress,
  type BytesItem,
  type ImageWriter,
  type Item,
  type Progress,
  type RowItem,
  type TranscriptItem,
} from '../copy/image.ts'
import { splitName, usagePlaceOf, type CopiedMessage } from '../copy/items.ts'
import { mapTexts, toColumn } from './column-text.ts'

const GET_PROGRESS = `select value::text as value from channel_state where section = $1 and key = $2`
const PUT_PROGRESS = `insert into channel_state (section, key, value) values ($1, $2, $3::json)
  on conflict (section, key) do update set value = excluded.value`
const HOLDS_ANYTHING = `select exists (select from sessions where begun) or exists (select from archived_sessions)
  or exists (select from messages) or exists (select from transcripts) or exists (select from blobs)
  or exists (select from usage) or exists (select from savings) or exists (select from channel_state)
  or exists (select from accounts) or exists (select from home_files) as holds`

/** Each takes its rows as one list of JSON objects, in their order. */
const PUT: Readonly<Record<RowItem['kind'], string>> = {
  session: `select put_row(r->>'key', r->'record') from jsonb_array_elements($1::jsonb) as r`,
  'archived-session': `insert into archived_sessions (key, record)
    select r->>'key', r->'record' from jsonb_array_elements($1::jsonb) as r
    on conflict (key) do update set record = excluded.record`,
  account: `insert into accounts (channel, account, next_seq)
    select r->>'channel', r->>'account', (r->>'next')::bigint from jsonb_array_elements($1::jsonb) as r
    on conflict (channel, account) do update set next_seq = greatest(accounts.next_seq, excluded.next_seq)`,
  usage: `insert into usage (scope, at, session_id, model, channel, requests, tokens, input, output, cache_read,
      cache_write, usd, unpriced, saved)
    select r->>'scope', (r->>'at')::bigint, r->>'session', r->>'model', r->>'channel', (r->>'requests')::bigint,
      (r->>'tokens')::bigint, (r->>'input')::bigint, (r->>'output')::bigint, (r->>'cacheRead')::bigint,
      (r->>'cacheWrite')::bigint, (r->>'usd')::double precision, (r->>'unpriced')::bigint, (r->>'saved')::bigint
    from jsonb_array_elements($1::jsonb) as r on conflict do nothing`,
  saving: `insert into savings
    select r->>'session', (r->>'steps')::bigint, (r->>'messages')::bigint, (r->>'tokensSaved')::double precision,
      (r->>'netTokensSaved')::double precision, r->>'netBasis' = 'measured'
    from jsonb_array_elements($1::jsonb) as r on conflict do nothing`,
  state: `insert into channel_state (section, key, value)
    select r->>'section', r->>'key', (r->>'value')::json from jsonb_array_elements($1::jsonb) as r
    on conflict (section, key) do nothing`,
  message: `insert into messages (run, key, channel, account, node, state, accepted_at, stored_at, fingerprint, request_key,
      request_digest, message, body, content, answer_code, answered_at, answer_position, answered_by, seq, abandoned,
      reset_done, deaths, idle)
    select r->>'run', r->>'key', r->>'channel', r->>'account', '', r->>'state', (r->>'acceptedAt')::bigint,
      to_timestamp((r->>'acceptedAt')::bigint / 1000.0), r->>'fingerprint', r->>'requestKey', r->>'requestDigest',
      (r->>'message')::json, (r->>'body')::json, (r->>'content')::json, r->>'code', (r->>'endedAt')::bigint,
      case when r->>'state' = 'open' then null else nextval('changes') end, '', (r->>'seq')::bigint,
      (r->>'abandoned')::boolean, (r->>'resetDone')::boolean, (r->>'deaths')::integer, (r->>'idle')::boolean
    from jsonb_array_elements($1::jsonb) with ordinality as rows (r, number) order by number`,
}

const PUT_TRANSCRIPT = `insert into transcripts (session_id, header) values ($1, $2)
  on conflict (session_id) do update set header = excluded.header`
const PUT_LINES = `insert into entries (session_id, position, id, parent, line)
  select $1, $2::integer + number, id, parent, line
  from unnest($3::text[], $4::text[], $5::text[]) with ordinality as lines (id, parent, line, number)
  on conflict (session_id, position) do update set id = excluded.id, parent = excluded.parent, line = excluded.line`
const COUNT_LINES = 'update transcripts set entries = $2 where session_id = $1'
const PUT_BLOB = 'insert into blobs (session_id, id, content) values ($1, $2, $3) on conflict do nothing'
const PUT_FILE = `insert into home_files (path, content) values ($1, $2)
  on conflict (path) do update set content = excluded.content`

/** Puts a copy into a schema. Rows belong to no node: whichever starts first takes up what is open. */
export class PostgresWriter implements ImageWriter {
  readonly #database: Database

  /** Migrated already. */
  constructor(database: Database) {
    this.#database = database
  }

  async progress(): Promise<Progress | undefined> {
    const [row] = await this.#database.query<{ value: string }>(named(GET_PROGRESS), [COPY_SECTION, COPY_KEY])
    const found = row === undefined ? undefined : parseJson(row.value)
    return isProgress(found) ? found : undefined
  }

  async isEmpty(): Promise<boolean> {
    const [row] = await this.#database.query<{ holds: boolean }>(named(HOLDS_ANYTHING), [])
    return row?.holds !== true
  }

  async complete(): Promise<void> {}

  async write(items: readonly Item[], progress: Progress): Promise<void> {
    await this.#database.transaction(async (queries) => {
      const rows: RowItem[] = []
      for (const item of items) {
        if ('lines' in item) await putTranscript(queries, item)
        else if ('bytes' in item) await putBytes(queries, item)
        else rows.push(item)
      }
      const [first] = rows
      if (first !== undefined) await queries.query(named(PUT[first.kind]), [JSON.stringify(rows.map(columnsOf))])
      await queries.query(named(PUT_PROGRESS), [COPY_SECTION, COPY_KEY, JSON.stringify(progress)])
    })
  }
}

function columnsOf({ kind, name, value }: RowItem): unknown {
  switch (kind) {
    case 'session':
    case 'archived-session':
      return { key: toColumn(name), record: mapTexts(value, toColumn) }
    case 'account': {
      const [channel, account] = splitName(name)
      return { channel: toColumn(channel), account: toColumn(account), next: value['next'] }
    }
    case 'usage':
      return mapTexts({ ...usagePlaceOf(name), ...value }, toColumn)
    case 'saving':
      return { ...value, session: toColumn(name) }
    case 'state': {
      const [section, key] = splitName(name)
      return { section: toColumn(section), key: toColumn(key), value: JSON.stringify(value['value']) }
    }
    case 'message':
      return messageColumns(value as unknown as CopiedMessage)
  }
}

function messageColumns(copied: CopiedMessage): unknown {
  const { message, fingerprint, request, state, seq, content, endedAt, resetDone, deaths, idle } = copied
  const { text, attachments, ...rest } = message
  return {
    run: toColumn(message.run),
    key: toColumn(message.key),
    channel: toColumn(message.channel),
    account: toColumn(message.account),
    acceptedAt: Math.round(message.acceptedAt),
    fingerprint: fingerprint === '' ? null : toColumn(fingerprint),
    requestKey: request === undefined ? null : toColumn(request.key),
    requestDigest: request === undefined ? null : toColumn(request.digest),
    state,
    seq,
    message: JSON.stringify(rest),
    body: state === 'open' ? JSON.stringify({ text, attachments }) : null,
    content: content === undefined ? null : JSON.stringify(content),
    code: content?.kind === 'error' ? content.code : null,
    endedAt: endedAt ?? null,
    abandoned: isEphemeralAccount(message.account),
    resetDone: resetDone === true,
    deaths: deaths ?? 0,
    idle: idle === true,
  }
}

async function putTranscript(queries: Queries, item: TranscriptItem): Promise<void> {
  const session = toColumn(item.name)
  let count = -1
  for await (const lines of item.lines()) {
    const [header = '', ...others] = count < 0 ? lines : ['', ...lines]
    if (count < 0) {
      await queries.query(named(PUT_TRANSCRIPT), [session, header])
      count = 0
    }
    if (others.length === 0) continue
    const places = others.map(placeOf)
    await queries.query(named(PUT_LINES), [
      session,
      count,
      places.map(({ id }) => id),
      places.map(({ parent }) => parent),
      others,
    ])
    count += others.length
  }
  await queries.query(named(COUNT_LINES), [session, Math.max(0, count)])
}

function placeOf(line: string): { readonly id: string; readonly parent: string | null } {
  const raw = parseJson(line)
  const { id, parentId } = isRecord(raw) ? raw : {}
  return {
    id: typeof id === 'string' ? toColumn(id) : '',
    parent: typeof parentId === 'string' ? toColumn(parentId) : null,
  }
}

async function putBytes(queries: Queries, item: BytesItem): Promise<void> {
  const bytes = await item.bytes()
  const slash = item.name.lastIndexOf('/')
  const values: readonly SqlValue[] =
    item.kind === 'file'
      ? [toColumn(item.name), bytes]
      : [toColumn(item.name.slice(0, slash)), item.name.slice(slash + 1), toColumn(Buffer.from(bytes).toString('utf8'))]
  await queries.query(named(item.kind === 'file' ? PUT_FILE : PUT_BLOB), values)
}

function named(text: string): { readonly name: string; readonly text: string } {
  return { name: '', text }
}
