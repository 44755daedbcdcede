import type { Clock } from '../base/clock.ts'
import type { Ids } from '../base/ids.ts'
import type { JsonObject } from '../base/json.ts'
import type { Log } from '../base/log.ts'
import type { Acceptance, Channel, ControlResult, Intake, KnownRun } from '../channel/channel.ts'
import { GatewayError } from '../core/errors.ts'
import type { SessionEvent } from '../core/event.ts'
import type { RunId, SessionKey } from '../core/ids.ts'
import type { AcceptedMessage, Caller, ControlCommand, InboundMessage } from '../core/inbound.ts'
import type { SessionControl } from '../session/control.ts'
import { findSession } from '../session/find-session.ts'
import { canonicalKey, type RouteSettings } from '../session/route.ts'
import type { Notice, Storage, StoredMessage } from '../storage/storage.ts'
import type { TurnLimits } from '../session/turn-slots.ts'
import { Admission, type QueueLimits } from './admission.ts'
import { ArrivalOrder } from './arrival-order.ts'
import { replyOf } from './attempts.ts'
import { withoutSuffix } from './claims.ts'
import type { CommandDeps } from './command-answers.ts'
import { Conversations, type ConversationsDeps, type QueueMode } from './conversations.ts'
import type { Delivery, Destination } from './delivery.ts'
import type { GatewayMetrics } from './gateway-metrics.ts'
import { InboxIntake, type Stored } from './intake.ts'
import { Resumption, type ResumptionLimits } from './resumption.ts'

export interface GatewayLimits extends QueueLimits, ResumptionLimits {
  readonly turns: TurnLimits
  /** Rows of one list. */
  readonly list: number
  /** Conversations there may be. */
  readonly sessions: number
}

export interface GatewayDeps {
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly storage: Storage
  readonly delivery: Delivery
  readonly control: SessionControl
  readonly route: RouteSettings
  readonly limits: GatewayLimits
  queueMode(): QueueMode
  readonly metrics: GatewayMetrics
  readonly converse: ConversationsDeps['converse']
  readonly providerOf: ConversationsDeps['providerOf']
  readonly modelOf: ConversationsDeps['modelOf']
  readonly recordPoisoned: ConversationsDeps['recordPoisoned']
  readonly commands: CommandDeps
  /** An account can be reached again. */
  onAvailable(channel: string, account: string): void
  /** Hears of everything without taking part in it. */
  readonly watch?: GatewayWatch
}

/** An observer of all conversations; its methods must not throw. */
export interface GatewayWatch {
  accepted(message: AcceptedMessage): void
  observe(event: SessionEvent, message: AcceptedMessage): void
  /** A conversation's row changed, or went. */
  changed(key: SessionKey): void
}

/**
 * Channels on one side, conversations on the other. A message is durable before it is accepted, its answer is durable
 * before it is sent, and control never waits behind a turn.
 */
export class Gateway implements Intake {
  readonly #deps: GatewayDeps
  readonly #channels = new Map<string, Channel>()
  readonly #conversations: Conversations
  readonly #resumption: Resumption
  readonly #admission: Admission
  readonly #arrivals = new ArrivalOrder()
  readonly #inbox: InboxIntake
  #stopWatching: () => void = () => undefined
  #state: 'starting' | 'open' | 'draining' | 'closed' = 'starting'

  constructor(deps: GatewayDeps) {
    this.#deps = deps
    const { limits, storage, ids, route, clock } = deps
    this.#resumption = new Resumption({ clock, storage, messageAttempts: limits.messageAttempts })
    this.#conversations = new Conversations({
      ...deps,
      turnLimits: limits.turns,
      resumption: this.#resumption,
      show: (event, message) => {
        this.#channels.get(message.channel)?.observe(event, message)
        deps.watch?.observe(event, message)
      },
    })
    this.#admission = new Admission(limits, {
      inSession: (key) => this.#conversations.activityOf(key).queued,
      inAll: () => this.#conversations.activity().queued,
    })
    this.#inbox = new InboxIntake({
      clock,
      ids,
      storage,
      admission: this.#admission,
      route,
      maxSessions: limits.sessions,
    })
  }

  get isOpen(): boolean {
    return this.#state === 'open'
  }

  /** Recovery comes before intake: what was accepted before the last stop is in its queue before anything new can arrive. */
  async open(channels: readonly Channel[]): Promise<void> {
    for (const channel of channels) this.#channels.set(channel.name, channel)
    const unfinished = await this.#resumption.begin()
    if (unfinished.length > 0)
      this.#deps.log.info('resuming messages accepted before the last stop', { messages: unfinished.length })
    for (const message of unfinished) this.#conversations.resume(message)
    for (const channel of channels) await channel.start(this)
    this.#stopWatching = this.#deps.storage.watch((notice) => this.#hear(notice))
    this.#state = 'open'
  }

  async accept(message: InboundMessage, onDurable?: (acceptance: Acceptance) => void): Promise<Acceptance> {
    if (this.#state === 'closed') throw new GatewayError('SHUTTING_DOWN', 'the gateway is shutting down')
    const line = lineOf(this.#inbox.lineOf(message))
    let stored: Stored | undefined
    const storing = this.#inbox.store(message, line).then((made): Acceptance => {
      stored = made
      const { run, key } = made.message
      const acceptance = { run, key, duplicate: made.duplicate }
      onDurable?.(acceptance)
      return acceptance
    })
    await this.#arrivals.enter(line, storing, () => {
      if (stored === undefined || stored.duplicate) return
      const { message: accepted } = stored
      this.#deps.metrics.messageAccepted(accepted.channel)
      this.#deps.watch?.accepted(accepted)
      if (this.#state === 'starting' || this.#state === 'open') this.#conversations.arrive(accepted, stored.mine)
      stored.entered()
    })
    return storing
  }

  /** What other nodes did; of what this one did itself nothing is to follow. */
  #hear(notice: Notice): void {
    if (!('elsewhere' in notice)) return
    switch (notice.kind) {
      case 'message':
        return this.#conversations.own(this.#conversations.take(notice.key))
      case 'session':
        return this.#conversations.lose(notice.key)
      case 'reply':
        return this.#conversations.own(this.#offer(notice))
    }
  }

  /** An answer of another node, for a client that is connected here or waits here. */
  async #offer({ channel: name, account, run }: Extract<Notice, { kind: 'reply' }>): Promise<void> {
    const channel = this.#channels.get(name)
    const isAwaited = channel?.awaits?.(run) === true
    if (!isAwaited && channel?.reaches?.(account) !== true) return
    const known = await this.#deps.storage.inbox.find(run)
    if (known?.state === 'waiting' || (known?.state === 'unknown' && known.orphaned === true) || isAwaited)
      await this.#deps.delivery.offer(run)
  }

  async unanswered(channel: string): Promise<readonly AcceptedMessage[]> {
    return (await this.#deps.storage.inbox.open({ channel })).map(({ message }) => message)
  }

  async find(channel: string, run: RunId): Promise<KnownRun | undefined> {
    const known = await this.#deps.storage.inbox.find(run)
    return known?.message.channel === channel ? this.#describe(known) : undefined
  }

  async runs(channel: string): Promise<readonly KnownRun[]> {
    return (await this.#deps.storage.outbox.remembered(channel)).map((known) => this.#describe(known))
  }

  async undelivered(channel: string): Promise<readonly KnownRun[]> {
    return (await this.#deps.storage.outbox.undelivered({ channel })).map((known) => this.#describe(known))
  }

  #describe(known: StoredMessage): KnownRun {
    const { message, content, endedAt, state } = known
    return {
      message,
      isRunning: content === undefined && this.#conversations.activityOf(message.key).running === message.run,
      isDelivered: state === 'delivered',
      ...(content === undefined ? {} : { reply: { ...replyOf(known, content), redelivered: true } }),
      ...(endedAt === undefined ? {} : { endedAt }),
    }
  }

  async control(command: ControlCommand, caller?: Caller): Promise<ControlResult> {
    const { storage, limits } = this.#deps
    if (command.type !== 'list') await this.bringBack(command.key ?? '')
    switch (command.type) {
      case 'get': {
        const row = command.sessionId === undefined ? undefined : await storage.sessions.byId(command.sessionId)
        const key = row?.key ?? command.key ?? command.sessionId ?? ''
        return this.#inOrder(key, async () => ({ type: 'get', ...(await findSession(storage, { key }, caller)) }))
      }
      case 'list': {
        const { limit, cursor, prefix } = command
        return {
          type: 'list',
          ...(await storage.sessions.list({
            limit: Math.min(limit ?? limits.list, limits.list),
            ...(caller === undefined ? {} : { caller }),
            ...(cursor === undefined ? {} : { cursor }),
            ...(prefix === undefined ? {} : { prefix }),
          })),
        }
      }
      case 'cancel':
        return this.#inOrder(command.key, async () => {
          const { key } = await findSession(storage, { key: command.key }, caller)
          return { type: 'cancel', key, cancelled: await this.#conversations.cancel(key, command.run) }
        })
      case 'reset':
      case 'delete':
        return this.#inOrder(command.key, async () => {
          const { key } = await findSession(storage, { key: command.key }, caller)
          await this.#conversations[command.type](key)
          this.#deps.watch?.changed(key)
          return { type: command.type, key }
        })
    }
  }

  /** An archived conversation that is named is in the index again when this resolves, with whether it was archived. */
  async bringBack(key: string): Promise<boolean> {
    const { sessions } = this.#deps.storage
    return (await sessions.hasArchived()) && (await sessions.bringBack(key))
  }

  /** Nothing runs or waits in it, and no message of it is being accepted. */
  isIdle(key: SessionKey): boolean {
    return !this.#conversations.has(key) && !this.#inbox.isStoring(lineOf(key))
  }

  /** Runs something that must not overlap with a turn of this session; a running one is stopped first. */
  exclusively<T>(key: SessionKey, task: () => Promise<T>): Promise<T> {
    return this.#conversations.exclusively(key, 'reset', task)
  }

  acknowledge(channel: string, account: string, seq: number): void {
    this.#conversations.own(this.#deps.delivery.acknowledge(channel, account, seq))
  }

  available(channel: string, account: string): void {
    this.#conversations.own(this.#deps.delivery.available(channel, account))
    this.#deps.onAvailable(channel, account)
  }

  gone(channel: string, account: string): void {
    this.#conversations.own(this.#deps.storage.outbox.abandon(channel, account))
  }

  resend(run: RunId, to: Destination): Promise<void> {
    return this.#deps.delivery.resend(run, to)
  }

  resume(channel: string, account: string, afterSeq: number, redirect: (replyTo: JsonObject) => JsonObject): void {
    const { delivery } = this.#deps
    this.#conversations.own(
      delivery.resume(channel, account, afterSeq, redirect).then(() => delivery.available(channel, account)),
    )
    this.#deps.onAvailable(channel, account)
  }

  nextSeq(channel: string, account: string): Promise<number> {
    return this.#deps.storage.outbox.nextSeq(channel, account)
  }

  /** For `/api/status`: what runs and what waits. */
  activity(): ReturnType<Conversations['activity']> {
    return this.#conversations.activity()
  }

  /** What runs and waits, by the provider that is to answer. */
  providerLoad(): ReturnType<Conversations['providerLoad']> {
    return this.#conversations.providerLoad()
  }

  /** Conversations something runs or waits in. */
  get sessionObjects(): number {
    return this.#conversations.size
  }

  /** Keys of conversations something runs or waits in. */
  busySessions(): readonly SessionKey[] {
    return this.#conversations.keys()
  }

  sessionActivity(key: SessionKey): ReturnType<Conversations['activityOf']> {
    return this.#conversations.activityOf(key)
  }

  /**
   * Intake is stored but no longer started; running turns get until the signal, then they are stopped and stay open for
   * the next start. Resolves when no turn runs.
   */
  async drain(deadline: AbortSignal): Promise<void> {
    this.#state = 'draining'
    await this.#deps.storage.leaving?.()
    for (const channel of this.#channels.values()) channel.drain()
    await this.#conversations.drain(deadline)
  }

  async close(): Promise<void> {
    this.#state = 'closed'
    this.#stopWatching()
    await Promise.all([...this.#channels.values()].map((channel) => channel.close()))
    await this.#conversations.close()
    await this.#deps.delivery.close()
  }

  #inOrder(key: string, act: () => ControlResult | Promise<ControlResult>): Promise<ControlResult> {
    return this.#arrivals.enter(lineOf(key), undefined, act)
  }
}

/** Keys that differ by case only stand in one line: which of them is meant shows when its turn has come. */
function lineOf(key: string): string {
  return withoutSuffix(canonicalKey(key, false))
}
