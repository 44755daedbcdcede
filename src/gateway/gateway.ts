import type { Clock } from '../base/clock.ts'
import type { Ids } from '../base/ids.ts'
import type { Journal } from '../base/journal.ts'
import type { JsonObject } from '../base/json.ts'
import type { Log } from '../base/log.ts'
import { Semaphore } from '../base/semaphore.ts'
import type { Acceptance, Channel, ControlResult, Intake } from '../channel/channel.ts'
import { GatewayError, toGatewayError } from '../core/errors.ts'
import type { SessionEvent } from '../core/event.ts'
import type { RunId, SessionKey } from '../core/ids.ts'
import type { AcceptedMessage, ControlCommand, InboundMessage, ReplyContent } from '../core/inbound.ts'
import type { CancelCause } from '../core/outcome.ts'
import { causeOf } from '../core/turn-stopped.ts'
import { parseSlash } from '../session/commands.ts'
import type { SessionControl } from '../session/control.ts'
import { mergeForMessage, type SessionDirectory } from '../session/directory.ts'
import { canonicalKey, routeOf, type RouteSettings } from '../session/route.ts'
import { Session } from '../session/session.ts'
import { ArrivalOrder } from './arrival-order.ts'
import { answerCommand, isImmediate, type CommandParts } from './command-answers.ts'
import type { Delivery } from './delivery.ts'
import type { GatewayMetrics } from './gateway-metrics.ts'
import type { Destination } from './run-table.ts'

export interface GatewayLimits {
  readonly queuedPerSession: number
  readonly queuedTotal: number
  readonly concurrentTurns: number
}

/** What a new message does while its session's turn runs: wait, join it before its next round, or end it. */
export type QueueMode = 'queue' | 'steer' | 'interrupt'

export interface GatewayParts {
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly journal: Journal
  readonly directory: SessionDirectory
  readonly delivery: Delivery
  readonly control: SessionControl
  readonly route: RouteSettings
  readonly limits: GatewayLimits
  readonly queueMode: QueueMode
  readonly metrics: GatewayMetrics
  /**
   * Answers one message: opens its transcript, runs the turn. Resolves with what to reply, or with undefined when the
   * turn was interrupted by a shutdown and is to be resumed. Never throws for anything a conversation can survive.
   */
  converse(message: AcceptedMessage, turn: ConverseContext): Promise<ReplyContent | undefined>
  readonly commands: CommandParts
  /** After every durable change of the session index. */
  onIndexChanged(): void
}

export interface ConverseContext {
  readonly signal: AbortSignal
  emit(event: SessionEvent): Promise<void>
  /** Messages that arrived meanwhile and are to join this turn (`queue.mode: "steer"`). */
  takeQueued(): readonly AcceptedMessage[]
}

/**
 * Channels on one side, conversations on the other. A message is durable before it is accepted, its answer is durable
 * before it is sent, and control never waits behind a turn.
 */
export class Gateway implements Intake {
  readonly #parts: GatewayParts
  readonly #channels = new Map<string, Channel>()
  readonly #sessions = new Map<SessionKey, Session>()
  readonly #turns: Semaphore
  readonly #background = new Set<Promise<void>>()
  readonly #arrivals = new ArrivalOrder()
  /** Messages being made durable, per session and in all. */
  readonly #accepting = new Map<SessionKey, number>()
  #acceptingTotal = 0
  #runningTurns = 0
  #state: 'starting' | 'open' | 'draining' | 'closed' = 'starting'

  constructor(parts: GatewayParts) {
    this.#parts = parts
    this.#turns = new Semaphore(parts.limits.concurrentTurns)
  }

  get isOpen(): boolean {
    return this.#state === 'open'
  }

  /** Recovery comes before intake: what was accepted before the last stop is in its queue before anything new can arrive. */
  async open(channels: readonly Channel[]): Promise<void> {
    for (const channel of channels) this.#channels.set(channel.name, channel)
    const unfinished = this.#parts.delivery.openMessages()
    if (unfinished.length > 0)
      this.#parts.log.info('resuming messages accepted before the last stop', { messages: unfinished.length })
    for (const message of unfinished) this.#dispatch(message)
    for (const channel of channels) await channel.start(this)
    this.#state = 'open'
  }

  async accept(message: InboundMessage, onDurable?: (acceptance: Acceptance) => void): Promise<Acceptance> {
    if (this.#state === 'closed') throw new GatewayError('SHUTTING_DOWN', 'the gateway is shutting down')
    const key = this.#keyOf(message)
    const accepted: AcceptedMessage = { ...message, run: this.#newRunId(), key, acceptedAt: this.#parts.clock.now() }
    let acceptance: Acceptance | undefined
    const storing = this.#store(accepted).then((stored) => {
      const made: Acceptance = { ...stored, key }
      acceptance = made
      onDurable?.(made)
      return made
    })
    await this.#arrivals.enter(lineOf(key), storing, () => {
      if (acceptance === undefined || acceptance.duplicate) return
      this.#parts.metrics.messageAccepted(accepted.channel)
      this.#parts.onIndexChanged()
      if (this.#state === 'starting' || this.#state === 'open') this.#dispatch(accepted)
    })
    return storing
  }

  async control(command: ControlCommand): Promise<ControlResult> {
    const { directory, control, onIndexChanged } = this.#parts
    switch (command.type) {
      case 'get': {
        const row = command.sessionId === undefined ? undefined : directory.byId(command.sessionId)
        if (row !== undefined) return { type: 'get', ...row }
        const key = command.key ?? command.sessionId ?? ''
        return this.#inOrder(key, () => ({ type: 'get', ...directory.resolveOrThrow(key) }))
      }
      case 'list': {
        const { limit, cursor, prefix } = command
        return {
          type: 'list',
          ...directory.list({
            limit: limit ?? 50,
            ...(cursor === undefined ? {} : { cursor }),
            ...(prefix === undefined ? {} : { prefix }),
          }),
        }
      }
      case 'cancel':
        return this.#inOrder(command.key, async () => {
          const { key } = directory.resolveOrThrow(command.key)
          const cancelled = (await this.#sessions.get(key)?.cancel('user', command.run)) ?? 0
          return { type: 'cancel', key, cancelled }
        })
      case 'reset':
      case 'delete':
        return this.#inOrder(command.key, async () => {
          const { key } = directory.resolveOrThrow(command.key)
          await this.#session(key).exclusive(command.type, () =>
            command.type === 'reset'
              ? control.reset(key)
              : control.delete(key, () => this.#parts.delivery.forgetSession(key)),
          )
          onIndexChanged()
          return { type: command.type, key }
        })
    }
  }

  /** Runs something that must not overlap with a turn of this session; a running one is stopped first. */
  exclusively<T>(key: SessionKey, task: () => Promise<T>): Promise<T> {
    return this.#session(key).exclusive('reset', task)
  }

  acknowledge(channel: string, account: string, seq: number): void {
    this.#own(this.#parts.delivery.acknowledge(channel, account, seq))
  }

  available(channel: string, account: string): void {
    this.#own(this.#parts.delivery.available(channel, account))
  }

  gone(channel: string, account: string): void {
    this.#parts.delivery.gone(channel, account)
  }

  resend(run: RunId, to: Destination): Promise<void> {
    return this.#parts.delivery.resend(run, to)
  }

  resume(channel: string, account: string, afterSeq: number, redirect: (replyTo: JsonObject) => JsonObject): void {
    const { delivery } = this.#parts
    this.#own(delivery.resume(channel, account, afterSeq, redirect).then(() => delivery.available(channel, account)))
  }

  nextSeq(channel: string, account: string): Promise<number> {
    return this.#parts.delivery.nextSeq(`${channel}\n${account}`)
  }

  /** For `/api/status`: what runs and what waits. */
  activity(): { readonly running: number; readonly queued: number; readonly waitingForTurn: number } {
    return {
      running: this.#runningTurns,
      queued: Math.max(0, this.#parts.delivery.openCount - this.#runningTurns),
      waitingForTurn: this.#turns.waiting,
    }
  }

  /** Conversations something runs or waits in. */
  get sessionObjects(): number {
    return this.#sessions.size
  }

  sessionActivity(key: SessionKey): { readonly running: RunId | null; readonly queued: number } {
    const session = this.#sessions.get(key)
    return { running: session?.runningMessage?.run ?? null, queued: session?.queued ?? 0 }
  }

  /**
   * Intake is stored but no longer started; running turns get until the signal, then they are stopped and stay open for
   * the next start. Resolves when no turn runs and every reply under way has its fate.
   */
  async drain(deadline: AbortSignal): Promise<void> {
    this.#state = 'draining'
    for (const channel of this.#channels.values()) channel.drain()
    const sessions = [...this.#sessions.values()]
    for (const session of sessions) session.stopStarting()
    const stop = (): void => sessions.forEach((session) => session.abort('shutdown'))
    if (deadline.aborted) stop()
    else deadline.addEventListener('abort', stop, { once: true })
    await Promise.all(sessions.map((session) => session.idle()))
    deadline.removeEventListener('abort', stop)
  }

  async close(): Promise<void> {
    this.#state = 'closed'
    await Promise.all([...this.#channels.values()].map((channel) => channel.close()))
    while (this.#background.size > 0) await Promise.all(this.#background)
    await this.#parts.delivery.close()
  }

  #dispatch(message: AcceptedMessage): void {
    const slash = parseSlash(message.text)
    if (isImmediate(slash)) return this.#own(this.#answerCommand(message))
    const session = this.#session(message.key)
    // Everything older goes, also what has not begun: which of them had begun is a matter of luck.
    const replaced = this.#parts.queueMode === 'interrupt' ? session.cancel('newer-message') : undefined
    session.enqueue(message)
    if (replaced !== undefined) this.#own(replaced.then(() => undefined))
  }

  async #answerCommand(message: AcceptedMessage): Promise<void> {
    try {
      const content = await answerCommand(message, {
        ...this.#parts.commands,
        stop: async () => (await this.#sessions.get(message.key)?.cancel('user')) ?? 0,
        reset: (first) => this.#resetFor(message, first),
      })
      if (content !== undefined) await this.#answer(message, content)
    } catch (thrown) {
      await this.#answer(message, this.#contentOfError(thrown, 'a command failed'))
    }
  }

  /** Once for each message, however often a restart comes to it; `first` is what the new conversation begins with. */
  async #resetFor({ key, run }: AcceptedMessage, first: AcceptedMessage | undefined): Promise<void> {
    const { delivery, control, directory, onIndexChanged } = this.#parts
    const session = this.#session(key)
    if (delivery.isResetDone(run)) {
      if (first !== undefined) session.enqueue(first)
      return
    }
    const reset = async (): Promise<void> => {
      if (directory.get(key) !== undefined) await control.reset(key, [delivery.resetDone(run)])
    }
    await session.exclusive('reset', reset, first)
    onIndexChanged()
  }

  async #runTurn(message: AcceptedMessage, signal: AbortSignal): Promise<void> {
    let content: ReplyContent | undefined
    /** Messages that joined this turn: its answer is theirs too. */
    const joined: AcceptedMessage[] = []
    const startedAt = this.#parts.clock.now()
    this.#runningTurns++
    try {
      await this.#ensureRow(message)
      content = await this.#parts.converse(message, {
        signal,
        emit: async (event) => this.#channels.get(message.channel)?.observe(event, message),
        takeQueued: () => {
          if (this.#parts.queueMode !== 'steer') return []
          const taken = this.#sessions.get(message.key)?.takeQueued(isPlain) ?? []
          joined.push(...taken)
          return taken
        },
      })
    } catch (thrown) {
      content = this.#contentOfFailure(thrown, signal)
    } finally {
      this.#runningTurns--
      this.#parts.metrics.turnEnded(content?.kind ?? 'interrupted', (this.#parts.clock.now() - startedAt) / 1000)
    }
    if (content === undefined) return
    for (const answered of [message, ...joined]) await this.#answer(answered, content)
  }

  /** A message accepted while its session was being deleted begins a new one. */
  async #ensureRow(message: AcceptedMessage): Promise<void> {
    const { directory, journal, onIndexChanged } = this.#parts
    if (directory.get(message.key) !== undefined) return
    await journal.commit([mergeForMessage(directory, message)])
    onIndexChanged()
  }

  #contentOfFailure(thrown: unknown, signal: AbortSignal): ReplyContent | undefined {
    if (signal.aborted) {
      const by = causeOf(signal)
      return by === 'shutdown' ? undefined : { kind: 'cancelled', by }
    }
    return this.#contentOfError(thrown, 'a turn failed')
  }

  #contentOfError(thrown: unknown, what: string): ReplyContent {
    const error = toGatewayError(thrown)
    this.#parts.log.error(what, {
      code: error.code,
      ...error.facts,
      ...(error.code === 'INTERNAL' ? describeCause(error) : {}),
    })
    return { kind: 'error', code: error.code, message: error.message, partialText: '' }
  }

  /** A reply that cannot be made durable is not sent: the message stays open and is answered after the next start. */
  async #answer(message: AcceptedMessage, content: ReplyContent): Promise<void> {
    try {
      await this.#parts.delivery.answer(message.run, content)
    } catch (thrown) {
      const error = toGatewayError(thrown)
      this.#parts.log.error('a reply could not be stored', {
        run: message.run,
        code: error.code,
        ...describeCause(error),
      })
    }
  }

  #session(key: SessionKey): Session {
    const known = this.#sessions.get(key)
    if (known !== undefined) return known
    const session = new Session(key, {
      turns: this.#turns,
      answer: (message, signal) => this.#runTurn(message, signal),
      answerCancelled: (message, by: CancelCause) => this.#answer(message, { kind: 'cancelled', by }),
      onIdle: (idleKey) => {
        const idle = this.#sessions.get(idleKey)
        if (idle === session && !session.isBusy) this.#sessions.delete(idleKey)
      },
    })
    if (this.#state === 'draining' || this.#state === 'closed') session.stopStarting()
    this.#sessions.set(key, session)
    return session
  }

  async #store(message: AcceptedMessage): Promise<{ readonly run: RunId; readonly duplicate: boolean }> {
    const { delivery, directory } = this.#parts
    let release = (): void => undefined
    try {
      return await delivery.accept(message, {
        admit: () => {
          release = this.#reserveQueuePlace(message)
        },
        alongside: () => [mergeForMessage(directory, message)],
      })
    } finally {
      release()
    }
  }

  #reserveQueuePlace({ key, text }: AcceptedMessage): () => void {
    const accepting = this.#accepting.get(key) ?? 0
    // What is answered at once needs no place: a full queue must not keep anybody from /stop.
    if (!isImmediate(parseSlash(text))) this.#checkQueues(key, accepting)
    this.#accepting.set(key, accepting + 1)
    this.#acceptingTotal++
    return () => {
      this.#acceptingTotal--
      const left = (this.#accepting.get(key) ?? 1) - 1
      if (left === 0) this.#accepting.delete(key)
      else this.#accepting.set(key, left)
    }
  }

  #checkQueues(key: SessionKey, accepting: number): void {
    const { queuedPerSession, queuedTotal } = this.#parts.limits
    const queued = (this.#sessions.get(key)?.queued ?? 0) + accepting
    if (queued >= queuedPerSession) {
      throw new GatewayError('QUEUE_FULL', `this session already has ${queued} messages waiting`, {
        queued,
        limit: queuedPerSession,
      })
    }
    const total = this.activity().queued + this.#acceptingTotal
    if (total >= queuedTotal) {
      throw new GatewayError('QUEUE_FULL', `the gateway already has ${total} messages waiting`, {
        queued: total,
        limit: queuedTotal,
      })
    }
  }

  /** The key of the route; a row adopted from a file may have another case, and is found exactly first, then folded. */
  #keyOf(message: InboundMessage): SessionKey {
    const { directory, route } = this.#parts
    const asWritten = routeOf(message, { ...route, preserveCase: true })
    if (directory.get(asWritten) !== undefined) return asWritten
    const key = routeOf(message, route)
    const isFolded = !route.preserveCase && message.route.preserveCase !== true
    return isFolded ? (directory.resolve(key)?.key ?? key) : key
  }

  #inOrder(key: string, act: () => ControlResult | Promise<ControlResult>): Promise<ControlResult> {
    return this.#arrivals.enter(lineOf(key), undefined, act)
  }

  #newRunId(): RunId {
    return `run_${this.#parts.ids.hex(20)}` as RunId
  }

  /** Background work belongs to the gateway: close waits for it, and a failure is logged, never lost. */
  #own(work: Promise<void>): void {
    const owned = work.catch((thrown: unknown) => {
      const error = toGatewayError(thrown)
      this.#parts.log.error('background work failed', { code: error.code, ...describeCause(error) })
    })
    this.#background.add(owned)
    void owned.finally(() => this.#background.delete(owned))
  }
}

/** Keys that differ by case only stand in one line: which of them is meant shows when its turn has come. */
function lineOf(key: string): string {
  return canonicalKey(key, false)
}

/** An ordinary message: only those can join a running turn. */
function isPlain({ text }: AcceptedMessage): boolean {
  return parseSlash(text).kind === 'message'
}

/** Where an unforeseen error came from, without its message, which may quote user text. */
function describeCause(error: Error): { readonly cause?: string; readonly at?: string } {
  const { cause } = error
  if (!(cause instanceof Error)) return {}
  return {
    cause: cause.name,
    at:
      cause.stack
        ?.split('\n')
        .find((line) => line.trim().startsWith('at '))
        ?.trim() ?? '',
  }
}
