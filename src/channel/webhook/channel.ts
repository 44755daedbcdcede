import type { Clock } from '../../base/clock.ts'
import { loopWork } from '../../base/loop-work.ts'
import { deferred } from '../../base/async.ts'
import type { Ids } from '../../base/ids.ts'
import type { JsonObject } from '../../base/json.ts'
import type { Log } from '../../base/log.ts'
import type { Socket } from '../../base/sockets.ts'
import { GatewayError, toGatewayError } from '../../core/errors.ts'
import type { SessionEvent } from '../../core/event.ts'
import {
  ephemeralAccount,
  isEphemeralAccount,
  type AcceptedMessage,
  type Attachment,
  type Caller,
  type InboundMessage,
  type DeliveryFate,
  type Reply,
} from '../../core/inbound.ts'
import type { Acceptance, Channel, Intake, LinkHistoryRow } from '../channel.ts'
import type { MessageFiles } from '../files/message-files.ts'
import type { HeartbeatOptions } from '../heartbeat.ts'
import {
  decodeFrame,
  encodeAccepted,
  encodeControlFailure,
  encodeControlReply,
  encodeEvent,
  encodeProgress,
  encodeRefusal,
  encodeReply,
  type FileUrl,
  isShown,
  FrameRefused,
  rateLimited,
  type InboundFrame,
  type WebhookReplyTo,
} from './codec.ts'
import { Connection, type ConnectionLimits } from './connection.ts'

export const WEBHOOK = 'webhook'

export interface WebhookOptions {
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly maxFrameBytes: number
  readonly maxConnections: number
  /** Clients that are known to confirm what they get. */
  readonly maxAccounts: number
  readonly limits: ConnectionLimits
  readonly heartbeat: HeartbeatOptions
  readonly files: MessageFiles
  readonly fileUrl: FileUrl
}

export interface ConnectQuery {
  /** The client's stable identity; without one it is known only as long as its socket lives. */
  readonly account?: string
  /** Whose conversations it may see; all of them, owning its own, when absent. */
  readonly caller?: Caller
  readonly stream?: boolean
  /** The gateway's own page: it talks in conversations of every channel without moving their delivery. */
  readonly fromDashboard?: boolean
  readonly resume?: number
}

const GOING_AWAY = 1001
const TOO_BIG = 1009

type MessageFrame = Extract<InboundFrame, { kind: 'message' }>
type ControlFrame = Extract<InboundFrame, { kind: 'control' }>

/** The one connection that is dialled for this channel. */
interface KeptHub {
  status(): JsonObject
  history(): readonly LinkHistoryRow[]
  reconnect(): number
}

/** The webhook protocol over sockets opened elsewhere: by the HTTP server, or by the client of a hub. */
export class WebhookChannel implements Channel {
  readonly name = WEBHOOK
  readonly #options: WebhookOptions
  readonly #connections = new Map<string, Connection>()
  /** Per account, oldest first. */
  readonly #byAccount = new Map<string, Set<Connection>>()
  /** Accounts that have confirmed a frame: their replies count as delivered only once confirmed. */
  readonly #confirming = new Set<string>()
  /** The text of the round being answered, per run, also while no client watches: one that comes back sees all of it. */
  readonly #texts = new Map<string, { round: number; text: string }>()
  /** Sockets whose latest message waits for its files: what follows on them waits behind it. */
  readonly #attaching = new Map<Connection, Promise<void>>()
  #intake: Intake | undefined
  #hub: KeptHub | undefined

  constructor(options: WebhookOptions) {
    this.#options = options
  }

  get isFull(): boolean {
    return this.#connections.size >= this.#options.maxConnections
  }

  /** The connection to a hub that is kept for this channel, for the status. */
  useHub(hub: KeptHub): void {
    this.#hub = hub
  }

  async start(intake: Intake): Promise<void> {
    this.#intake = intake
  }

  /** Takes over an open socket. Undelivered replies of its account follow at once. */
  connect(socket: Socket, query: ConnectQuery): Connection {
    const intake = this.#requireIntake()
    const { clock, ids, limits, heartbeat } = this.#options
    const id = ids.hex(16)
    const account = query.account ?? ephemeralAccount(id)
    const connection = new Connection(socket, {
      id,
      account,
      caller: query.caller ?? { owner: account, sees: 'all' },
      confirms: this.#confirming.has(account),
      stream: query.stream ?? false,
      fromDashboard: query.fromDashboard ?? false,
      clock,
      limits,
      heartbeat,
      onFrame: (from, text) => this.#onFrame(from, text),
      onRateLimited: (from, text) => this.#refuseFrame(from, rateLimited(text)),
      onClose: (closed) => this.#forget(closed),
    })
    this.#connections.set(id, connection)
    const siblings = this.#byAccount.get(connection.account) ?? new Set()
    this.#byAccount.set(connection.account, siblings.add(connection))
    connection.listen()
    if (query.resume === undefined) intake.available(WEBHOOK, account)
    else intake.resume(WEBHOOK, account, query.resume, (replyTo) => ({ ...replyTo, connection: id }))
    return connection
  }

  observe(event: SessionEvent, message: AcceptedMessage): void {
    const replyTo = message.replyTo as WebhookReplyTo
    const connection = this.#connectionFor(replyTo, message.account)
    const text =
      event.event.type === 'text-delta' ? this.#textSoFar(message.run, event.event.round, event.event.delta) : undefined
    if (event.event.type === 'turn-end') this.#endPreview(message.run, message.account)
    if (connection === undefined) return
    // A question reaches also those who want nothing but answers: without it there will be none.
    const isQuestion = event.event.type === 'approval-requested'
    if (!(replyTo.stream || connection.stream || isQuestion)) return
    const about = { session: message.key, messageId: replyTo.messageId, runId: message.run }
    const nextSeq = (): Promise<number> => this.#requireIntake().nextSeq(WEBHOOK, message.account)
    if (text !== undefined) {
      connection.showProgress(message.run, async () => encodeProgress(text, { ...about, seq: await nextSeq() }))
      return
    }
    if (!isShown(event)) return
    connection.flushProgress(message.run)
    // Events come in groups; a person waits for words, not for them.
    void connection.post(
      async () => encodeEvent(event, { ...about, seq: await nextSeq() }),
      isQuestion ? 'now' : 'soon',
    )
  }

  reaches(account: string): boolean {
    return this.#siblings(account).some((connection) => connection.isOpen)
  }

  async deliver(reply: Reply): Promise<DeliveryFate> {
    this.#endPreview(reply.run, reply.account)
    // On its way on a socket that lives: a second socket of the same client is no reason to send it twice.
    if (reply.requested !== true && this.#siblings(reply.account).some((one) => one.awaits(reply.seq))) return 'unknown'
    const connection = this.#connectionFor(reply.replyTo as WebhookReplyTo, reply.account)
    return connection === undefined
      ? 'waiting'
      : connection.sendReply(encodeReply(reply, this.#options.fileUrl), reply.seq, reply.run)
  }

  status(): JsonObject {
    return {
      connections: this.#connections.size,
      accounts: this.#byAccount.size,
      ...(this.#hub === undefined ? {} : { hub: this.#hub.status() }),
    }
  }

  linkHistory(): readonly LinkHistoryRow[] {
    return this.#hub?.history() ?? []
  }

  reconnect(): number {
    return this.#hub?.reconnect() ?? 0
  }

  drain(): void {
    // Sockets stay open: what arrives while draining is stored, and running answers still go out.
  }

  async close(): Promise<void> {
    const open = [...this.#connections.values()]
    for (const connection of open) connection.close(GOING_AWAY, 'the gateway is stopping')
    // A peer that does not answer the closing handshake must not hold up the stop.
    const timer = this.#options.clock.after(1_000, () => open.forEach((connection) => connection.terminate()))
    await Promise.all(open.map((connection) => connection.ended))
    timer.cancel()
  }

  async #onFrame(connection: Connection, text: string): Promise<void> {
    try {
      const frame = loopWork('frame', () => decodeFrame(text, this.#options.maxFrameBytes))
      for (let before = this.#attaching.get(connection); before; before = this.#attaching.get(connection)) await before
      switch (frame.kind) {
        case 'message':
          return await this.#onMessage(connection, frame)
        case 'control':
          return await this.#onControl(connection, frame)
        case 'ack':
          connection.confirm(frame.seq)
          this.#rememberConfirming(connection.account)
          return this.#requireIntake().acknowledge(WEBHOOK, connection.account, frame.seq)
        case 'echo':
          return
      }
    } catch (thrown) {
      await this.#refuseFrame(connection, thrown)
    }
  }

  /** What follows on a socket waits until the files of its message are there: the order of arrival holds. */
  async #onMessage(connection: Connection, frame: MessageFrame): Promise<void> {
    if (frame.files.length === 0) return this.#take(connection, frame, [])
    const done = deferred()
    this.#attaching.set(connection, done.promise)
    let taking: Promise<void> | undefined
    try {
      const attachments = await this.#options.files.attach(frame.files, connection.caller.owner)
      taking = this.#take(connection, frame, attachments)
    } catch (thrown) {
      taking = this.#refuse(connection, this.#visible(thrown), frame.id)
    } finally {
      this.#attaching.delete(connection)
      done.resolve()
    }
    await taking
  }

  async #take(connection: Connection, frame: MessageFrame, attachments: readonly Attachment[]): Promise<void> {
    const intake = this.#requireIntake()
    const id = frame.id ?? this.#options.ids.uuid()
    const stream = frame.stream || connection.stream
    const replyTo: WebhookReplyTo = { connection: connection.id, messageId: id, stream }
    const message: InboundMessage = {
      channel: WEBHOOK,
      account: connection.account,
      caller: connection.caller,
      messageId: String(id).trim(),
      text: frame.content,
      attachments,
      route: frame.route,
      replyTo,
      ...(frame.autoCleanup === undefined ? {} : { autoCleanup: frame.autoCleanup }),
      ...(connection.fromDashboard ? { fromDashboard: true } : {}),
    }
    const acknowledge = ({ key, run }: Acceptance): void => {
      const about = { session: key, messageId: id, runId: run }
      void connection.post(async () =>
        encodeAccepted({ ...about, seq: await intake.nextSeq(WEBHOOK, connection.account) }),
      )
    }
    let acceptance: Acceptance
    try {
      acceptance = await intake.accept(message, frame.ack || stream ? acknowledge : undefined)
    } catch (thrown) {
      return this.#refuse(connection, toGatewayError(thrown), id)
    }
    if (acceptance.duplicate) await intake.resend(acceptance.run, { account: connection.account, replyTo })
  }

  async #onControl(connection: Connection, frame: ControlFrame): Promise<void> {
    const { type, command, requestId } = frame
    let reply: string
    try {
      reply = encodeControlReply(type, await this.#requireIntake().control(command, connection.caller), requestId)
    } catch (thrown) {
      const key = 'key' in command ? command.key : 'sessionId' in command ? command.sessionId : undefined
      reply = encodeControlFailure(type, this.#visible(thrown), key, requestId)
    }
    await connection.send(reply)
  }

  async #refuseFrame(connection: Connection, thrown: unknown): Promise<void> {
    const error = this.#visible(thrown)
    if (error instanceof FrameRefused && error.control !== undefined) {
      const { type, key, requestId } = error.control
      await connection.send(encodeControlFailure(type, error, key, requestId))
      return
    }
    await this.#refuse(connection, error, error instanceof FrameRefused ? error.messageId : undefined)
    if (error.code === 'FRAME_TOO_LARGE') connection.close(TOO_BIG, 'frame too large')
  }

  async #refuse(connection: Connection, error: GatewayError, messageId?: string | number): Promise<void> {
    const intake = this.#requireIntake()
    // While nothing can be stored there may be no number either: the refusal goes out without one.
    const isAway = error.code === 'STORAGE_UNAVAILABLE'
    await connection.post(async () => {
      const seq = isAway ? 0 : await intake.nextSeq(WEBHOOK, connection.account).catch(() => 0)
      return encodeRefusal(error, seq, messageId)
    })
  }

  #visible(thrown: unknown): GatewayError {
    const error = toGatewayError(thrown)
    if (error.code === 'INTERNAL') {
      const cause = error.cause instanceof Error ? error.cause.name : typeof error.cause
      this.#options.log.error('a frame could not be handled', { cause })
    }
    return error
  }

  /** The socket the message came from, else the newest one of the same account. */
  #connectionFor(replyTo: WebhookReplyTo, account: string): Connection | undefined {
    const origin = this.#connections.get(replyTo.connection)
    if (origin?.isOpen === true) return origin
    return this.#siblings(account).findLast((connection) => connection.isOpen)
  }

  #siblings(account: string): readonly Connection[] {
    return [...(this.#byAccount.get(account) ?? [])]
  }

  #rememberConfirming(account: string): void {
    if (isEphemeralAccount(account) || this.#confirming.has(account)) return
    this.#confirming.add(account)
    const [oldest] = this.#confirming
    if (this.#confirming.size > this.#options.maxAccounts && oldest !== undefined) this.#confirming.delete(oldest)
  }

  #endPreview(run: string, account: string): void {
    this.#texts.delete(run)
    for (const connection of this.#siblings(account)) connection.endProgress(run)
  }

  #textSoFar(run: string, round: number, delta: string): string {
    const known = this.#texts.get(run)
    const text = known?.round === round ? known.text + delta : delta
    this.#texts.set(run, { round, text })
    return text
  }

  #forget(connection: Connection): void {
    this.#connections.delete(connection.id)
    const siblings = this.#byAccount.get(connection.account)
    siblings?.delete(connection)
    if (siblings?.size === 0) this.#byAccount.delete(connection.account)
    if (isEphemeralAccount(connection.account)) this.#intake?.gone(WEBHOOK, connection.account)
    // What it had not confirmed goes to another socket of the same client, if there is one.
    else if (connection.hasUnconfirmed && siblings !== undefined && siblings.size > 0)
      this.#intake?.available(WEBHOOK, connection.account)
  }

  #requireIntake(): Intake {
    if (this.#intake === undefined) throw new GatewayError('SHUTTING_DOWN', 'the gateway is not ready yet')
    return this.#intake
  }
}
