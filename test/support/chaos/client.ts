import { WebSocket } from 'ws'
import type { Random } from '../fuzz/random.ts'
import type { ConfirmedReset, History, SeenFrame, SentDelete, SentMessage } from './history.ts'

export interface ClientDeps {
  readonly account: string
  readonly sessions: readonly string[]
  readonly random: Random
  readonly history: History
  /** So many times as many resets, cancels and deletes. */
  readonly stops: number
  /** Addresses of the nodes, dead or alive. */
  readonly ports: readonly number[]
  moment(): number
  nextTag(): string
  /** Looks into the tables, as an operator would. */
  leftTranscripts(session: string): Promise<Readonly<Record<string, number>>>
}

const ANSWER_MS = 4_000
const CONNECT_MS = 2_000

/** A person with a bad line: connects to any node, sends, resends what was not acknowledged, resets, leaves, comes back. */
export class ChaosClient {
  readonly #deps: ClientDeps
  #socket: WebSocket | undefined
  #lastSeq = 0
  #waiting: (() => void)[] = []

  constructor(deps: ClientDeps) {
    this.#deps = deps
  }

  get account(): string {
    return this.#deps.account
  }

  /** Until told to stop, or so many messages were acknowledged. */
  async live(messages: number, signal: AbortSignal): Promise<void> {
    const { random, stops } = this.#deps
    for (let sent = 0; sent < messages && !signal.aborted; sent++) {
      await this.#send(signal)
      const stop = random.int(100) / stops
      const luck = random.int(100)
      if (stop < 4) await this.#control('session.reset', signal)
      else if (stop < 7) await this.#control('session.cancel', signal)
      else if (stop < 9) await this.#control('session.delete', signal)
      else if (luck < 5) await this.#sendAgain()
      else if (luck < 23) this.#hangUp()
      else if (luck < 78) await pause(random.int(1_200))
    }
  }

  /** Connects to a healthy node and collects everything again that is remembered, as long as something comes. */
  async collect(isComplete: () => boolean, tries: number): Promise<void> {
    for (let attempt = 0; attempt < tries && !isComplete(); attempt++) {
      this.#hangUp()
      this.#lastSeq = 0
      if (!(await this.#connect())) continue
      const { frames } = this.#deps.history
      for (let seen = -1; seen < frames.length && !isComplete();) {
        seen = frames.length
        await this.#until(isComplete, ANSWER_MS)
      }
    }
    this.#hangUp()
  }

  close(): void {
    this.#hangUp()
  }

  async #send(signal: AbortSignal): Promise<void> {
    const { account, sessions, random, history, moment, nextTag } = this.#deps
    const tag = nextTag()
    const session = random.pick(sessions)
    const content = `${random.chance(0.04) ? '/new ' : ''}say ${tag} in ${session}.`
    const message: SentMessage = {
      account,
      session,
      id: `m-${tag}`,
      tag,
      content,
      at: moment(),
      lastSentAt: 0,
      sends: 0,
    }
    history.sent.push(message)
    while (message.acceptedAt === undefined && !signal.aborted) {
      if (!(await this.#connect())) continue
      this.#write(message)
      await this.#until(() => message.acceptedAt !== undefined, ANSWER_MS)
      // Not acknowledged: it may be stored or not. The same message goes to another node.
      if (message.acceptedAt === undefined) this.#hangUp()
    }
  }

  /** The same message once more, although it was acknowledged: at another node, answered or not. */
  async #sendAgain(): Promise<void> {
    const { account, history, random } = this.#deps
    const known = history.sent.filter((one) => one.account === account && one.acceptedAt !== undefined)
    const message = known.at(-1 - random.int(10))
    this.#hangUp()
    if (message !== undefined && (await this.#connect())) this.#write(message)
  }

  #write(message: SentMessage): void {
    const { id, content, session } = message
    message.lastSentAt = this.#deps.moment()
    message.sends++
    this.#socket?.send(JSON.stringify({ id, content, session, ack: true, stream: this.#deps.random.chance(0.3) }))
  }

  async #control(type: 'session.reset' | 'session.cancel' | 'session.delete', signal: AbortSignal): Promise<void> {
    const { sessions, random, history, moment, leftTranscripts } = this.#deps
    const session = random.pick(sessions)
    if (!(await this.#connect())) return
    const requestId = moment()
    const before = history.frames.length
    const deleted: SentDelete = { session, sentAt: requestId }
    if (type === 'session.delete') history.deletes.push(deleted)
    this.#socket?.send(JSON.stringify({ type, key: session, requestId }))
    const found = (): SeenFrame | undefined =>
      history.frames.slice(before).find((frame) => frame.messageId === `request-${requestId}`)
    await this.#until(() => found() !== undefined, ANSWER_MS)
    const confirmed = found()
    if (type === 'session.delete' && confirmed?.type === type) deleted.confirmedAt = confirmed.at
    if (signal.aborted || type !== 'session.reset' || confirmed?.type !== type) return
    const reset: ConfirmedReset = { session, sentAt: requestId, confirmedAt: confirmed.at, left: {} }
    reset.left = await leftTranscripts(session)
    history.resets.push(reset)
  }

  async #connect(): Promise<boolean> {
    if (this.#socket?.readyState === WebSocket.OPEN) return true
    const { account, ports, random } = this.#deps
    const resume = this.#lastSeq === 0 || random.chance(0.5) ? `&resume=${this.#lastSeq}` : ''
    const port = random.pick(ports)
    const socket = new WebSocket(`ws://127.0.0.1:${port}/ws?uid=${account}${resume}`)
    this.#socket = socket
    socket.on('error', () => undefined)
    socket.on('message', (data: Buffer) => this.#see(JSON.parse(data.toString()) as Record<string, unknown>, port))
    for (const event of ['open', 'close'] as const) socket.on(event, () => this.#wake())
    await this.#until(() => socket.readyState !== WebSocket.CONNECTING, CONNECT_MS)
    if (socket.readyState === WebSocket.OPEN) return true
    socket.terminate()
    await pause(100 + random.int(200))
    return false
  }

  #see(frame: Record<string, unknown>, port: number): void {
    const { account, history, moment } = this.#deps
    const text = (name: string): string | undefined => (typeof frame[name] === 'string' ? frame[name] : undefined)
    const at = moment()
    const seq = typeof frame['seq'] === 'number' ? frame['seq'] : undefined
    const messageId = frame['requestId'] === undefined ? text('messageId') : `request-${String(frame['requestId'])}`
    const data = frame['data'] as { readonly success?: unknown } | undefined
    const seen: SeenFrame = {
      account,
      port,
      at,
      type: data?.success === false ? 'refused' : (text('type') ?? ''),
      redelivered: frame['redelivered'] === true,
      ...optional({ seq, messageId, run: text('runId'), content: text('content'), code: text('code') }),
    }
    history.frames.push(seen)
    if (seq !== undefined && (seen.type === 'complete' || seen.type === 'error'))
      this.#lastSeq = Math.max(this.#lastSeq, seq)
    if (seen.type === 'accepted') this.#accepted(seen)
    this.#wake()
  }

  #accepted({ account, messageId, run, at }: SeenFrame): void {
    const message = this.#deps.history.sent.find((one) => one.account === account && one.id === messageId)
    if (message === undefined) return
    message.acceptedAt ??= at
    if (run !== undefined) message.run ??= run
  }

  async #until(holds: () => boolean, mostMs: number): Promise<void> {
    const end = performance.now() + mostMs
    while (!holds() && this.#socket !== undefined && this.#socket.readyState <= WebSocket.OPEN) {
      const leftMs = end - performance.now()
      if (leftMs <= 0) return
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs)
        this.#waiting.push(() => {
          clearTimeout(timer)
          resolve()
        })
      })
    }
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake()
  }

  #hangUp(): void {
    this.#socket?.terminate()
    this.#socket = undefined
    this.#wake()
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

function optional<T extends object>(fields: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never
}
