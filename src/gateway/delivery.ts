import type { Clock } from '../base/clock.ts'
import { NEVER } from '../base/async.ts'
import type { JsonObject } from '../base/json.ts'
import { silentLog, type Log } from '../base/log.ts'
import type { RunId, SessionKey } from '../core/ids.ts'
import type { Answer, Outlet, Together } from '../session/outlet.ts'
import type { Committed, Progress, Storage } from '../storage/storage.ts'
import { Attempts } from './attempts.ts'
import { ProgressRelay } from './progress-relay.ts'
import type { Channel } from '../channel/channel.ts'
import { GatewayError } from '../core/errors.ts'
import type { SessionEvent } from '../core/event.ts'
import type { AcceptedMessage, DeliveryFate, Reply } from '../core/inbound.ts'

/** Hears of everything without taking part in it; its methods must not throw. */
export interface GatewayWatch {
  accepted(message: AcceptedMessage): void
  observe(event: SessionEvent, message: AcceptedMessage): void
  /** An answer is on its way to its channel, for the first time or again. */
  answered(reply: Reply): void
  /** A conversation's row changed, or went. */
  changed(key: SessionKey): void
}

/** The channels of a gateway by their names: events and answers reach a channel here and nowhere else. */
export class Channels {
  readonly #byName = new Map<string, Channel>()
  readonly #watch: GatewayWatch | undefined
  readonly #log: Log

  constructor(watch?: GatewayWatch, log: Log = silentLog) {
    this.#watch = watch
    this.#log = log
  }

  add(channel: Channel): void {
    const { name } = channel
    if (this.#byName.has(name))
      throw new GatewayError('PLUGIN_INVALID', `two channels are called "${name}"`, { channel: name })
    this.#byName.set(name, channel)
  }

  get(name: string): Channel | undefined {
    return this.#byName.get(name)
  }

  all(): readonly Channel[] {
    return [...this.#byName.values()]
  }

  observe(event: SessionEvent, message: AcceptedMessage): void {
    this.show(event, message)
    this.#watch?.observe(event, message)
  }

  /** To its client alone. A channel of a plugin may throw: this is a preview, and the turn goes on without it. */
  show(event: SessionEvent, message: AcceptedMessage): void {
    try {
      this.#byName.get(message.channel)?.observe(event, message)
    } catch (error) {
      const facts = { channel: message.channel, error: error instanceof Error ? error.name : typeof error }
      this.#log.debug('a channel failed to show what happens in a turn', facts)
    }
  }

  async deliver(reply: Reply): Promise<DeliveryFate> {
    this.#watch?.answered(reply)
    return (await this.#byName.get(reply.channel)?.deliver(reply)) ?? 'waiting'
  }
}

export interface DeliveryDeps {
  readonly clock: Clock
  readonly log: Log
  readonly storage: Storage
  readonly channels: Channels
}

export interface Destination {
  readonly account: string
  readonly replyTo: JsonObject
}

/** What sessions have to say, on its way to their channels: events at once, answers through the outbox. */
export class Delivery implements Outlet {
  readonly #storage: Storage
  readonly #channels: Channels
  readonly #attempts: Attempts
  /** Where there are other nodes. */
  readonly #relay: ProgressRelay | undefined

  constructor(deps: DeliveryDeps) {
    this.#storage = deps.storage
    this.#channels = deps.channels
    this.#attempts = new Attempts(deps)
    this.#relay = deps.storage.tell === undefined ? undefined : new ProgressRelay(deps)
  }

  show(event: SessionEvent, message: AcceptedMessage): void {
    this.#channels.observe(event, message)
    this.#relay?.show(event, message)
  }

  /** Of a turn that another node works on. */
  showElsewhere(progress: Progress): void {
    this.#relay?.hear(progress)
  }

  /** Resolves when everything is durable and on its way; its fate comes later. */
  async answer(answers: readonly Answer[], together: Together = {}): Promise<void> {
    const committed = this.#commit(answers, together)
    if (answers.length === 0) return void (await committed)
    for (const { run } of answers) this.#relay?.end(run)
    await Promise.all(answers.map(({ run }) => this.#attempts.first(run, committed)))
  }

  async #commit(
    answers: readonly Answer[],
    { changes: others = [], entries, owner }: Together,
  ): Promise<Pick<Committed, 'answered'>> {
    const { transcripts } = this.#storage
    const changes = [...others, ...answers.map(({ run, content }) => ({ kind: 'answer', run, content }) as const)]
    if (changes.length === 0) return { answered: [] }
    if (entries === undefined) return this.#storage.transact(changes, owner)
    let answered: readonly RunId[] = []
    const transcript = await transcripts.open(entries.sessionId, NEVER)
    try {
      await transcript.append(entries.drafts, {
        changes,
        ...(owner === undefined ? {} : { owner }),
        onAnswered: (runs) => {
          answered = runs
        },
      })
    } finally {
      await transcript.close()
    }
    const known = await Promise.all(answered.map((run) => this.#storage.inbox.find(run)))
    return { answered: known.filter((one) => one !== undefined) }
  }

  /**
   * Sends a stored answer again, to where its sender is now. While it is still being worked on, the answer will go there.
   * Another client of the same owner that sent the same message gets a copy: the original stays with the first one.
   */
  async resend(run: RunId, to: Destination): Promise<void> {
    const { inbox, outbox } = this.#storage
    const known = await inbox.find(run)
    if (known === undefined) return
    if (known.message.account !== to.account) return this.#attempts.copy(run, to)
    await outbox.redirect(run, to)
    if ((await inbox.find(run))?.state === 'open') return
    await this.#storage.transact([{ kind: 'delivery', run, state: 'unknown' }])
    this.#attempts.repeat(run)
  }

  /** Hands out what an account has not got yet, one after the other, so that a long backlog does not drown its reader. */
  async available(channel: string, account: string): Promise<void> {
    const { inbox, outbox } = this.#storage
    for (const { message } of await outbox.undelivered({ channel, account })) {
      if ((await inbox.find(message.run))?.state !== 'delivered') await this.#attempts.offer(message.run)
    }
  }

  /** An answer that another node could not deliver, to a client that is connected here. */
  async offer(run: RunId): Promise<void> {
    await this.#attempts.offer(run)
  }

  /** Every remembered answer with a higher number, again, in order, to where `redirect` points. */
  async resume(
    channel: string,
    account: string,
    afterSeq: number,
    redirect: (replyTo: JsonObject) => JsonObject,
  ): Promise<void> {
    const { outbox } = this.#storage
    for (const { message } of await outbox.answeredAfter(channel, account, afterSeq)) {
      await outbox.redirect(message.run, { account: message.account, replyTo: redirect(message.replyTo) })
      await this.#attempts.offerAgain(message.run)
    }
  }

  /** The peer confirmed this one reply; a lower number may still be on its way. */
  async acknowledge(channel: string, account: string, seq: number): Promise<void> {
    const confirmed = await this.#storage.outbox.bySeq(channel, account, seq)
    if (confirmed !== undefined)
      await this.#storage.transact([{ kind: 'delivery', run: confirmed.message.run, state: 'delivered' }])
  }

  /** Resolves when every attempt has its fate. */
  close(): Promise<void> {
    this.#relay?.close()
    return this.#attempts.close()
  }
}
