import { createHash } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import type { Journal, JournalRecord, JournalTopic } from '../base/journal.ts'
import { isRecord, type JsonObject } from '../base/json.ts'
import type { Log } from '../base/log.ts'
import type { RunId, SessionKey } from '../core/ids.ts'
import {
  isEphemeralAccount,
  type AcceptedMessage,
  type DeliveryFate,
  type Reply,
  type ReplyContent,
} from '../core/inbound.ts'
import { Sequences } from './sequences.ts'

/**
 * `open`: accepted, not answered · `waiting`: answered, nothing sent yet · `unknown`: sent, and nobody can tell whether it
 * arrived · `delivered`. An answer becomes `unknown` before the first byte is sent, so a crash never hides an attempt.
 */
export type DeliveryState = 'open' | 'waiting' | 'unknown' | 'delivered'

interface Run {
  readonly message: AcceptedMessage
  readonly fingerprint: string
  readonly state: DeliveryState
  readonly seq: number
  readonly content: ReplyContent | undefined
  /** The session was already reset for this message (`/new text`): a restart must not do it again. */
  readonly resetDone?: boolean
}

type DeliveryRecord =
  | { readonly do: 'accept'; readonly message: AcceptedMessage; readonly fingerprint: string }
  | { readonly do: 'answer'; readonly run: RunId; readonly seq: number; readonly content: ReplyContent }
  | { readonly do: 'state'; readonly run: RunId; readonly state: DeliveryState }
  | { readonly do: 'reset-done'; readonly run: RunId }
  | { readonly do: 'forget'; readonly runs: readonly RunId[] }
  | { readonly do: 'seq'; readonly account: string; readonly upTo: number }
  /** Only in snapshots: everything about one run at once. */
  | { readonly do: 'run'; readonly run: Run }

export interface DeliveryLimits {
  /** How long an answered message is remembered, to recognise its redelivery. */
  readonly rememberMs: number
  readonly rememberedMessages: number
  readonly rememberedBytes: number
}

export const DELIVERY_LIMITS: DeliveryLimits = {
  rememberMs: 24 * 60 * 60 * 1000,
  rememberedMessages: 100_000,
  rememberedBytes: 64 * 1024 * 1024,
}

export interface DeliveryParts {
  readonly clock: Clock
  readonly log: Log
  readonly limits: DeliveryLimits
  /** The channel's `deliver`. */
  send(reply: Reply): Promise<DeliveryFate>
}

const TOPIC = 'delivery'

/**
 * The inbox and the outbox: one owner of every step a message takes from acceptance to its delivered answer. All of it is
 * journal state; memory is bounded by forgetting the oldest delivered answers first.
 */
export class Delivery implements JournalTopic {
  readonly name = TOPIC
  readonly #parts: DeliveryParts
  readonly #runs = new Map<RunId, Run>()
  readonly #byFingerprint = new Map<string, RunId>()
  /** Answered runs that the peer may still miss, per account, in the order of their numbers. */
  readonly #undelivered = new Map<string, Set<RunId>>()
  readonly #accepting = new Map<string, Promise<RunId>>()
  readonly #sending = new Map<RunId, Promise<void>>()
  readonly #sequences = new Sequences()
  #journal: Journal | undefined
  #bytes = 0

  constructor(parts: DeliveryParts) {
    this.#parts = parts
  }

  /** After recovery: from here on `apply` is fed by this program's own commits. */
  attach(journal: Journal): void {
    this.#journal = journal
    this.#sequences.startBehindReservations()
  }

  apply(data: unknown): void {
    if (!isRecord(data)) return
    const record = data as unknown as DeliveryRecord
    switch (record.do) {
      case 'accept':
        return this.#store({
          message: record.message,
          fingerprint: record.fingerprint,
          state: 'open',
          seq: 0,
          content: undefined,
        })
      case 'answer':
        // The text was needed to answer; the fingerprint is enough to recognise a redelivery.
        return this.#replace(record.run, (run) => ({
          ...run,
          message: { ...run.message, text: '', attachments: [] },
          state: 'unknown',
          seq: record.seq,
          content: record.content,
        }))
      case 'state':
        return this.#replace(record.run, (run) => ({ ...run, state: record.state }))
      case 'reset-done':
        return this.#replace(record.run, (run) => ({ ...run, resetDone: true }))
      case 'forget':
        return record.runs.forEach((run) => this.#drop(run))
      case 'seq':
        return this.#sequences.reserve(record.account, record.upTo)
      case 'run':
        return this.#store(record.run)
    }
  }

  *snapshot(): Iterable<DeliveryRecord> {
    for (const [account, upTo] of this.#sequences.reservations()) yield { do: 'seq', account, upTo }
    for (const run of [...this.#runs.values()]) yield { do: 'run', run }
  }

  /** Messages without an answer, oldest first: what a restart has to run. */
  openMessages(): readonly AcceptedMessage[] {
    return [...this.#runs.values()].filter((run) => run.state === 'open').map((run) => run.message)
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
   * Makes a message durable, together with the records given, or recognises it as a redelivery: same sender id, session
   * and content within the time we remember. Two copies arriving at once count as one message.
   */
  async accept(
    message: AcceptedMessage,
    alongside: () => readonly JournalRecord[],
  ): Promise<{ readonly run: RunId; readonly duplicate: boolean }> {
    const fingerprint = fingerprintOf(message)
    const known =
      this.#byFingerprint.get(fingerprint) ?? (await this.#accepting.get(fingerprint)?.catch(() => undefined))
    if (known !== undefined && this.#isRemembered(known)) return { run: known, duplicate: true }
    const accepting = this.#commit([...this.#forgetOld(), { do: 'accept', message, fingerprint }], alongside()).then(
      () => message.run,
    )
    this.#accepting.set(fingerprint, accepting)
    try {
      return { run: await accepting, duplicate: false }
    } finally {
      this.#accepting.delete(fingerprint)
    }
  }

  /** Makes the answer durable, then hands it to its channel. Resolves when it is durable; its fate comes later. */
  async answer(run: RunId, content: ReplyContent): Promise<void> {
    const open = this.#runs.get(run)
    if (open === undefined || open.state !== 'open') return
    const seq = await this.nextSeq(accountOf(open.message))
    await this.#commit([{ do: 'answer', run, seq, content }])
    this.#send(run, { redelivered: false })
  }

  /** Sends a stored answer again, to where its sender is now. Nothing happens while it is still being worked on. */
  async resend(run: RunId, replyTo: JsonObject): Promise<void> {
    this.#replace(run, (known) => ({ ...known, message: { ...known.message, replyTo } }))
    const known = this.#runs.get(run)
    if (known === undefined || known.state === 'open') return
    await this.#commit([{ do: 'state', run, state: 'unknown' }])
    this.#send(run, { redelivered: true })
  }

  /** Hands out what an account has not got yet. */
  async available(channel: string, account: string): Promise<void> {
    for (const run of [...(this.#undelivered.get(`${channel}\n${account}`) ?? [])]) {
      const known = this.#runs.get(run)
      if (known === undefined || this.#sending.has(run)) continue
      const wasSent = known.state === 'unknown'
      if (!wasSent) await this.#commit([{ do: 'state', run, state: 'unknown' }])
      this.#send(run, { redelivered: wasSent })
    }
  }

  /** Every remembered answer with a higher number, again, in order, to where `redirect` points. */
  resume(channel: string, account: string, afterSeq: number, redirect: (replyTo: JsonObject) => JsonObject): void {
    const wanted = [...this.#runs.values()]
      .filter(
        ({ message, state, seq }) =>
          state !== 'open' && seq > afterSeq && message.channel === channel && message.account === account,
      )
      .sort((a, b) => a.seq - b.seq)
    for (const { message } of wanted) {
      this.#replace(message.run, (run) => ({
        ...run,
        message: { ...run.message, replyTo: redirect(run.message.replyTo) },
      }))
      this.#send(message.run, { redelivered: true })
    }
  }

  /** The peer confirmed this one reply; a lower number may still be on its way. */
  async acknowledge(channel: string, account: string, seq: number): Promise<void> {
    for (const run of this.#undelivered.get(`${channel}\n${account}`) ?? []) {
      if (this.#runs.get(run)?.seq === seq) return this.#commit([{ do: 'state', run, state: 'delivered' }])
    }
  }

  async nextSeq(account: string): Promise<number> {
    if (isEphemeralAccount(account)) return this.#sequences.takeEphemeral(account)
    const ready = this.#sequences.take(account)
    if (ready !== undefined) return ready
    await this.#commit([{ do: 'seq', account, upTo: this.#sequences.nextReservation(account) }])
    return this.nextSeq(account)
  }

  /** A client without an identity of its own has left and cannot come back: its numbers are no longer needed. */
  gone(channel: string, account: string): void {
    this.#sequences.forget(`${channel}\n${account}`)
  }

  /** Everything stored about a session's messages: what a delete has to take along. */
  forgetSession(key: SessionKey): readonly JournalRecord[] {
    const runs = [...this.#runs.values()].filter(({ message }) => message.key === key).map(({ message }) => message.run)
    return runs.length === 0 ? [] : [toJournal({ do: 'forget', runs })]
  }

  async close(): Promise<void> {
    await Promise.all(this.#sending.values())
  }

  #send(run: RunId, { redelivered }: { readonly redelivered: boolean }): void {
    if (this.#sending.has(run)) return
    const sending = this.#attempt(run, redelivered)
      .catch((error: unknown) => {
        // The answer is durable and stays `unknown`: it is offered again when its account is back.
        this.#parts.log.warn('the fate of a reply could not be recorded', {
          run,
          reason: error instanceof Error ? error.name : 'unknown',
        })
      })
      .finally(() => this.#sending.delete(run))
    this.#sending.set(run, sending)
  }

  async #attempt(run: RunId, redelivered: boolean): Promise<void> {
    const known = this.#runs.get(run)
    if (known?.content === undefined) return
    const { message, seq, content } = known
    const { key, channel, account, messageId, replyTo } = message
    const fate = await this.#parts.send({ run, key, channel, account, messageId, replyTo, seq, content, redelivered })
    if (fate === 'unknown') return
    await this.#commit([{ do: 'state', run, state: fate }])
  }

  #commit(records: readonly DeliveryRecord[], alongside: readonly JournalRecord[] = []): Promise<void> {
    if (this.#journal === undefined) throw new Error('no journal is attached')
    return this.#journal.commit([...records.map(toJournal), ...alongside])
  }

  #isRemembered(run: RunId): boolean {
    const known = this.#runs.get(run)
    return known !== undefined && known.message.acceptedAt + this.#parts.limits.rememberMs > this.#parts.clock.now()
  }

  /** Oldest delivered answers first; an answer that may not have arrived goes only by age. */
  #forgetOld(): readonly DeliveryRecord[] {
    const { limits, clock } = this.#parts
    const runs: RunId[] = []
    let bytes = this.#bytes
    for (const [id, run] of this.#runs) {
      const expired = run.message.acceptedAt + limits.rememberMs <= clock.now()
      const crowded = this.#runs.size - runs.length > limits.rememberedMessages || bytes > limits.rememberedBytes
      if (!expired && !crowded) break
      if (run.state === 'open' || (!expired && run.state !== 'delivered')) continue
      runs.push(id)
      bytes -= sizeOf(run)
      if (runs.length >= 1_000) break
    }
    return runs.length === 0 ? [] : [{ do: 'forget', runs }]
  }

  #store(run: Run): void {
    this.#drop(run.message.run)
    this.#runs.set(run.message.run, run)
    this.#byFingerprint.set(run.fingerprint, run.message.run)
    this.#bytes += sizeOf(run)
    if (!isEphemeralAccount(run.message.account)) this.#sequences.reserve(accountOf(run.message), run.seq)
    this.#track(run)
  }

  #replace(id: RunId, change: (run: Run) => Run): void {
    const run = this.#runs.get(id)
    if (run === undefined) return
    const changed = change(run)
    this.#runs.set(id, changed)
    this.#bytes += sizeOf(changed) - sizeOf(run)
    this.#track(changed)
  }

  #track(run: Run): void {
    const account = accountOf(run.message)
    const undelivered = this.#undelivered.get(account) ?? new Set<RunId>()
    if (run.state === 'waiting' || run.state === 'unknown') undelivered.add(run.message.run)
    else undelivered.delete(run.message.run)
    if (undelivered.size > 0) this.#undelivered.set(account, undelivered)
    else this.#undelivered.delete(account)
  }

  #drop(id: RunId): void {
    const run = this.#runs.get(id)
    if (run === undefined) return
    this.#runs.delete(id)
    this.#bytes -= sizeOf(run)
    if (this.#byFingerprint.get(run.fingerprint) === id) this.#byFingerprint.delete(run.fingerprint)
    this.#undelivered.get(accountOf(run.message))?.delete(id)
  }
}

function toJournal(record: DeliveryRecord): JournalRecord {
  return { topic: TOPIC, data: record }
}

function accountOf(message: { readonly channel: string; readonly account: string }): string {
  return `${message.channel}\n${message.account}`
}

function fingerprintOf({ channel, key, messageId, text, attachments }: AcceptedMessage): string {
  const content = JSON.stringify([channel, key, messageId, text, attachments.map(({ name, bytes }) => [name, bytes])])
  return createHash('sha256').update(content).digest('base64url')
}

/** Rough, but the same when a run is stored and when it is dropped. */
function sizeOf({ message, content }: Run): number {
  const answer =
    content === undefined || content.kind === 'cancelled'
      ? 0
      : content.kind === 'complete'
        ? content.text.length
        : content.partialText.length
  return 512 + 2 * (message.text.length + answer)
}
