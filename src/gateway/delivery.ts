import { createHash } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import type { Journal, JournalRecord, JournalTopic } from '../base/journal.ts'
import type { JsonObject } from '../base/json.ts'
import type { Log } from '../base/log.ts'
import { GatewayError } from '../core/errors.ts'
import type { RunId, SessionKey } from '../core/ids.ts'
import {
  callerOf,
  isEphemeralAccount,
  UNKNOWN_OWNER,
  type AcceptedMessage,
  type DeliveryFate,
  type Reply,
} from '../core/inbound.ts'
import type { Answer } from '../session/session.ts'
import { Attempts } from './attempts.ts'
import { decodeDeliveryRecord, type DeliveryRecord } from './delivery-record.ts'
import { journalError } from './journal-error.ts'
import {
  accountOf,
  requestKeyOf,
  RunTable,
  type DeliveryLimits,
  type DeliveryState,
  type Destination,
  type Run,
} from './run-table.ts'
import { Sequences } from './sequences.ts'

export interface DeliveryParts {
  readonly clock: Clock
  readonly log: Log
  readonly limits: DeliveryLimits
  /** The channel's `deliver`. */
  send(reply: Reply): Promise<DeliveryFate>
}

export interface AcceptOptions {
  /** Called when the message is new, before anything is written; throwing refuses it. */
  admit(): void
  /** Made durable together with the message. */
  alongside(): readonly JournalRecord[]
}

const TOPIC = 'delivery'

/**
 * The inbox and the outbox: one owner of every step a message takes from acceptance to its delivered answer. All of it is
 * journal state; memory is bounded by forgetting the oldest delivered answers first.
 */
export class Delivery implements JournalTopic {
  readonly name = TOPIC
  readonly #parts: DeliveryParts
  readonly #runs = new RunTable()
  readonly #sequences: Sequences
  readonly #accepting = new Map<string, Promise<RunId>>()
  readonly #attempts: Attempts
  #journal: Journal | undefined
  /** Something was begun since the last foreseen end. */
  #isLiving = false

  constructor(parts: DeliveryParts) {
    this.#parts = parts
    this.#sequences = new Sequences(parts.limits.rememberedAccounts)
    this.#attempts = new Attempts({
      log: parts.log,
      find: (run) => this.#runs.get(run),
      send: (reply) => parts.send(reply),
      record: (run, state) => this.#commit([{ do: 'state', run, state }]),
      nextSeq: (account) => this.nextSeq(account),
      onUnreachable: (account) => this.#sequences.forget(account),
    })
  }

  /** After recovery: from here on `apply` is fed by this program's own commits. */
  attach(journal: Journal): void {
    this.#journal = journal
    this.#sequences.startBehindReservations()
    for (const { message } of [...this.#runs.values()])
      if (isEphemeralAccount(message.account)) this.#runs.abandon(accountOf(message))
  }

  apply(data: unknown): void {
    const record = decodeDeliveryRecord(data)
    if (record === undefined) return
    switch (record.do) {
      case 'accept': {
        const { message, fingerprint } = record
        this.#isLiving = true
        // Applied again over a snapshot that already knows the answer, it must not open the message once more.
        if (this.#runs.get(message.run) !== undefined) return
        return this.#runs.put({ message, fingerprint, state: 'open', seq: 0, content: undefined })
      }
      case 'answer':
        return this.#runs.change(record.run, (run) => ({
          ...run,
          message: withoutContent(run.message),
          state: 'unknown',
          seq: record.seq,
          content: record.content,
          ...(record.at === undefined ? {} : { endedAt: record.at }),
        }))
      case 'state':
        return this.#runs.change(record.run, (run) => ({ ...run, state: record.state }))
      case 'life-began':
        this.#isLiving = true
        return record.deaths.forEach(([run, deaths]) =>
          this.#runs.change(run, (one) => ({ ...one, deaths, isIdle: true })),
        )
      case 'resumed':
        return this.#runs.change(record.run, (run) => ({ ...run, isIdle: false }))
      case 'paused':
        return this.#runs.change(record.run, (run) => ({ ...run, isIdle: true, deaths: 0 }))
      case 'life-ended':
        this.#isLiving = false
        return
      case 'life':
        this.#isLiving = record.isLiving
        return
      case 'reset-done':
        return this.#runs.change(record.run, (run) => ({ ...run, resetDone: true }))
      case 'forget':
        return record.runs.forEach((run) => this.#runs.delete(run))
      case 'seq':
        return this.#sequences.reserve(record.account, record.upTo)
      case 'seq-floor':
        return this.#sequences.raiseFloor(record.upTo)
      case 'run': {
        const { message, seq } = record.run
        if (!isEphemeralAccount(message.account)) this.#sequences.reserve(accountOf(message), seq)
        return this.#runs.put(record.run)
      }
    }
  }

  *snapshot(): Iterable<DeliveryRecord> {
    yield { do: 'seq-floor', upTo: this.#sequences.floor }
    yield { do: 'life', isLiving: this.#isLiving }
    for (const [account, upTo] of [...this.#sequences.reservations()]) yield { do: 'seq', account, upTo }
    for (const run of [...this.#runs.values()]) yield { do: 'run', run }
  }

  /**
   * Call once, before anything is resumed. When the start before this one ended unforeseen, that counts against what it may
   * have been working on: of each session the oldest open message, unless it was still to be resumed. Resolves with those
   * that have ended starts, once that is durable.
   */
  async beginLife(): Promise<readonly { readonly run: RunId; readonly deaths: number }[]> {
    const blamed = this.#isLiving ? new Set(this.#oldestOpen().filter((run) => run.isIdle !== true)) : new Set<Run>()
    const suspects = [...this.#runs.values()].flatMap((run) => {
      const deaths = (run.deaths ?? 0) + (blamed.has(run) ? 1 : 0)
      return run.state === 'open' && deaths > 0 ? [{ run: run.message.run, deaths }] : []
    })
    const deaths = suspects.map((one) => [one.run, one.deaths] as const)
    // A disk that is full must not keep a gateway from starting; then this start is not counted.
    if (this.#runs.open > 0) await this.#commit([{ do: 'life-began', deaths }]).catch(() => undefined)
    return suspects
  }

  /** To be durable before a message that has ended starts begins again, if the disk has room for it. */
  resumed(run: RunId): Promise<void> {
    return this.#commit([{ do: 'resumed', run }]).catch(() => undefined)
  }

  /** The message waits for a person; `resumed` when it goes on. */
  paused(run: RunId): Promise<void> {
    return this.#commit([{ do: 'paused', run }]).catch(() => undefined)
  }

  /** Answered with an error because they ended starts; as long as they are remembered. */
  poisoned(): readonly { readonly run: RunId; readonly session: SessionKey; readonly deaths: number }[] {
    return [...this.#runs.values()].flatMap(({ message, content, deaths = 0 }) =>
      content?.kind === 'error' && content.code === 'MESSAGE_POISONED'
        ? [{ run: message.run, session: message.key, deaths }]
        : [],
    )
  }

  #oldestOpen(): readonly Run[] {
    const oldest = new Map<SessionKey, Run>()
    for (const run of this.#runs.values())
      if (run.state === 'open' && !oldest.has(run.message.key)) oldest.set(run.message.key, run)
    return [...oldest.values()]
  }

  /** Messages without an answer, oldest first: what a restart has to run. */
  openMessages(): readonly AcceptedMessage[] {
    return [...this.#runs.values()].filter((run) => run.state === 'open').map((run) => run.message)
  }

  /** Everything known about one message, from its acceptance until it is forgotten. */
  find(run: RunId): Run | undefined {
    return this.#runs.get(run)
  }

  /** Answered runs of a channel that its peers may still miss. */
  undelivered(channel: string): readonly Run[] {
    return this.#runs.allUndelivered().filter(({ message }) => message.channel === channel)
  }

  /** Accepted, and without a durable answer. */
  /** In the order of acceptance. */
  ofChannel(channel: string): readonly Run[] {
    return [...this.#runs.values()].filter(({ message }) => message.channel === channel)
  }

  isOpen(run: RunId): boolean {
    return this.#runs.get(run)?.state === 'open'
  }

  get openCount(): number {
    return this.#runs.open
  }

  /** Of frame numbers of clients. */
  get accountBytes(): number {
    return this.#sequences.heldBytes
  }

  get rememberedBytes(): number {
    return this.#runs.bytes
  }

  isResetDone(run: RunId): boolean {
    return this.#runs.get(run)?.resetDone === true
  }

  /** To be committed together with the reset itself. */
  resetDone(run: RunId): JournalRecord {
    return toJournal({ do: 'reset-done', run })
  }

  counts(): Readonly<Record<DeliveryState, number>> {
    const counts = { open: 0, waiting: 0, unknown: 0, delivered: 0 }
    for (const run of this.#runs.values()) counts[run.state]++
    return counts
  }

  /**
   * Makes a message durable, or recognises it as a redelivery: same owner, sender id, session and content within the
   * time we remember. Copies arriving at once count as one message.
   */
  async accept(
    message: AcceptedMessage,
    options: AcceptOptions,
  ): Promise<{ readonly run: RunId; readonly duplicate: boolean }> {
    const fingerprint = fingerprintOf(message)
    const requestKey = requestKeyOf(message)
    for (;;) {
      const known = this.#knownAs(message, requestKey) ?? this.#runs.byFingerprint(fingerprint)
      if (known !== undefined && this.#isRemembered(known)) return { run: known.message.run, duplicate: true }
      const accepting = this.#accepting.get(requestKey ?? fingerprint) ?? this.#accepting.get(fingerprint)
      if (accepting === undefined) break
      await accepting.catch(() => undefined)
    }
    options.admit()
    const records = [...this.#forgetOld(), { do: 'accept', message, fingerprint } as const]
    const accepting = this.#commit(records, options.alongside()).then(() => message.run)
    const names = requestKey === undefined ? [fingerprint] : [fingerprint, requestKey]
    for (const name of names) this.#accepting.set(name, accepting)
    try {
      return { run: await accepting, duplicate: false }
    } finally {
      for (const name of names) this.#accepting.delete(name)
    }
  }

  /** The run of the same request; throws `IDEMPOTENCY_CONFLICT` when its key was used for another one. */
  #knownAs({ idempotency }: AcceptedMessage, requestKey: string | undefined): Run | undefined {
    const known = requestKey === undefined ? undefined : this.#runs.byRequestKey(requestKey)
    if (known === undefined || !this.#isRemembered(known)) return undefined
    if (known.message.idempotency?.digest === idempotency?.digest) return known
    throw new GatewayError('IDEMPOTENCY_CONFLICT', 'another request was sent with this Idempotency-Key', {
      field: 'Idempotency-Key',
    })
  }

  /**
   * Makes answers durable, all of them in one commit with `alongside`, then hands each to its channel. A message that has
   * an answer keeps it. Resolves when everything is durable and on its way; its fate comes later.
   */
  async answer(answers: readonly Answer[], alongside: readonly JournalRecord[] = []): Promise<void> {
    const open = answers.filter(({ run }) => this.#isAnswerable(run))
    if (open.length === 0 && alongside.length === 0) return
    const durable = this.#commit(this.#answerRecords(open), alongside)
    if (open.length === 0) return durable
    await Promise.all(open.map(({ run }) => this.#attempts.first(run, durable)))
  }

  /**
   * Sends a stored answer again, to where its sender is now. While it is still being worked on, the answer will go there.
   * Another client of the same owner that sent the same message gets a copy: the original stays with the first one.
   */
  async resend(run: RunId, to: Destination): Promise<void> {
    const known = this.#runs.get(run)
    if (known === undefined) return
    if (known.message.account !== to.account) return this.#attempts.copy(run, to)
    this.#runs.change(run, (one) => ({ ...one, message: { ...one.message, ...to } }))
    if (known.state === 'open') return
    await this.#commit([{ do: 'state', run, state: 'unknown' }])
    this.#attempts.repeat(run)
  }

  /** Hands out what an account has not got yet, one after the other, so that a long backlog does not drown its reader. */
  async available(channel: string, account: string): Promise<void> {
    const missing = this.#runs.undelivered(accountOf({ channel, account })).map(({ message }) => message.run)
    for (const run of missing) {
      if (this.#runs.get(run)?.state !== 'delivered') await this.#attempts.offer(run)
    }
  }

  /** Every remembered answer with a higher number, again, in order, to where `redirect` points. */
  async resume(
    channel: string,
    account: string,
    afterSeq: number,
    redirect: (replyTo: JsonObject) => JsonObject,
  ): Promise<void> {
    const wanted = this.#runs
      .ofAccount(accountOf({ channel, account }))
      .filter(({ state, seq }) => state !== 'open' && seq > afterSeq)
      .toSorted((a, b) => a.seq - b.seq)
    for (const { message } of wanted) {
      const { run } = message
      this.#runs.change(run, (one) => ({
        ...one,
        message: { ...one.message, replyTo: redirect(one.message.replyTo) },
      }))
      await this.#attempts.offerAgain(run)
    }
  }

  /** The peer confirmed this one reply; a lower number may still be on its way. */
  async acknowledge(channel: string, account: string, seq: number): Promise<void> {
    const confirmed = this.#runs.undelivered(accountOf({ channel, account })).find((run) => run.seq === seq)
    if (confirmed !== undefined) await this.#commit([{ do: 'state', run: confirmed.message.run, state: 'delivered' }])
  }

  async nextSeq(account: string): Promise<number> {
    if (isEphemeralAccount(account)) return this.#sequences.takeEphemeral(account)
    for (;;) {
      const ready = this.#sequences.take(account)
      if (ready !== undefined) return ready
      await this.#commit([{ do: 'seq', account, upTo: this.#sequences.nextReservation(account) }])
    }
  }

  /** A client without an identity of its own has left and cannot come back: nothing waits for it any more. */
  gone(channel: string, account: string): void {
    const name = accountOf({ channel, account })
    this.#sequences.forget(name)
    this.#runs.abandon(name)
  }

  /** Everything stored about a session's answered messages: what a delete has to take along. */
  forgetSession(key: SessionKey): readonly JournalRecord[] {
    const answered = this.#runs.ofSession(key).filter(({ state }) => state !== 'open')
    return answered.length === 0 ? [] : [toJournal({ do: 'forget', runs: answered.map(({ message }) => message.run) })]
  }

  async close(): Promise<void> {
    await this.#attempts.close()
    // Without it the next start takes this one for one that ended unforeseen: a message may be tried once less.
    if (this.#isLiving) await this.#commit([{ do: 'life-ended' }]).catch(() => undefined)
  }

  #commit(records: readonly DeliveryRecord[], alongside: readonly JournalRecord[] = []): Promise<void> {
    if (this.#journal === undefined) throw new Error('no journal is attached')
    return this.#journal.commit([...records.map(toJournal), ...alongside]).catch((error: unknown) => {
      throw journalError(error)
    })
  }

  /** Not while its answer is being made durable: the first one counts. */
  #isAnswerable(run: RunId): boolean {
    return this.isOpen(run) && !this.#attempts.isFirstPending(run)
  }

  #answerRecords(answers: readonly Answer[]): readonly DeliveryRecord[] {
    const counts = new Map<string, number>()
    const at = this.#parts.clock.now()
    const records = answers.flatMap(({ run, content }): DeliveryRecord[] => {
      const known = this.#runs.get(run)
      if (known === undefined) return []
      const account = accountOf(known.message)
      counts.set(account, (counts.get(account) ?? 0) + 1)
      const { seq, reserved } = this.#numberFor(account)
      const reservation: DeliveryRecord[] = reserved === undefined ? [] : [{ do: 'seq', account, upTo: reserved }]
      return [...reservation, { do: 'answer', run, seq, content, at }]
    })
    return [...[...counts].flatMap(([account, count]) => this.#forgetOutbox(account, count)), ...records]
  }

  #numberFor(account: string): { readonly seq: number; readonly reserved?: number } {
    return isEphemeralAccount(account)
      ? { seq: this.#sequences.takeEphemeral(account) }
      : this.#sequences.takeWith(account)
  }

  #isRemembered({ message }: Run): boolean {
    return message.acceptedAt + this.#parts.limits.rememberMs > this.#parts.clock.now()
  }

  #forgetOld(): readonly DeliveryRecord[] {
    const runs = this.#runs.expendable(this.#parts.limits, this.#parts.clock.now())
    return runs.length === 0 ? [] : [{ do: 'forget', runs }]
  }

  /** Makes room for so many more. */
  #forgetOutbox(account: string, added: number): readonly DeliveryRecord[] {
    const { limits, log } = this.#parts
    const over = this.#runs.undeliveredCount(account) + added - limits.outboxPerAccount
    if (over <= 0) return []
    const runs = this.#runs
      .undelivered(account)
      .slice(0, over)
      .map(({ message }) => message.run)
    log.warn('a client has not fetched its replies for long; its oldest ones are dropped', { replies: runs.length })
    return [{ do: 'forget', runs }]
  }
}

function toJournal(record: DeliveryRecord): JournalRecord {
  return { topic: TOPIC, data: record }
}

function fingerprintOf(message: AcceptedMessage): string {
  const { channel, key, messageId, text, attachments, run } = message
  const { owner } = callerOf(message)
  const files = attachments.map(({ name, bytes }) => [name, bytes])
  // Two messages without any identity are never the same one, so nothing but the run itself can be recognised.
  const sender = owner === UNKNOWN_OWNER ? [owner, run] : [owner]
  const content = JSON.stringify([channel, ...sender, key, messageId, text, files])
  return createHash('sha256').update(content).digest('base64url')
}

/** The words were needed to answer; the fingerprint is enough to recognise a redelivery. */
function withoutContent(message: AcceptedMessage): AcceptedMessage {
  const { client: _, ...rest } = message
  return { ...rest, text: '', attachments: [] }
}
