import type { RunId, SessionKey } from '../../core/ids.ts'
import {
  callerOf,
  isEphemeralAccount,
  UNKNOWN_OWNER,
  type AcceptedMessage,
  type ReplyContent,
} from '../../core/inbound.ts'

/**
 * `open`: accepted, not answered · `waiting`: answered, nothing sent yet · `unknown`: sent, and it is unknown whether it
 * arrived · `delivered`. An answer becomes `unknown` before the first byte is sent, so a crash never hides an attempt.
 */
export type DeliveryState = 'open' | 'waiting' | 'unknown' | 'delivered'

export interface MessageRow {
  readonly message: AcceptedMessage
  readonly fingerprint: string
  readonly state: DeliveryState
  readonly seq: number
  readonly content: ReplyContent | undefined
  /** When it was answered; absent in rows of versions that did not note it. */
  readonly endedAt?: number
  /** The session was already reset for this message (`/new text`): a restart must not do it again. */
  readonly resetDone?: boolean
  /** Starts that ended unforeseen while it was worked on. */
  readonly deaths?: number
  /** It is to be resumed, and this start has not begun to. */
  readonly isIdle?: boolean
}

export interface DeliveryLimits {
  /** How long a message is remembered from its answer on, to recognise its redelivery and for a client that is away. */
  readonly rememberMs: number
  readonly rememberedMessages: number
  readonly rememberedBytes: number
  /** Undelivered replies of one account; the oldest go first. */
  readonly outboxPerAccount: number
  /** Accounts whose frame numbers are known one by one. */
  readonly rememberedAccounts: number
}

export const DEFAULT_MESSAGE_LIMITS: DeliveryLimits = {
  rememberMs: 24 * 60 * 60 * 1000,
  rememberedMessages: 100_000,
  rememberedBytes: 64 * 1024 * 1024,
  rememberedAccounts: 100_000,
  outboxPerAccount: 1_000,
}

/** Messages looked at, at most, to find some to forget: the cost of one acceptance stays flat. */
const VISITS = 1_000

/** Every message from acceptance to its delivered answer, found by id, fingerprint, session or account. */
export class MessageRows {
  /** In the order of acceptance. */
  readonly #rows = new Map<RunId, MessageRow>()
  readonly #byFingerprint = new Map<string, RunId>()
  /** By channel, owner and the key that the sender gave its request. */
  readonly #byRequestKey = new Map<string, RunId>()
  readonly #byKey = new Map<SessionKey, Set<RunId>>()
  readonly #byAccount = new Map<string, Set<RunId>>()
  /** Answered messages that the peer may still miss, per account. */
  readonly #undelivered = new Map<string, Set<RunId>>()
  /** Answered messages without a waiting client: the first to go when memory is short. */
  readonly #settled = new Set<RunId>()
  /** Without an answer, in the order of acceptance; a session remembers many more that have one. */
  readonly #open = new Set<RunId>()
  readonly #openByKey = new Map<SessionKey, Set<RunId>>()
  #bytes = 0

  /** How many messages are without an answer. */
  get openCount(): number {
    return this.#open.size
  }

  /** Messages without an answer: of one session, or all. */
  open(key?: SessionKey): readonly MessageRow[] {
    return this.#all(key === undefined ? this.#open : this.#openByKey.get(key))
  }

  /** Of texts and answers, roughly. */
  get bytes(): number {
    return this.#bytes
  }

  get(id: RunId): MessageRow | undefined {
    return this.#rows.get(id)
  }

  values(): Iterable<MessageRow> {
    return this.#rows.values()
  }

  byFingerprint(fingerprint: string): MessageRow | undefined {
    const id = this.#byFingerprint.get(fingerprint)
    return id === undefined ? undefined : this.#rows.get(id)
  }

  byRequestKey(requestKey: string): MessageRow | undefined {
    const id = this.#byRequestKey.get(requestKey)
    return id === undefined ? undefined : this.#rows.get(id)
  }

  ofSession(key: SessionKey): readonly MessageRow[] {
    return this.#all(this.#byKey.get(key))
  }

  ofAccount(account: string): readonly MessageRow[] {
    return this.#all(this.#byAccount.get(account))
  }

  /** By number: a row is put anew with each change of its state, and by a restart in the order of acceptance. */
  undelivered(account: string): readonly MessageRow[] {
    return this.#all(this.#undelivered.get(account)).toSorted((a, b) => a.seq - b.seq)
  }

  allUndelivered(): readonly MessageRow[] {
    return [...this.#undelivered.keys()]
      .flatMap((account) => this.undelivered(account))
      .toSorted((a, b) => endOf(a) - endOf(b))
  }

  undeliveredOf(key: SessionKey): readonly MessageRow[] {
    return this.ofSession(key).filter(({ message }) => this.#undelivered.get(accountOf(message))?.has(message.run))
  }

  undeliveredCount(account: string): number {
    return this.#undelivered.get(account)?.size ?? 0
  }

  /** Adds a row, or puts a changed one in its place. */
  put(row: MessageRow): void {
    const { run: id, key } = row.message
    const before = this.#rows.get(id)
    if (before !== undefined) this.#untrack(before)
    if (row.state !== 'open') this.#close(row)
    this.#rows.set(id, row)
    this.#byFingerprint.set(row.fingerprint, id)
    const requestKey = requestKeyOf(row.message)
    if (requestKey !== undefined) this.#byRequestKey.set(requestKey, id)
    add(this.#byKey, key, id)
    add(this.#byAccount, accountOf(row.message), id)
    this.#track(row)
  }

  change(id: RunId, change: (row: MessageRow) => MessageRow): void {
    const row = this.#rows.get(id)
    if (row !== undefined) this.put(change(row))
  }

  delete(id: RunId): void {
    const row = this.#rows.get(id)
    if (row === undefined) return
    this.#untrack(row)
    this.#close(row)
    this.#rows.delete(id)
    if (this.#byFingerprint.get(row.fingerprint) === id) this.#byFingerprint.delete(row.fingerprint)
    const requestKey = requestKeyOf(row.message)
    if (requestKey !== undefined && this.#byRequestKey.get(requestKey) === id) this.#byRequestKey.delete(requestKey)
    remove(this.#byKey, row.message.key, id)
  }

  /** What this account has not received is never asked for again. */
  abandon(account: string): void {
    for (const id of this.#undelivered.get(account) ?? []) this.#settled.add(id)
    this.#undelivered.delete(account)
  }

  /** What may be forgotten now: too old, or over the limits; a message without an answer never is. */
  expendable(limits: DeliveryLimits, now: number): readonly RunId[] {
    const ids = new Set<RunId>(this.#expired(now - limits.rememberMs))
    let bytes = this.#bytes
    const isCrowded = (): boolean =>
      this.#rows.size - ids.size > limits.rememberedMessages || bytes > limits.rememberedBytes
    for (const source of [this.#settled, this.#rows.keys()]) {
      let visits = 0
      for (const id of source) {
        if (!isCrowded() || ids.size >= VISITS || ++visits > VISITS) break
        const row = this.#rows.get(id)
        if (row === undefined || row.state === 'open') continue
        ids.add(id)
        bytes -= sizeOf(row)
      }
    }
    return [...ids]
  }

  *#expired(before: number): Iterable<RunId> {
    let visits = 0
    for (const [id, row] of this.#rows) {
      if (row.message.acceptedAt > before || ++visits > VISITS) return
      if (row.state !== 'open' && endOf(row) <= before) yield id
    }
  }

  #all(ids: ReadonlySet<RunId> | undefined): readonly MessageRow[] {
    return [...(ids ?? [])].flatMap((id) => this.#rows.get(id) ?? [])
  }

  #track(row: MessageRow): void {
    const { run: id, account } = row.message
    this.#bytes += sizeOf(row)
    if (row.state === 'open') {
      this.#open.add(id)
      add(this.#openByKey, row.message.key, id)
    } else if (row.state === 'delivered' || (row.state === 'waiting' && isEphemeralAccount(account)))
      this.#settled.add(id)
    else add(this.#undelivered, accountOf(row.message), id)
  }

  #close({ message: { run, key } }: MessageRow): void {
    this.#open.delete(run)
    remove(this.#openByKey, key, run)
  }

  #untrack(row: MessageRow): void {
    const { run: id } = row.message
    this.#bytes -= sizeOf(row)
    this.#settled.delete(id)
    remove(this.#undelivered, accountOf(row.message), id)
    remove(this.#byAccount, accountOf(row.message), id)
  }
}

/** Of an answered message. */
export function endOf({ endedAt, message }: MessageRow): number {
  return endedAt ?? message.acceptedAt
}

export function accountOf(message: { readonly channel: string; readonly account: string }): string {
  return `${message.channel}\n${message.account}`
}

/** What a sender recognises its request by. A sender without any identity has none: its repeats are new messages. */
export function requestKeyOf(message: AcceptedMessage): string | undefined {
  const { owner } = callerOf(message)
  if (message.idempotency === undefined || owner === UNKNOWN_OWNER) return undefined
  return JSON.stringify([message.channel, owner, message.idempotency.key])
}

/** Rough, but the same when a row is stored and when it is dropped. */
function sizeOf({ message, content }: MessageRow): number {
  const answer =
    content === undefined || content.kind === 'cancelled'
      ? 0
      : content.kind === 'complete'
        ? content.text.length
        : content.partialText.length
  return 512 + 2 * (message.text.length + answer)
}

function add<K, V>(map: Map<K, Set<V>>, key: K, value: V): void {
  const known = map.get(key)
  if (known === undefined) map.set(key, new Set([value]))
  else known.add(value)
}

function remove<K, V>(map: Map<K, Set<V>>, key: K, value: V): void {
  const known = map.get(key)
  if (known === undefined) return
  known.delete(value)
  if (known.size === 0) map.delete(key)
}
