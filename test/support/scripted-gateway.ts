import { NEVER } from '../../src/base/async.ts'
import type { Clock } from '../../src/base/clock.ts'
import type { Acceptance, Channel, ControlResult, Hold, Intake } from '../../src/channel/channel.ts'
import type { TurnEvent } from '../../src/core/event.ts'
import type { RunId, SessionId, SessionKey } from '../../src/core/ids.ts'
import type {
  AcceptedMessage,
  ControlCommand,
  InboundMessage,
  Reply,
  ReplyContent,
  RouteFields,
} from '../../src/core/inbound.ts'
import { GatewayError } from '../../src/core/errors.ts'
import type { AgentStep } from '../conformance/xiaoyi/agent.ts'
import { conformanceAgent } from '../conformance/xiaoyi/agent.ts'

interface Turn {
  readonly message: AcceptedMessage
  readonly controller: AbortController
  over: boolean
}

/**
 * The gateway's promises without its machinery: accepts, runs one turn at a time per session, keeps replies until they
 * are delivered, cancels and resets before it confirms. What a channel needs to be tested alone.
 */
export class ScriptedGateway implements Intake {
  /** What each run was asked, newest last. */
  readonly accepted: AcceptedMessage[] = []
  readonly replies: Reply[] = []
  /** Replies that no link has taken yet. */
  readonly outbox: Reply[] = []
  /** Makes the next `accept` or `control` fail. */
  failAccept: GatewayError | undefined
  failControl: GatewayError | undefined
  /** `accept` waits for it: a slow disk. */
  acceptGate: Promise<void> = Promise.resolve()
  readonly #clock: Clock
  readonly #channel: () => Channel
  readonly #agent: typeof conformanceAgent
  readonly #seen = new Map<string, AcceptedMessage>()
  readonly #history = new Map<string, string[]>()
  readonly #queues = new Map<string, Turn[]>()
  #next = 1

  constructor(clock: Clock, channel: () => Channel, agent = conformanceAgent) {
    this.#clock = clock
    this.#channel = channel
    this.#agent = agent
  }

  keyFor(route: RouteFields): string {
    return `agent:main:xiaoyi:dm:${(route.peerId ?? '').replaceAll('%', '%25').replaceAll(':', '%3A')}`
  }

  /** What the model would see of a conversation. */
  historyOf(sessionId: string): readonly string[] {
    return this.#history.get(this.keyFor({ peerId: sessionId })) ?? []
  }

  get running(): number {
    return [...this.#queues.values()].reduce((sum, queue) => sum + queue.length, 0)
  }

  async accept(message: InboundMessage): Promise<Acceptance> {
    await this.acceptGate
    if (this.failAccept !== undefined) throw this.failAccept
    const key = this.keyFor(message.route) as SessionKey
    const identity = JSON.stringify([key, message.messageId, message.text, message.attachments.map(({ name }) => name)])
    const known = this.#seen.get(identity)
    if (known !== undefined) return { run: known.run, key, duplicate: true }
    const run = `run-${this.#next++}` as RunId
    const accepted: AcceptedMessage = { ...message, run, key, acceptedAt: this.#clock.now() }
    this.#seen.set(identity, accepted)
    this.enqueue(accepted)
    return { run, key, duplicate: false }
  }

  async find(): Promise<undefined> {}

  async runs(): Promise<readonly never[]> {
    return []
  }

  async undelivered(): Promise<readonly never[]> {
    return []
  }

  /** Also what a restart does with a message that was accepted and not answered. */
  enqueue(message: AcceptedMessage): void {
    this.accepted.push(message)
    const turn: Turn = { message, controller: new AbortController(), over: false }
    const queue = this.#queues.get(message.key) ?? []
    this.#queues.set(message.key, queue)
    queue.push(turn)
    if (queue.length === 1) void this.#run(message.key)
  }

  async unanswered(): Promise<readonly AcceptedMessage[]> {
    return [...this.#queues.values()].flat().map(({ message }) => message)
  }

  async control(command: ControlCommand): Promise<ControlResult> {
    if (this.failControl !== undefined) throw this.failControl
    const key = (command.type === 'list' ? '' : (command.key ?? '')) as SessionKey
    if (command.type === 'reset') {
      await this.#stop(key, () => true, 'reset')
      this.#history.delete(key)
      return { type: 'reset', key }
    }
    if (command.type !== 'cancel') throw new GatewayError('FIELD_INVALID', 'not offered by this double')
    if (!this.#history.has(key)) throw new GatewayError('SESSION_NOT_FOUND', 'nobody has spoken here')
    const cancelled = await this.#stop(key, ({ run }) => command.run === undefined || run === command.run, 'user')
    return { type: 'cancel', key, cancelled }
  }

  /** The process ends: turns under way go no further. */
  stop(): void {
    for (const queue of this.#queues.values()) {
      for (const turn of queue) {
        turn.over = true
        turn.controller.abort(new Error('stopped'))
      }
    }
  }

  acknowledge(): void {}

  available(): void {
    const waiting = this.outbox.splice(0)
    for (const reply of waiting) void this.#deliver(reply)
  }

  gone(): void {}

  async resend(): Promise<void> {}

  resume(): void {}

  async hold(): Promise<Hold> {
    return { lost: NEVER, hasSuccessor: false, release: async () => undefined }
  }

  async nextSeq(): Promise<number> {
    return this.#next++
  }

  async #stop(key: string, concerns: (message: AcceptedMessage) => boolean, by: 'user' | 'reset'): Promise<number> {
    const queue = this.#queues.get(key) ?? []
    const stopped = queue.filter(({ message }) => concerns(message))
    for (const turn of stopped) turn.over = true
    this.#queues.set(
      key,
      queue.filter((turn) => !stopped.includes(turn)),
    )
    for (const turn of stopped) {
      turn.controller.abort(new Error(by))
      await this.#reply(turn.message, { kind: 'cancelled', by })
    }
    if ((this.#queues.get(key) ?? []).length > 0 && queue[0] !== undefined && stopped.includes(queue[0])) {
      void this.#run(key)
    }
    return stopped.length
  }

  async #run(key: string): Promise<void> {
    const turn = this.#queues.get(key)?.[0]
    if (turn === undefined) return
    const { message, controller } = turn
    const history = this.#history.get(key) ?? []
    this.#history.set(key, history)
    this.#emit(message, { type: 'turn-start', model: 'conformance' })
    try {
      const earlier = [...history]
      history.push(message.text)
      for await (const step of this.#agent(message.text, earlier, this.#clock, controller.signal)) {
        if (turn.over) return
        await this.#step(message, step)
      }
    } catch (error) {
      if (!turn.over) throw error
    }
    if (turn.over) return
    this.#queues.set(
      key,
      (this.#queues.get(key) ?? []).filter((other) => other !== turn),
    )
    void this.#run(key)
  }

  async #step(message: AcceptedMessage, step: AgentStep): Promise<void> {
    switch (step.kind) {
      case 'text':
        return this.#emit(message, { type: 'text-delta', round: step.round, delta: step.delta })
      case 'thinking':
        return this.#emit(message, { type: 'thinking-delta', round: step.round, delta: step.delta })
      case 'fail': {
        const { partialText } = step
        return this.#reply(message, { kind: 'error', code: 'MODEL_FAILED', message: 'the model failed', partialText })
      }
      case 'end':
        return this.#reply(message, { kind: 'complete', text: step.text })
    }
  }

  #emit(message: AcceptedMessage, event: TurnEvent): void {
    const { key, run } = message
    this.#channel().observe(
      { session: key, sessionId: 'sess' as SessionId, run, at: this.#clock.now(), event },
      message,
    )
  }

  async #reply(message: AcceptedMessage, content: ReplyContent): Promise<void> {
    const { run, key, channel, account, messageId, replyTo } = message
    const reply = { run, key, channel, account, messageId, replyTo, seq: this.#next++, content, redelivered: false }
    this.replies.push(reply)
    await this.#deliver(reply)
  }

  async #deliver(reply: Reply): Promise<void> {
    if ((await this.#channel().deliver(reply)) === 'waiting') this.outbox.push(reply)
  }
}
