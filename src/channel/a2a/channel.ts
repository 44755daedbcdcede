import type { Clock } from '../../base/clock.ts'
import type { JsonObject } from '../../base/json.ts'
import { GatewayError } from '../../core/errors.ts'
import type { SessionEvent } from '../../core/event.ts'
import type { RunId } from '../../core/ids.ts'
import {
  callerOf,
  UNKNOWN_OWNER,
  type AcceptedMessage,
  type Caller,
  type DeliveryFate,
  type InboundMessage,
  type Reply,
} from '../../core/inbound.ts'
import type { Acceptance, Channel, Intake, KnownRun } from '../channel.ts'
import type { MessageFiles } from '../files/message-files.ts'
import { SenderRates, type SenderLimits } from '../sender-rates.ts'
import { WEBHOOK } from '../webhook/channel.ts'
import type { FileUrl } from '../webhook/codec.ts'
import type { ClientMessage } from './client-message.ts'
import { followTask, untilAborted } from './follow.ts'
import { LiveTask } from './live-task.ts'
import type { Push } from './push.ts'
import type { PushConfig } from './push-configs.ts'
import { listTasks, type TaskPage, type TaskQuery } from './list-tasks.ts'
import { toTask, type A2aReplyTo, type TaskView } from './task.ts'

export const A2A = 'a2a'

export interface A2aChannelOptions {
  readonly clock: Clock
  readonly rates: SenderLimits
  /** Shortest time between two updates of a growing answer. */
  readonly progressEveryMs: number
  readonly files: MessageFiles
  readonly fileUrl: FileUrl
  readonly push: Push
}

/** Who asks. Without an account it owns nothing, and nothing of it is recognised again. */
export interface A2aSender {
  readonly account?: string
  readonly caller?: Caller
  readonly address: string
}

/** The A2A protocol without its wire: a task is a run, its context the session. Everything durable is the gateway's. */
export class A2aChannel implements Channel {
  readonly name = A2A
  readonly #options: A2aChannelOptions
  /** Of runs that are not answered. */
  readonly #lives = new Map<RunId, LiveTask>()
  readonly #rates: SenderRates
  #intake: Intake | undefined
  #isClosed = false

  constructor(options: A2aChannelOptions) {
    this.#options = options
    this.#rates = new SenderRates(options.clock, options.rates)
  }

  /** What was answered before the last stop and is not with everyone who wants to know goes on. */
  async start(intake: Intake): Promise<void> {
    this.#intake = intake
    this.#options.push.start((run) => void this.#confirm(run))
    for (const known of await intake.undelivered(A2A)) await this.#announceEnd(known)
  }

  /** Throws `RATE_LIMITED`. */
  limitRate(sender: A2aSender): void {
    this.#rates.take(sender)
  }

  /** The task is durable when it resolves; a message that comes again is the task it already is. */
  async send(message: ClientMessage, sender: A2aSender, push: readonly PushConfig[]): Promise<Acceptance> {
    const owner = sender.caller?.owner ?? sender.account ?? UNKNOWN_OWNER
    const attachments = message.files.length === 0 ? [] : await this.#options.files.attach(message.files, owner)
    return this.#accept({ ...toInbound(message, sender, push), attachments })
  }

  /** Throws `RUN_NOT_FOUND`, also for a task of another owner. */
  async task(run: string, caller: Caller): Promise<TaskView> {
    return this.#toTask(await this.find(run, caller))
  }

  async list(query: TaskQuery, caller: Caller): Promise<TaskPage> {
    const visible = (await this.#requireIntake().runs(A2A)).filter(
      ({ message }) => isVisible(message, caller) && (message.replyTo as A2aReplyTo).answers === undefined,
    )
    return listTasks(visible, (known) => this.#toTask(known), query)
  }

  /** Takes effect before it resolves. */
  async cancel(run: string, caller: Caller): Promise<void> {
    const { message } = await this.find(run, caller)
    await this.#requireIntake().control({ type: 'cancel', key: message.key, run: message.run })
  }

  /** The task, then every change of it until it has ended; it can be followed by many. */
  async follow(run: string, caller: Caller, signal: AbortSignal): Promise<AsyncGenerator<JsonObject>> {
    const { message } = await this.find(run, caller)
    const { clock, progressEveryMs } = this.#options
    return followTask({
      clock,
      progressEveryMs,
      signal,
      fileUrl: this.#options.fileUrl,
      live: () => this.#followed(message.run),
      read: async () => {
        const known = await this.find(message.run, caller)
        // A task that ended between two looks has no live part any more.
        if (known.reply !== undefined) this.#end(message.run)
        return known
      },
    })
  }

  /** Resolves when the task has ended, or a person is asked. */
  async settled(run: string, caller: Caller, signal: AbortSignal): Promise<TaskView> {
    for (;;) {
      const { message } = await this.find(run, caller)
      // Before the look that counts: what happens from here on is not missed.
      const live = this.#followed(message.run)
      const { turned } = live
      const known = await this.find(run, caller)
      if (known.reply !== undefined) this.#end(message.run)
      if (known.reply !== undefined || live.question !== undefined) return this.#toTask(known)
      await untilAborted(turned, signal)
    }
  }

  /** Answers a call of this task that waits for a person; the answer counts when it resolves. */
  async answer(run: string, approve: boolean, sender: A2aSender, signal: AbortSignal): Promise<void> {
    const caller = sender.caller ?? { owner: sender.account ?? UNKNOWN_OWNER, sees: 'all' }
    const { message } = await this.find(run, caller)
    const live = this.#lives.get(message.run)
    const question = live?.question
    if (live === undefined || question === undefined)
      throw new GatewayError('APPROVAL_NOT_FOUND', 'no tool call of this task waits')
    const text = `/${approve ? 'approve' : 'deny'} ${question.id}`
    const inbound = toInbound({ id: `${question.id}-answer`, text, files: [], contextId: message.key }, sender)
    const replyTo: A2aReplyTo = { messageId: inbound.messageId, answers: message.run }
    await this.#accept({ ...inbound, replyTo, attachments: [] })
    while (live.question?.id === question.id && !this.#isClosed) await untilAborted(live.turned, signal)
  }

  async find(run: string, caller: Caller): Promise<KnownRun> {
    const known = await this.#requireIntake().find(A2A, run as RunId)
    if (known !== undefined && isVisible(known.message, caller)) return known
    throw new GatewayError('RUN_NOT_FOUND', 'no task has this id', { run: run.slice(0, 100) })
  }

  isAskingPerson(run: RunId): boolean {
    return this.#lives.get(run)?.question !== undefined
  }

  get push(): Push {
    return this.#options.push
  }

  observe(event: SessionEvent, message: AcceptedMessage): void {
    // A turn goes on telling of itself after its answer: only its beginning makes something to follow.
    const live = event.event.type === 'turn-start' ? this.#liveOf(message.run) : this.#lives.get(message.run)
    if (this.#isClosed || live === undefined || !live.observe(event)) return
    // A task that has not ended is described by what is live of it.
    this.#options.push.changed(this.#toTask({ message, isRunning: true }), message)
  }

  get awaited(): ReadonlyMap<RunId, unknown> {
    return this.#lives
  }

  follows(run: RunId): boolean {
    return this.#lives.get(run)?.isFollowed === true
  }

  async deliver(reply: Reply): Promise<DeliveryFate> {
    try {
      const known = await this.#intake?.find(A2A, reply.run)
      const isTold =
        known !== undefined && (await this.#options.push.ended(this.#toTask(known), known.message, undefined))
      return isTold ? 'unknown' : 'delivered'
    } finally {
      this.#end(reply.run)
    }
  }

  status(): JsonObject {
    return { openTasks: this.#lives.size, callbacks: this.#options.push.pending }
  }

  drain(): void {
    // Requests stay open: what arrives while draining is stored, and running answers still go out.
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const run of [...this.#lives.keys()]) this.#end(run)
    await this.#options.push.close()
  }

  #end(run: RunId): void {
    const live = this.#lives.get(run)
    this.#lives.delete(run)
    live?.end()
  }

  async #announceEnd(known: KnownRun): Promise<void> {
    const isTold = await this.#options.push.ended(this.#toTask(known), known.message, known.endedAt)
    if (!isTold) await this.#confirm(known.message.run)
  }

  async #confirm(run: RunId): Promise<void> {
    const reply = (await this.#intake?.find(A2A, run))?.reply
    if (reply !== undefined) this.#intake?.acknowledge(A2A, reply.account, reply.seq)
  }

  #toTask(known: KnownRun): TaskView {
    return toTask(known, this.#lives.get(known.message.run), this.#options.fileUrl)
  }

  /** It is there before the run can begin, so that nothing of it is missed. */
  #accept(message: InboundMessage): Promise<Acceptance> {
    return this.#requireIntake().accept(message, ({ run, duplicate }) => {
      if (!duplicate && !this.#isClosed) this.#liveOf(run)
    })
  }

  #followed(run: RunId): LiveTask {
    const live = this.#liveOf(run)
    live.isFollowed = true
    return live
  }

  #liveOf(run: RunId): LiveTask {
    const live = this.#lives.get(run) ?? new LiveTask()
    this.#lives.set(run, live)
    return live
  }

  #requireIntake(): Intake {
    if (this.#intake !== undefined && !this.#isClosed) return this.#intake
    throw new GatewayError('SHUTTING_DOWN', 'the gateway is not accepting messages right now')
  }
}

/** The inbox forgets what it has answered; a task shows what it was asked, unless that is long. */
const MAX_SAID_CHARS = 4_096

function toInbound(
  { id, text, contextId }: ClientMessage,
  { account = UNKNOWN_OWNER, caller }: A2aSender,
  push: readonly PushConfig[] = [],
): Omit<InboundMessage, 'attachments'> {
  const replyTo: A2aReplyTo = {
    messageId: id,
    ...(text.length > MAX_SAID_CHARS ? {} : { said: text }),
    ...(contextId === undefined ? {} : { contextId }),
    ...(push.length === 0 ? {} : { push }),
  }
  return {
    channel: A2A,
    account,
    caller: caller ?? { owner: account, sees: 'all' },
    messageId: id.trim(),
    text,
    route: { ...(contextId === undefined ? {} : { session: contextId }), keysOf: WEBHOOK },
    replyTo,
  }
}

/** A task of another owner is, for a caller that sees its own only, as if it were not there. */
function isVisible(message: AcceptedMessage, caller: Caller): boolean {
  return caller.sees === 'all' || callerOf(message).owner === caller.owner
}
