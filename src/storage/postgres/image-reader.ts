import type { Queries } from '../../base/database.ts'
import type { JsonValue } from '../../base/json.ts'
import type { CleanupTotals } from '../../core/change.ts'
import { isEphemeralAccount } from '../../core/inbound.ts'
import type { Spent } from '../../core/spent.ts'
import { COPY_SECTION, type ImageReader, type Item, type ItemKind } from '../copy/image.ts'
import {
  accountItem,
  messageItem,
  savingItem,
  sessionItem,
  stateItem,
  usageItem,
  type CopiedMessage,
  type UsageScope,
} from '../copy/items.ts'
import { fromColumn } from './column-text.ts'
import { readMessage, readRecord, type MessageColumns } from './rows.ts'

const PAGE = 500
const LINES = 2_000

const SPENT = `sum(requests)::bigint as requests, sum(tokens)::bigint as tokens, sum(input)::bigint as input,
  sum(output)::bigint as output, sum(cache_read)::bigint as "cacheRead", sum(cache_write)::bigint as "cacheWrite",
  sum(usd order by node) as usd, sum(unpriced)::bigint as unpriced, sum(saved)::bigint as saved`

const READ: Readonly<
  Record<ItemKind, { readonly text: string; read(row: never, queries: Queries): Item | undefined }>
> = {
  file: {
    text: 'select path from home_files order by path',
    read: ({ path }: { path: string }, queries) => ({
      kind: 'file',
      name: fromColumn(path),
      bytes: async () => {
        const [row] = await queries.query<{ content: Uint8Array }>(
          text('select content from home_files where path = $1'),
          [path],
        )
        return row?.content ?? new Uint8Array()
      },
    }),
  },
  blob: {
    text: 'select session_id, id from blobs order by session_id, id',
    read: ({ session_id: session, id }: { session_id: string; id: string }, queries) => ({
      kind: 'blob',
      name: `${fromColumn(session).replace(/^archived:/u, '')}/${id}`,
      bytes: async () => {
        const [row] = await queries.query<{ content: string }>(
          text('select content from blobs where session_id = $1 and id = $2'),
          [session, id],
        )
        return Buffer.from(fromColumn(row?.content ?? ''))
      },
    }),
  },
  transcript: {
    text: 'select session_id, header from transcripts order by session_id',
    read: ({ session_id: session, header }: { session_id: string; header: string }, queries) => ({
      kind: 'transcript',
      name: fromColumn(session),
      lines: () => linesOf(queries, session, header),
    }),
  },
  'archived-session': {
    text: 'select key, record::text as record from archived_sessions order by key',
    read: ({ key, record }: { key: string; record: string }) =>
      sessionItem('archived-session', fromColumn(key), readRecord(record)),
  },
  session: {
    text: 'select key, row_record(s)::text as record from sessions s where begun order by updated_at, changed, key',
    read: ({ key, record }: { key: string; record: string }) =>
      sessionItem('session', fromColumn(key), readRecord(record)),
  },
  account: {
    text: `select channel, account, next_seq as next from accounts a where channel = ''
      or next_seq > coalesce((select next_seq from accounts where channel = ''), 1) order by channel, account`,
    read: ({ channel, account, next }: { channel: string; account: string; next: number }) =>
      isEphemeralAccount(fromColumn(account))
        ? undefined
        : accountItem(channel === '' ? '' : `${fromColumn(channel)}\n${fromColumn(account)}`, next),
  },
  usage: {
    text: `select scope, at, session_id as session, model, channel, ${SPENT} from usage
      group by scope, at, session_id, model, channel order by scope, at, session_id, model, channel`,
    read: ({ scope, at, session, model, channel, ...spent }: UsageColumns) =>
      usageItem(
        { scope, at, session: fromColumn(session), model: fromColumn(model), channel: fromColumn(channel) },
        spent,
      ),
  },
  saving: {
    text: `select session_id as session, steps, messages, tokens_saved as "tokensSaved",
      net_tokens_saved as "netTokensSaved", measured from savings order by session_id`,
    read: ({ session, measured, ...totals }: SavingColumns) =>
      savingItem(fromColumn(session), { ...totals, netBasis: measured ? 'measured' : 'estimated' }),
  },
  state: {
    text: `select section, key, value::text as value from channel_state where section <> '${COPY_SECTION}' order by changed`,
    read: ({ section, key, value }: { section: string; key: string; value: string }) =>
      stateItem(fromColumn(section), fromColumn(key), JSON.parse(value) as JsonValue),
  },
  message: {
    text: `select stored(m)::text as stored, fingerprint, request_key, request_digest, idle from messages m order by position`,
    read: (row: MessageRow) => messageItem(copiedMessage(row)),
  },
}

type UsageColumns = Spent & { scope: UsageScope; at: number; session: string; model: string; channel: string }
type SavingColumns = Omit<CleanupTotals, 'netBasis'> & { session: string; measured: boolean }

interface MessageRow {
  readonly stored: string
  readonly fingerprint: string | null
  readonly request_key: string | null
  readonly request_digest: string | null
  readonly idle: boolean
}

/** What a schema holds, as it is when the transaction begins, whatever a node does meanwhile. */
export class PostgresReader implements ImageReader {
  readonly #queries: Queries
  #cursors = 0

  /** Of a transaction; call `begin` first. */
  constructor(queries: Queries) {
    this.#queries = queries
  }

  async begin(): Promise<void> {
    await this.#queries.run('set transaction isolation level repeatable read read only')
  }

  async *items(kind: ItemKind): AsyncIterable<Item> {
    const cursor = `copy_${++this.#cursors}`
    await this.#queries.run(`declare ${cursor} no scroll cursor for ${READ[kind].text}`)
    try {
      for (;;) {
        const rows = await this.#queries.query<never>(text(`fetch ${PAGE} from ${cursor}`), [])
        for (const row of rows) {
          const item = READ[kind].read(row, this.#queries)
          if (item !== undefined) yield item
        }
        if (rows.length < PAGE) return
      }
    } finally {
      await this.#queries.run(`close ${cursor}`)
    }
  }
}

function copiedMessage(row: MessageRow): CopiedMessage {
  const { fingerprint, request_key: key, request_digest: digest, idle } = row
  const stored = readMessage(JSON.parse(row.stored) as MessageColumns, '')
  const { state, seq, content, endedAt, resetDone, deaths } = stored
  const isOpen = state === 'open'
  const { client, ...answered } = stored.message
  return {
    message: isOpen && client !== undefined ? stored.message : answered,
    fingerprint: fingerprint === null ? '' : fromColumn(fingerprint),
    ...(key === null || digest === null ? {} : { request: { key: fromColumn(key), digest: fromColumn(digest) } }),
    state,
    seq,
    ...(content === undefined ? {} : { content }),
    ...(endedAt === undefined ? {} : { endedAt }),
    ...(resetDone === true ? { resetDone } : {}),
    ...(isOpen && deaths !== undefined ? { deaths } : {}),
    ...(isOpen && idle ? { idle } : {}),
  }
}

async function* linesOf(queries: Queries, session: string, header: string): AsyncIterable<readonly string[]> {
  yield [header]
  for (let after = 0; ;) {
    const rows = await queries.query<{ position: number; line: string }>(
      text(
        `select position, line from entries where session_id = $1 and position > $2 order by position limit ${LINES}`,
      ),
      [session, after],
    )
    if (rows.length > 0) yield rows.map(({ line }) => line)
    if (rows.length < LINES) return
    after = rows.at(-1)?.position ?? after
  }
}

function text(sql: string): { readonly name: string; readonly text: string } {
  return { name: '', text: sql }
}
