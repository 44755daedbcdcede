import type { Clock } from '../base/clock.ts'
import type { Ids } from '../base/ids.ts'
import type { JsonObject } from '../base/json.ts'
import type { Log } from '../base/log.ts'
import type { Acceptance, Channel, ControlResult, Hold, Intake, KnownRun } from '../channel/channel.ts'
import { describeCause, GatewayError, toGatewayError } from '../core/errors.ts'
import type { RunId, SessionKey } from '../core/ids.ts'
import type { AcceptedMessage, Caller, ControlCommand, InboundMessage } from '../core/inbound.ts'
import type { Approvals } from '../session/approvals.ts'
import { findSession } from '../session/find-session.ts'
import { canonicalKey, type RouteSettings, withoutSuffix } from './claims.ts'
import type { Sessions } from '../session/sessions.ts'
import type { Notice, SessionRow, Storage, StoredMessage } from '../storage/storage.ts'
import { ArrivalOrder, InboxIntake, type QueueLimits, type Stored } from './intake.ts'
import { replyOf } from './attempts.ts'
import type { Channels, GatewayWatch, Delivery, Destination } from './delivery.ts'
import type { GatewayMetrics } from './gateway-metrics.ts'
import { inTimeWith, type InTime } from './in-time.ts'

export interface GatewayLimits extends QueueLimits {
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
  readonly channels: Channels
  readonly sessions: Sessions
  readonly delivery: Delivery
  /** Reminds of questions that wait when an account can be reached again. */
  readonly approvals: Pick<Approvals, 'remind' | 'showAgain'>
  readonly route: RouteSettings
  readonly limits: GatewayLimits
  readonly metrics: Pick<GatewayMetrics, 'messageAccepted'>
  readonly watch?: GatewayWatch
}

/** `draining`: what arrives is stored for the next start, and running turns may end. */
type GatewayState = 'starting' | 'open' | 'draining' | 'closed'

/** Answers of one look; the next one is a second later. */
const MOST_LOOKED_FOR = 100

/**
 * Intake and delivery between channels and sessions. A message is durable before it is accepted, its answer is durable
 * before it is sent, and control never waits behind a turn.
 */
export class Gateway implements Intake {
  readonly #deps: GatewayDeps
  readonly #sessions: Sessions
  readonly #arrivals = new ArrivalOrder()
  readonly #inbox: InboxIntake
  readonly #inTime: InTime
  #stopWatching: () => void = () => undefined
  #state: GatewayState = 'starting'

  constructor(deps: GatewayDeps) {
    this.#deps = deps
    const { limits, storage, ids, route, clock, sessions } = deps
    this.#sessions = sessions
    this.#inTime = inTimeWith(deps)
    this.#inbox = new InboxIntake({
      clock,
      ids,
      storage,
      sessions,
      route,
      limits,
      maxSessions: limits.sessions,
    })
  }

  get state(): GatewayState {
    return this.#state
  }

  get isOpen(): boolean {
    return this.#state === 'open'
  }

  /** Recovery comes before intake: what was accepted before the last stop is in its queue before anything new can arrive. */
  async open(): Promise<void> {
    const { channels, storage } = this.#deps
    await this.#sessions.resume()
    for (const channel of channels.all()) await channel.start(this)
    this.#stopWatching = storage.watch((notice) => this.#hear(notice))
    this.#state = 'open'
  }

  async accept(message: InboundMessage, onDurable?: (acceptance: Acceptance) => void): Promise<Acceptance> {
    if (this.#state === 'closed') throw new GatewayError('SHUTTING_DOWN', 'the gateway is shutting down')
    const line = orderingKeyOf(this.#inbox.orderingKeyOf(message))
    let stored: Stored | undefined
    const made = this.#inTime(
      (signal) => this.#inbox.store(message, line, signal),
      (late) => this.#storedLate(late),
    )
    const storing = made.then((one): Acceptance => {
      stored = one
      const { run, key } = one.message
      const acceptance = { run, key, duplicate: one.duplicate }
      onDurable?.(acceptance)
      return acceptance
    })
    await this.#arrivals.enter(line, storing, () => {
      if (stored === undefined || stored.duplicate) return
      const { message: accepted } = stored
      this.#deps.metrics.messageAccepted(accepted.channel)
      this.#deps.watch?.accepted(accepted)
      if (this.#state === 'starting' || this.#state === 'open') this.#sessions.arrive(accepted, stored)
      else this.#sessions.passOn(accepted.key)
      stored.entered()
    })
    return storing
  }

  /** Its sender was refused and may never come again: it is in no queue, so it is looked for. */
  #storedLate({ message, duplicate, entered }: Stored): void {
    entered()
    if (!duplicate) this.#sessions.runInBackground(this.#sessions.take(message.key))
  }

  /** What other nodes did; of what this one did itself nothing is to follow. */
  #hear(notice: Notice): void {
    if (!('elsewhere' in notice)) return
    switch (notice.kind) {
      case 'message':
        return this.#sessions.runInBackground(this.#sessions.take(notice.key))
      case 'session':
        return this.#sessions.lose(notice.key)
      case 'progress':
        return this.#deps.delivery.showElsewhere(notice.progress)
      case 'reader':
        return this.#deps.approvals.showAgain(notice.channel, notice.account)
      case 'look':
        return this.#sessions.runInBackground(this.#lookForAnswers())
      case 'room':
        return this.#sessions.runInBackground(this.#sessions.leaveWaiting(notice.turns))
      case 'reply':
        return this.#sessions.runInBackground(this.#offer(notice))
    }
  }

  /** An answer of another node, for a client that is connected here or waits here. */
  async #offer({ channel: name, account, run }: Extract<Notice, { kind: 'reply' }>): Promise<void> {
    const channel = this.#deps.channels.get(name)
    const isAwaited = channel?.awaited?.has(run) === true
    if (!isAwaited && channel?.reaches?.(account) !== true) return
    const known = await this.#deps.storage.inbox.find(run)
    if (known?.state === 'waiting' || (known?.state === 'unknown' && known.orphaned === true) || isAwaited)
      await this.#deps.delivery.offer(run)
  }

  /** Answers of other nodes that clients wait for here: no channel keeps them, and the notice may have been lost. */
  async #lookForAnswers(): Promise<void> {
    for (const { awaited } of this.#deps.channels.all()) {
      const elsewhere = [...(awaited?.keys() ?? [])].filter((run) => !this.#sessions.isOpenHere(run))
      for (const run of elsewhere.slice(0, MOST_LOOKED_FOR)) {
        const known = await this.#deps.storage.inbox.find(run)
        if (known?.content !== undefined && awaited?.has(run) === true) await this.#deps.delivery.offer(run)
      }
    }
  }

  async unanswered(channel: string): Promise<readonly AcceptedMessage[]> {
    return (await this.#deps.storage.inbox.open({ channel })).map(({ message }) => message)
  }

  async find(channel: string | undefined, run: RunId): Promise<KnownRun | undefined> {
    const known = await this.#deps.storage.inbox.find(run)
    if (known === undefined || (channel ?? known.message.channel) !== known.message.channel) return undefined
    return this.#describe(known)
  }

  async runs(channel: string): Promise<readonly KnownRun[]> {
    return (await this.#deps.storage.outbox.remembered(channel)).map((known) => this.#describe(known))
  }

  async undelivered(channel: string): Promise<readonly KnownRun[]> {
    return (await this.#deps.storage.outbox.undelivered({ channel })).map((known) => this.#describe(known))
  }

  #describe(known: StoredMessage): KnownRun {
    const { message, content, endedAt, state } = known
    const delivery = state === 'open' ? {} : { delivery: state }
    return {
      message,
      isRunning: content === undefined && this.#sessions.isWorkingOn(message.key, message.run),
      ...(content === undefined ? {} : { reply: { ...replyOf(known, content), redelivered: true } }),
      ...delivery,
      ...(endedAt === undefined ? {} : { endedAt }),
    }
  }

  control(command: ControlCommand, caller?: Caller): Promise<ControlResult> {
    return this.#inTime((signal) => this.#control(command, caller, signal))
  }

  async #control(command: ControlCommand, caller: Caller | undefined, signal: AbortSignal): Promise<ControlResult> {
    const { storage, limits } = this.#deps
    switch (command.type) {
      case 'get': {
        const row = command.sessionId === undefined ? undefined : await storage.sessions.byId(command.sessionId)
        const key = row?.key ?? command.key ?? command.sessionId ?? ''
        return this.#inOrder(key, caller, (found) => ({ type: 'get', ...found }))
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
        return this.#inOrder(command.key, caller, async ({ key }) => ({
          type: 'cancel',
          key,
          cancelled: await this.#sessions.cancel(key, command.run, signal),
        }))
      case 'reset':
      case 'delete':
        return this.#inOrder(command.key, caller, async ({ key }) => {
          await this.#sessions[command.type](key, signal)
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
    return !this.#sessions.has(key) && !this.#inbox.isStoring(orderingKeyOf(key))
  }

  acknowledge(channel: string, account: string, seq: number): void {
    this.#sessions.runInBackground(this.#deps.delivery.acknowledge(channel, account, seq))
  }

  available(channel: string, account: string): void {
    this.#sessions.runInBackground(this.#deps.delivery.available(channel, account))
    this.#deps.approvals.remind(channel, account)
  }

  gone(channel: string, account: string): void {
    this.#sessions.runInBackground(this.#deps.storage.outbox.abandon(channel, account))
  }

  resend(run: RunId, to: Destination): Promise<void> {
    return this.#deps.delivery.resend(run, to)
  }

  resume(channel: string, account: string, afterSeq: number, redirect: (replyTo: JsonObject) => JsonObject): void {
    const { delivery } = this.#deps
    this.#sessions.runInBackground(
      delivery.resume(channel, account, afterSeq, redirect).then(() => delivery.available(channel, account)),
    )
    this.#deps.approvals.remind(channel, account)
  }

  hold(channel: string, account: string): Promise<Hold | undefined> {
    return this.#deps.storage.ownership.hold(channel, account)
  }

  nextSeq(channel: string, account: string): Promise<number> {
    return this.#deps.storage.outbox.nextSeq(channel, account)
  }

  /**
   * Intake is stored but no longer started; running turns get until the signal, then they are stopped and stay open for
   * the next start. Resolves when no turn runs.
   */
  async drain(deadline: AbortSignal): Promise<void> {
    this.#state = 'draining'
    await this.#deps.storage.leaving?.(this.#sessions.keys())
    await this.#endChannels('drain')
    await this.#sessions.drain(deadline)
  }

  async close(): Promise<void> {
    this.#state = 'closed'
    this.#stopWatching()
    await this.#endChannels('close')
    await this.#sessions.close()
    await this.#deps.delivery.close()
  }

  /** The channel of a plugin may fail; what is durable is closed all the same. */
  async #endChannels(how: 'drain' | 'close'): Promise<void> {
    const { channels, log } = this.#deps
    const end = async (channel: Channel): Promise<void> => channel[how]()
    const failed = (channel: string) => (error: unknown) =>
      log.warn('a channel could not be closed', { channel, how, ...describeCause(toGatewayError(error)) })
    await Promise.all(channels.all().map((channel) => end(channel).catch(failed(channel.name))))
  }

  #inOrder(
    key: string,
    caller: Caller | undefined,
    act: (found: SessionRow) => ControlResult | Promise<ControlResult>,
  ): Promise<ControlResult> {
    const find = async (): Promise<SessionRow> => {
      await this.bringBack(key)
      return findSession(this.#deps.storage, { key }, caller)
    }
    return this.#arrivals.enterAndFind(orderingKeyOf(key), find, act)
  }
}

/** Keys that differ by case only stand in one line: which of them is meant shows when its turn has come. */
function orderingKeyOf(key: string): string {
  return withoutSuffix(canonicalKey(key, false))
}
