import type { Database, SqlValue, Statement } from '../../base/database.ts'
import { isEphemeralAccount } from '../../core/inbound.ts'
import type { Inbox, Outbox, Recalled, StoredMessage } from '../storage.ts'
import { toColumn } from './column-text.ts'
import { readMessage, type MessageColumns } from './rows.ts'

const STORED = 'stored(m)::text as stored'
const UNDELIVERED = `state in ('waiting', 'unknown') and not abandoned`

const FIND = { name: 'message_find', text: `select ${STORED} from messages m where run = $1` }
const OPEN = {
  name: 'message_open',
  text: `select ${STORED} from messages m where state = 'open' and ($1::text is null or key = $1)
    and ($2::text is null or channel = $2) order by position`,
}
const OPEN_COUNT = { name: 'message_open_count', text: `select count(*) as count from messages where state = 'open'` }
const MISSED = {
  name: 'message_missed',
  text: `select ${STORED} from messages m where channel = $1 and ($2::text is null or account = $2) and ${UNDELIVERED}
    order by case when $2::text is null then answer_position end, seq`,
}
const MISSED_OF_SESSION = {
  name: 'message_missed_of_session',
  text: `select ${STORED} from messages m where key = $1 and ${UNDELIVERED}`,
}
const REMEMBERED = {
  name: 'message_remembered',
  text: `select ${STORED} from messages m where channel = $1 order by position`,
}
const AFTER = {
  name: 'message_after',
  text: `select ${STORED} from messages m where channel = $1 and account = $2 and state <> 'open' and seq > $3 order by seq`,
}
const BY_SEQ = {
  name: 'message_by_seq',
  text: `select ${STORED} from messages m where channel = $1 and account = $2 and seq = $3 and ${UNDELIVERED}`,
}
const DRAW = { name: 'draw_seq', text: 'select draw_seq($1, $2, $3) as seq' }
const REDIRECT = {
  name: 'message_redirect',
  text: 'update messages set account = $2, reply_to = $3::json where run = $1',
}
const ABANDON = {
  name: 'message_abandon',
  text: `update messages set abandoned = true where channel = $1 and account = $2 and ${UNDELIVERED}`,
}
const FORGET_NUMBERS = { name: 'account_forget', text: 'delete from accounts where channel = $1 and account = $2' }
const COUNTS = { name: 'message_counts', text: 'select state, count(*) as count from messages group by state' }
const FAILED = {
  name: 'message_failed',
  text: `select ${STORED} from messages m where answer_code = $1 order by position`,
}

const RECALL = { name: 'recall', text: 'select recall($1, $2, $3, $4)::text as known' }

type Reader = (statement: Statement, values: readonly SqlValue[]) => Promise<readonly StoredMessage[]>

function messageReader(database: Pick<Database, 'query'>, me: string): Reader {
  return async (statement, values) => {
    const rows = await database.query<{ stored: string }>(statement, values)
    return rows.map(({ stored }) => readMessage(JSON.parse(stored) as MessageColumns, me))
  }
}

/** Look-ups of messages that are not answered; `accept` is a transaction. */
export function createInboxReads(
  database: Pick<Database, 'query'>,
  { rememberMs, node }: { readonly rememberMs: number; readonly node: string },
): Omit<Inbox, 'accept'> {
  const read = messageReader(database, node)
  return {
    async recall({ fingerprint, request }) {
      const values = [toColumn(fingerprint), optional(request?.key), optional(request?.digest), rememberMs]
      const [row] = await database.query<{ known: string | null }>(RECALL, values)
      if (row === undefined || row.known === null) return undefined
      const { kind, known } = JSON.parse(row.known) as { kind: Recalled['kind']; known?: MessageColumns }
      return kind === 'duplicate' && known !== undefined
        ? { kind, known: readMessage(known, node) }
        : { kind: 'conflict' }
    },
    find: async (run) => (await read(FIND, [toColumn(run)]))[0],
    open: ({ key, channel } = {}) => read(OPEN, [optional(key), optional(channel)]),
    async openCount() {
      const [row] = await database.query<{ count: number }>(OPEN_COUNT, [])
      return row?.count ?? 0
    },
  }
}

const BLOCK = 32
const MOST_BLOCKS = 10_000

/**
 * Numbers of frames, drawn by the block: progress must not cost a commit each. A reply's number is drawn with its answer,
 * so what is left of a block is dropped when a reply of the account is about to be sent: numbers only rise.
 */
export class FrameNumbers {
  readonly #database: Pick<Database, 'query'>
  readonly #blocks = new Map<string, { next: number; readonly end: number }>()

  constructor(database: Pick<Database, 'query'>) {
    this.#database = database
  }

  async next(channel: string, account: string): Promise<number> {
    const name = `${channel}\n${account}`
    const block = this.#blocks.get(name)
    if (block !== undefined && block.next < block.end) return block.next++
    const [row] = await this.#database.query<{ seq: number }>(DRAW, [toColumn(channel), toColumn(account), BLOCK])
    const first = row?.seq ?? 0
    const other = this.#blocks.get(name)
    // Two that drew at once: the later block is the one to go on with.
    if (other === undefined || other.next < first) this.#blocks.set(name, { next: first + 1, end: first + BLOCK })
    const [oldest] = this.#blocks.size > MOST_BLOCKS ? this.#blocks.keys() : []
    if (oldest !== undefined) this.#blocks.delete(oldest)
    return first
  }

  forget(channel: string, account: string): void {
    this.#blocks.delete(`${channel}\n${account}`)
  }
}

/** Everything but `take`, which is a transaction. */
export function createOutbox(
  database: Pick<Database, 'query'>,
  node: string,
  numbers: FrameNumbers,
): Omit<Outbox, 'take'> {
  const read = messageReader(database, node)
  const place = (channel: string, account: string): [string, string] => [toColumn(channel), toColumn(account)]
  return {
    undelivered: ({ channel, account }) => read(MISSED, [toColumn(channel), optional(account)]),
    undeliveredOf: (key) => read(MISSED_OF_SESSION, [toColumn(key)]),
    remembered: (channel) => read(REMEMBERED, [toColumn(channel)]),
    answeredAfter: (channel, account, seq) => read(AFTER, [...place(channel, account), seq]),
    bySeq: async (channel, account, seq) => (await read(BY_SEQ, [...place(channel, account), seq]))[0],
    nextSeq: (channel, account) => numbers.next(channel, account),
    async redirect(run, { account, replyTo }) {
      await database.query(REDIRECT, [toColumn(run), toColumn(account), JSON.stringify(replyTo)])
    },
    async abandon(channel, account) {
      numbers.forget(channel, account)
      await database.query(ABANDON, place(channel, account))
      if (isEphemeralAccount(account)) await database.query(FORGET_NUMBERS, place(channel, account))
    },
    async counts() {
      const rows = await database.query<{ state: 'open'; count: number }>(COUNTS, [])
      const counted = Object.fromEntries(rows.map(({ state, count }) => [state, count]))
      return { open: 0, waiting: 0, unknown: 0, delivered: 0, ...counted }
    },
    failedWith: (code) => read(FAILED, [code]),
  }
}

function optional(text: string | undefined): string | null {
  return text === undefined ? null : toColumn(text)
}
