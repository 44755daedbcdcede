import type { Clock } from '../../base/clock.ts'
import type { JournalRecord, JournalTopic } from '../../base/journal.ts'
import type { JsonObject } from '../../base/json.ts'
import type { Log } from '../../base/log.ts'
import type { Change } from '../../core/change.ts'
import type { RunId, SessionKey } from '../../core/ids.ts'
import { isEphemeralAccount, type AcceptedMessage } from '../../core/inbound.ts'
import type { Acceptance } from '../storage.ts'
import { decodeDeliveryRecord, type DeliveryRecord } from './delivery-record.ts'
import { accountOf, endOf, MessageRows, type DeliveryLimits, type MessageRow } from './message-rows.ts'
import { Sequences } from './sequences.ts'

/** A change of a message. */
export type MessageChange = Extract<Change, { kind: 'answer' | 'delivery' | 'reset-done' | 'resumed' | 'paused' }>

export function isMessageChange(change: Change): change is MessageChange {
  return ['answer', 'delivery', 'reset-done', 'resumed', 'paused'].includes(change.kind)
}

export interface MessageTableDeps {
  readonly clock: Clock
  readonly log: Log
  readonly limits: DeliveryLimits
}

const TOPIC = 'delivery'

/**
 * Inbox and outbox: every message from its acceptance to its delivered answer. Memory is bounded by forgetting the oldest
 * delivered answers first.
 */
export class MessageTable implements JournalTopic<DeliveryRecord> {
  readonly name = TOPIC
  readonly rows = new MessageRows()
  readonly #deps: MessageTableDeps
  readonly #sequences: Sequences
  /** Their answer is being made durable: the first one counts. */
  readonly #answering = new Set<RunId>()
  /** Something was begun since the last foreseen end. */
  #isLiving = false
  #isRecovered = false

  constructor(deps: MessageTableDeps) {
    this.#deps = deps
    this.#sequences = new Sequences(deps.limits.rememberedAccounts)
  }

  /** After recovery: from here on `apply` is fed by this program's own commits. */
  recovered(): void {
    this.#isRecovered = true
    this.#sequences.startBehindReservations()
    for (const { message } of [...this.rows.values()])
      if (isEphemeralAccount(message.account)) this.rows.abandon(accountOf(message))
  }

  get isLiving(): boolean {
    return this.#isLiving
  }

  readonly read = decodeDeliveryRecord

  apply(record: DeliveryRecord): void {
    switch (record.do) {
      case 'accept': {
        const { message, fingerprint } = record
        this.#isLiving = true
        // Applied again over a snapshot that already knows the answer, it must not open the message once more.
        if (this.rows.get(message.run) !== undefined) return
        return this.rows.put({ message, fingerprint, state: 'open', seq: 0, content: undefined })
      }
      case 'answer':
        return this.rows.change(record.run, (row) => ({
          ...row,
          message: withoutContent(row.message),
          state: 'unknown',
          seq: record.seq,
          content: record.content,
          ...(record.at === undefined ? {} : { endedAt: record.at }),
        }))
      case 'state':
        return this.rows.change(record.run, (row) => ({ ...row, state: record.state }))
      case 'life-began':
        this.#isLiving = true
        return record.deaths.forEach(([run, deaths]) =>
          this.rows.change(run, (row) => ({ ...row, deaths, isIdle: true })),
        )
      case 'resumed':
        return this.rows.change(record.run, (row) => ({ ...row, isIdle: false }))
      case 'paused':
        return this.rows.change(record.run, (row) => ({ ...row, isIdle: true, deaths: 0 }))
      case 'life-ended':
        this.#isLiving = false
        return
      case 'life':
        this.#isLiving = record.isLiving
        return
      case 'reset-done':
        return this.rows.change(record.run, (row) => ({ ...row, resetDone: true }))
      case 'forget':
        return record.runs.forEach((run) => this.rows.delete(run))
      case 'seq':
        return this.#sequences.reserve(record.account, record.upTo)
      case 'seq-floor':
        return this.#sequences.raiseFloor(record.upTo)
      case 'run': {
        const { message, seq } = record.run
        if (!isEphemeralAccount(message.account)) this.#sequences.reserve(accountOf(message), seq)
        return this.rows.put(record.run)
      }
    }
  }

  *snapshot(): Iterable<DeliveryRecord> {
    yield { do: 'seq-floor', upTo: this.#sequences.floor }
    yield { do: 'life', isLiving: this.#isLiving }
    for (const [account, upTo] of [...this.#sequences.reservations()]) yield { do: 'seq', account, upTo }
    for (const row of [...this.rows.values()]) yield { do: 'run', run: row }
  }

  /**
   * When the start before this one ended unforeseen, that counts against what it may have been working on: of each
   * session the oldest open message, unless it was still to be resumed or waited for a person.
   */
  beginLife(): { readonly suspects: ReadonlyMap<RunId, number>; readonly records: readonly JournalRecord[] } {
    const blamed = this.#isLiving
      ? new Set(this.#oldestOpen().filter((row) => row.isIdle !== true))
      : new Set<MessageRow>()
    const suspects = new Map<RunId, number>()
    for (const row of this.rows.open()) {
      const deaths = (row.deaths ?? 0) + (blamed.has(row) ? 1 : 0)
      if (deaths > 0) suspects.set(row.message.run, deaths)
    }
    return {
      suspects,
      records: this.rows.openCount === 0 ? [] : [toJournal({ do: 'life-began', deaths: [...suspects] })],
    }
  }

  endLife(): readonly JournalRecord[] {
    return this.#isLiving ? [toJournal({ do: 'life-ended' })] : []
  }

  /** The message that this one is a copy of, or a conflicting use of its request's key. */
  knownAs({ fingerprint, request }: Pick<Acceptance, 'fingerprint' | 'request'>): MessageRow | 'conflict' | undefined {
    const asked = request === undefined ? undefined : this.#remembered(this.rows.byRequestKey(request.key))
    if (asked !== undefined && asked.message.idempotency?.digest !== request?.digest) return 'conflict'
    return asked ?? this.#remembered(this.rows.byFingerprint(fingerprint))
  }

  acceptRecords(message: AcceptedMessage, fingerprint: string): readonly JournalRecord[] {
    const expendable = this.rows.expendable(this.#deps.limits, this.#deps.clock.now())
    return [
      ...(expendable.length === 0 ? [] : [toJournal({ do: 'forget', runs: expendable })]),
      toJournal({ do: 'accept', message, fingerprint }),
    ]
  }

  /** What these changes write; a message that has its answer, or is just getting it, keeps it. */
  recordsOf(changes: readonly MessageChange[]): readonly JournalRecord[] {
    const room = new Map<string, number>()
    const records = changes.flatMap((change) => this.#recordsOf(change, room))
    const forgotten = [...room].flatMap(([account, added]) => this.#makeRoom(account, added))
    return [...forgotten, ...records].map(toJournal)
  }

  /** Until then a second answer is refused; afterwards the first one is there, or was not stored. */
  answerSettled(run: RunId): void {
    this.#answering.delete(run)
  }

  isAnswerable(run: RunId): boolean {
    return this.rows.get(run)?.state === 'open' && !this.#answering.has(run)
  }

  /** A number, or what has to be durable before one can be given. */
  nextSeq(account: string): number | readonly JournalRecord[] {
    if (isEphemeralAccount(account)) return this.#sequences.takeEphemeral(account)
    return (
      this.#sequences.take(account) ?? [
        toJournal({ do: 'seq', account, upTo: this.#sequences.nextReservation(account) }),
      ]
    )
  }

  redirect(run: RunId, to: { readonly account: string; readonly replyTo: JsonObject }): void {
    this.rows.change(run, (row) => ({ ...row, message: { ...row.message, ...to } }))
  }

  /** Of frame numbers of clients. */
  get accountBytes(): number {
    return this.#sequences.heldBytes
  }

  /** A client without an identity of its own has left and cannot come back. */
  abandon(account: string): void {
    this.#sequences.forget(account)
    this.rows.abandon(account)
  }

  /** What a delete takes along: everything about the session's answered messages. */
  forgetSession(key: SessionKey): readonly JournalRecord[] {
    const isAnswered = ({ state, message }: MessageRow): boolean => state !== 'open' || this.#answering.has(message.run)
    const answered = this.rows.ofSession(key).filter(isAnswered)
    return answered.length === 0 ? [] : [toJournal({ do: 'forget', runs: answered.map(({ message }) => message.run) })]
  }

  #recordsOf(change: MessageChange, room: Map<string, number>): readonly DeliveryRecord[] {
    const { run } = change
    switch (change.kind) {
      case 'answer': {
        const known = this.rows.get(run)
        if (known === undefined || !this.isAnswerable(run)) return []
        this.#answering.add(run)
        const account = accountOf(known.message)
        room.set(account, (room.get(account) ?? 0) + 1)
        const { seq, reserved } = this.#numberFor(account)
        const answer = { do: 'answer', run, seq, content: change.content, at: this.#deps.clock.now() } as const
        return reserved === undefined ? [answer] : [{ do: 'seq', account, upTo: reserved }, answer]
      }
      case 'delivery': {
        const state = this.rows.get(run)?.state
        const isAnswered = (state !== undefined && state !== 'open') || this.#answering.has(run)
        return isAnswered && state !== change.state ? [{ do: 'state', run, state: change.state }] : []
      }
      case 'reset-done':
      case 'resumed':
      case 'paused':
        return [{ do: change.kind, run }]
    }
  }

  #numberFor(account: string): { readonly seq: number; readonly reserved?: number } {
    return isEphemeralAccount(account)
      ? { seq: this.#sequences.takeEphemeral(account) }
      : this.#sequences.takeWith(account)
  }

  /** The oldest undelivered replies of an account go when it has too many. */
  #makeRoom(account: string, added: number): readonly DeliveryRecord[] {
    const { limits, log } = this.#deps
    const over = this.rows.undeliveredCount(account) + added - limits.outboxPerAccount
    if (over <= 0 || !this.#isRecovered) return []
    const oldest = this.rows.undelivered(account).slice(0, over)
    const runs = oldest.map(({ message }) => message.run)
    log.warn('a client has not fetched its replies for long; its oldest ones are dropped', { replies: runs.length })
    return [{ do: 'forget', runs }]
  }

  #remembered(row: MessageRow | undefined): MessageRow | undefined {
    const { clock, limits } = this.#deps
    if (row === undefined || row.state === 'open') return row
    return endOf(row) + limits.rememberMs > clock.now() ? row : undefined
  }

  #oldestOpen(): readonly MessageRow[] {
    const oldest = new Map<SessionKey, MessageRow>()
    for (const row of this.rows.open()) if (!oldest.has(row.message.key)) oldest.set(row.message.key, row)
    return [...oldest.values()]
  }
}

/** The words were needed to answer; the fingerprint is enough to recognise a redelivery. */
function withoutContent(message: AcceptedMessage): AcceptedMessage {
  const { client: _, ...rest } = message
  return { ...rest, text: '', attachments: [] }
}

function toJournal(record: DeliveryRecord): JournalRecord {
  return { topic: TOPIC, data: record }
}
