import type { Clock } from '../../base/clock.ts'
import type { JournalRecord, JournalTopic } from '../../base/journal.ts'
import type { JsonObject } from '../../base/json.ts'
import type { Log } from '../../base/log.ts'
import type { Change } from '../../core/change.ts'
import type { RunId, SessionKey } from '../../core/ids.ts'
import { isEphemeralAccount, type AcceptedMessage } from '../../core/inbound.ts'
import type { Acceptance } from '../storage.ts'
import { decodeDeliveryRecord, type DeliveryRecord } from './delivery-record.ts'
import { accountOf, RunTable, type DeliveryLimits, type Run } from './run-table.ts'
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
  readonly runs = new RunTable()
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
    for (const { message } of [...this.runs.values()])
      if (isEphemeralAccount(message.account)) this.runs.abandon(accountOf(message))
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
        if (this.runs.get(message.run) !== undefined) return
        return this.runs.put({ message, fingerprint, state: 'open', seq: 0, content: undefined })
      }
      case 'answer':
        return this.runs.change(record.run, (run) => ({
          ...run,
          message: withoutContent(run.message),
          state: 'unknown',
          seq: record.seq,
          content: record.content,
          ...(record.at === undefined ? {} : { endedAt: record.at }),
        }))
      case 'state':
        return this.runs.change(record.run, (run) => ({ ...run, state: record.state }))
      case 'life-began':
        this.#isLiving = true
        return record.deaths.forEach(([run, deaths]) =>
          this.runs.change(run, (one) => ({ ...one, deaths, isIdle: true })),
        )
      case 'resumed':
        return this.runs.change(record.run, (run) => ({ ...run, isIdle: false }))
      case 'paused':
        return this.runs.change(record.run, (run) => ({ ...run, isIdle: true, deaths: 0 }))
      case 'life-ended':
        this.#isLiving = false
        return
      case 'life':
        this.#isLiving = record.isLiving
        return
      case 'reset-done':
        return this.runs.change(record.run, (run) => ({ ...run, resetDone: true }))
      case 'forget':
        return record.runs.forEach((run) => this.runs.delete(run))
      case 'seq':
        return this.#sequences.reserve(record.account, record.upTo)
      case 'seq-floor':
        return this.#sequences.raiseFloor(record.upTo)
      case 'run': {
        const { message, seq } = record.run
        if (!isEphemeralAccount(message.account)) this.#sequences.reserve(accountOf(message), seq)
        return this.runs.put(record.run)
      }
    }
  }

  *snapshot(): Iterable<DeliveryRecord> {
    yield { do: 'seq-floor', upTo: this.#sequences.floor }
    yield { do: 'life', isLiving: this.#isLiving }
    for (const [account, upTo] of [...this.#sequences.reservations()]) yield { do: 'seq', account, upTo }
    for (const run of [...this.runs.values()]) yield { do: 'run', run }
  }

  /**
   * When the start before this one ended unforeseen, that counts against what it may have been working on: of each
   * session the oldest open message, unless it was still to be resumed or waited for a person.
   */
  beginLife(): { readonly suspects: ReadonlyMap<RunId, number>; readonly records: readonly JournalRecord[] } {
    const blamed = this.#isLiving ? new Set(this.#oldestOpen().filter((run) => run.isIdle !== true)) : new Set<Run>()
    const suspects = new Map<RunId, number>()
    for (const run of this.runs.values()) {
      const deaths = (run.deaths ?? 0) + (blamed.has(run) ? 1 : 0)
      if (run.state === 'open' && deaths > 0) suspects.set(run.message.run, deaths)
    }
    return { suspects, records: this.runs.open === 0 ? [] : [toJournal({ do: 'life-began', deaths: [...suspects] })] }
  }

  endLife(): readonly JournalRecord[] {
    return this.#isLiving ? [toJournal({ do: 'life-ended' })] : []
  }

  /** The message that this one is a copy of, or a conflicting use of its request's key. */
  knownAs({ fingerprint, request }: Pick<Acceptance, 'fingerprint' | 'request'>): Run | 'conflict' | undefined {
    const asked = request === undefined ? undefined : this.#remembered(this.runs.byRequestKey(request.key))
    if (asked !== undefined && asked.message.idempotency?.digest !== request?.digest) return 'conflict'
    return asked ?? this.#remembered(this.runs.byFingerprint(fingerprint))
  }

  acceptRecords(message: AcceptedMessage, fingerprint: string): readonly JournalRecord[] {
    const expendable = this.runs.expendable(this.#deps.limits, this.#deps.clock.now())
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
    return this.runs.get(run)?.state === 'open' && !this.#answering.has(run)
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
    this.runs.change(run, (one) => ({ ...one, message: { ...one.message, ...to } }))
  }

  /** Of frame numbers of clients. */
  get accountBytes(): number {
    return this.#sequences.heldBytes
  }

  /** A client without an identity of its own has left and cannot come back. */
  abandon(account: string): void {
    this.#sequences.forget(account)
    this.runs.abandon(account)
  }

  /** What a delete takes along: everything about the session's answered messages. */
  forgetSession(key: SessionKey): readonly JournalRecord[] {
    const isAnswered = ({ state, message }: Run): boolean => state !== 'open' || this.#answering.has(message.run)
    const answered = this.runs.ofSession(key).filter(isAnswered)
    return answered.length === 0 ? [] : [toJournal({ do: 'forget', runs: answered.map(({ message }) => message.run) })]
  }

  #recordsOf(change: MessageChange, room: Map<string, number>): readonly DeliveryRecord[] {
    const { run } = change
    switch (change.kind) {
      case 'answer': {
        const known = this.runs.get(run)
        if (known === undefined || !this.isAnswerable(run)) return []
        this.#answering.add(run)
        const account = accountOf(known.message)
        room.set(account, (room.get(account) ?? 0) + 1)
        const { seq, reserved } = this.#numberFor(account)
        const answer = { do: 'answer', run, seq, content: change.content, at: this.#deps.clock.now() } as const
        return reserved === undefined ? [answer] : [{ do: 'seq', account, upTo: reserved }, answer]
      }
      case 'delivery': {
        const state = this.runs.get(run)?.state
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
    const over = this.runs.undeliveredCount(account) + added - limits.outboxPerAccount
    if (over <= 0 || !this.#isRecovered) return []
    const oldest = this.runs.undelivered(account).slice(0, over)
    const runs = oldest.map(({ message }) => message.run)
    log.warn('a client has not fetched its replies for long; its oldest ones are dropped', { replies: runs.length })
    return [{ do: 'forget', runs }]
  }

  #remembered(run: Run | undefined): Run | undefined {
    const { clock, limits } = this.#deps
    return run !== undefined && run.message.acceptedAt + limits.rememberMs > clock.now() ? run : undefined
  }

  #oldestOpen(): readonly Run[] {
    const oldest = new Map<SessionKey, Run>()
    for (const run of this.runs.values())
      if (run.state === 'open' && !oldest.has(run.message.key)) oldest.set(run.message.key, run)
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
