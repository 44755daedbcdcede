import { createHash, createHmac } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import type { HttpClient } from '../../base/http.ts'
import type { Ids } from '../../base/ids.ts'
import { deferred } from '../../base/async.ts'
import type { JsonObject } from '../../base/json.ts'
import type { Log } from '../../base/log.ts'
import { loopWork } from '../../base/loop-work.ts'
import { GatewayError } from '../../core/errors.ts'
import type { SessionEvent } from '../../core/event.ts'
import type { RunId, SessionKey } from '../../core/ids.ts'
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
import { Callbacks, type CallbackLimits } from '../callbacks.ts'
import { SenderRates, type SenderLimits } from '../sender-rates.ts'
import { replyFrame, type FileUrl } from '../webhook/codec.ts'
import { WEBHOOK } from '../webhook/channel.ts'
import {
  bodyKindOf,
  decodeBody,
  describeRun,
  idempotencyKeyOf,
  isWaiting,
  lastEventIdOf,
  statusOfReply,
  type Callback,
  type HttpReplyTo,
  type MessageFrame,
} from './codec.ts'
import { EventStream } from './event-stream.ts'
import { RunFeed, type Frame } from './run-feed.ts'

export const HTTP = 'http'

export interface HttpChannelOptions {
  readonly clock: Clock
  readonly ids: Ids
  readonly maxBodyBytes: number
  readonly rates: SenderLimits
  /** For a slow reader of an event stream, and for frames kept for readers that come back. */
  readonly replyBufferBytes: number
  readonly progressEveryMs: number
  readonly log: Log
  readonly http: HttpClient
  /** Hosts of this machine or network that callbacks may go to. */
  readonly callbackHosts: readonly string[]
  readonly callbackLimits: CallbackLimits
  readonly files: MessageFiles
  readonly fileUrl: FileUrl
}

/** Who asks. Without an account it owns nothing, and nothing of it is recognised again. */
export interface HttpSender {
  readonly account?: string
  readonly caller?: Caller
  readonly address: string
}

/** What a request is answered with. */
export type HttpAnswer =
  | { readonly kind: 'json'; readonly status: number; readonly body: JsonObject }
  | { readonly kind: 'events'; readonly body: ReadableStream<Uint8Array> }

/** How long an answer is offered to its callback. */
const CALLBACK_FOR_MS = 24 * 3_600_000

/**
 * Plain HTTP: a request is a message, its response the answer. Whether a client waits, follows the events or asks again
 * later, the run is the same; a client that goes away loses nothing.
 */
export class HttpChannel implements Channel {
  readonly name = HTTP
  readonly #options: HttpChannelOptions
  /** Of runs that are not answered. */
  readonly #feeds = new Map<RunId, RunFeed>()
  readonly #rates: SenderRates
  readonly #callbacks: Callbacks
  #intake: Intake | undefined
  #isClosed = false

  constructor(options: HttpChannelOptions) {
    this.#options = options
    this.#rates = new SenderRates(options.clock, options.rates)
    const { http, clock, ids, log, callbackHosts: privateHosts, callbackLimits: limits } = options
    this.#callbacks = new Callbacks({
      http,
      clock,
      ids,
      log,
      privateHosts,
      limits,
      onDelivered: (run) => void this.#onTaken(run as RunId),
    })
  }

  /** What was answered before the last stop and not taken by its callback goes on; other answers are kept anyway. */
  async start(intake: Intake): Promise<void> {
    this.#intake = intake
    for (const { reply, endedAt } of await intake.undelivered(HTTP)) {
      if (reply === undefined) continue
      if (replyToOf(reply).callback === undefined) intake.acknowledge(HTTP, reply.account, reply.seq)
      else this.#call(reply, endedAt)
    }
  }

  /** `POST /api/messages`. */
  async post(request: Request, url: URL, sender: HttpSender): Promise<HttpAnswer> {
    this.#rates.take(sender)
    const waits = isWaiting(url)
    const kind = bodyKindOf(request.headers.get('content-type'))
    const key = idempotencyKeyOf(request.headers)
    const body = await request.text()
    const { maxBodyBytes: maxBytes, callbackHosts } = this.#options
    const { frame, callback } = loopWork('frame', () => decodeBody(kind, body, { maxBytes, callbackHosts }))
    const digest = createHash('sha256').update(body).digest('base64url')
    const idempotency = key === undefined ? {} : { idempotency: { key, digest } }
    const owner = sender.caller?.owner ?? sender.account ?? UNKNOWN_OWNER
    const attachments = frame.files.length === 0 ? [] : await this.#options.files.attach(frame.files, owner)
    const message = {
      ...this.#messageOf(key === undefined ? frame : { ...frame, id: key }, sender, callback),
      ...idempotency,
      attachments,
    }
    const acceptance = await this.#accept(message)
    if (!waits) return accepted(acceptance, message)
    if (isStreaming(request)) return this.#follow(acceptance.run, 0, acceptance.duplicate)
    return this.#wait(acceptance, message, request.signal)
  }

  /** `/cleanup` or `/compact` of a conversation, with its figures; it waits for its turn like any message. */
  async maintain(command: 'cleanup' | 'compact', session: string, sender: HttpSender): Promise<HttpAnswer> {
    this.#rates.take(sender)
    const { key } = (await this.#requireIntake().control({ type: 'get', key: session }, sender.caller)) as {
      key: SessionKey
    }
    const frame: MessageFrame = {
      kind: 'message',
      content: `/${command}`,
      route: { session: key, preserveCase: true },
      stream: false,
      ack: false,
      fields: {},
      files: [],
    }
    // The conversation goes on being delivered where it was.
    const message = { ...this.#messageOf(frame, sender), fromDashboard: true }
    const { run } = await this.#accept(message)
    const reply = await this.#replyOf(run, undefined)
    const { content } = reply
    if (content.kind !== 'complete' || content.done === undefined)
      return jsonAnswer(statusOfReply(content), replyFrame(reply, replyToOf(reply).messageId, this.#options.fileUrl))
    return jsonAnswer(200, { ...content.done, session: reply.key, message: content.text })
  }

  /** `GET /api/runs/ID`, also of a run that came another way. */
  async show(run: string, caller: Caller): Promise<HttpAnswer> {
    const known = await this.#find(run, caller)
    return jsonAnswer(200, { ...describeRun(known, this.#options.fileUrl), ...this.#callbackOf(known) })
  }

  /** `DELETE /api/runs/ID`: takes effect before it is confirmed; a run that has ended stays as it is. */
  async cancel(run: string, caller: Caller): Promise<HttpAnswer> {
    const { message } = await this.#find(run, caller)
    await this.#requireIntake().control({ type: 'cancel', key: message.key, run: message.run })
    return this.show(run, caller)
  }

  /** `GET /api/runs/ID/events`: those of another channel go to its own clients. */
  async events(run: string, caller: Caller, headers: Headers): Promise<HttpAnswer> {
    const { message } = await this.#find(run, caller)
    if (message.channel !== HTTP) throw notFound(run)
    return this.#follow(message.run, lastEventIdOf(headers), false)
  }

  observe(event: SessionEvent, message: AcceptedMessage): void {
    if (!this.#isClosed) this.#feedOf(message).observe(event)
  }

  /** An answer that no request waits for is kept, and can be asked for with the id of its run. */
  get awaited(): ReadonlyMap<RunId, unknown> {
    return this.#feeds
  }

  follows(run: RunId): boolean {
    return this.#feeds.get(run)?.isRead === true
  }

  async deliver(reply: Reply): Promise<DeliveryFate> {
    const feed = this.#feeds.get(reply.run)
    this.#feeds.delete(reply.run)
    feed?.end(terminalFrame(reply, this.#options.fileUrl))
    if (replyToOf(reply).callback === undefined) return 'delivered'
    this.#call(reply, undefined)
    return 'unknown'
  }

  status(): JsonObject {
    return { openRuns: this.#feeds.size, callbacks: this.#callbacks.pending }
  }

  drain(): void {
    // Requests stay open: what arrives while draining is stored, and running answers still go out.
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const feed of this.#feeds.values()) feed.end(undefined)
    this.#feeds.clear()
    await this.#callbacks.close()
  }

  #call(reply: Reply, endedAt: number | undefined): void {
    const { callback } = replyToOf(reply)
    if (callback === undefined) return
    const age = endedAt === undefined ? 0 : Math.max(0, this.#options.clock.now() - endedAt)
    const body = JSON.stringify(
      replyFrame({ ...reply, redelivered: false }, replyToOf(reply).messageId, this.#options.fileUrl),
    )
    const { url, secret } = callback
    const signature = secret === undefined ? {} : { 'x-clew-signature': signatureOf(body, secret) }
    const headers = { 'x-clew-delivery': reply.run, ...signature }
    this.#callbacks.send({ id: reply.run, url, headers, body, forMs: CALLBACK_FOR_MS - age })
  }

  async #onTaken(run: RunId): Promise<void> {
    const reply = (await this.#intake?.find(HTTP, run))?.reply
    if (reply !== undefined) this.#intake?.acknowledge(HTTP, reply.account, reply.seq)
  }

  #callbackOf({ message, reply, delivery }: KnownRun): JsonObject {
    if (message.channel !== HTTP || (message.replyTo as HttpReplyTo).callback === undefined || reply === undefined)
      return {}
    const error = this.#callbacks.failureOf(message.run)
    const isDelivered = delivery === 'delivered'
    const state = isDelivered ? 'delivered' : this.#callbacks.isPending(message.run) ? 'pending' : 'failed'
    return { callback: { state, ...(isDelivered || error === undefined ? {} : { error }) } }
  }

  #messageOf(
    frame: MessageFrame,
    { account = UNKNOWN_OWNER, caller }: HttpSender,
    callback?: Callback,
  ): InboundMessage {
    const id = frame.id ?? this.#options.ids.uuid()
    const replyTo: HttpReplyTo = { messageId: id, ...(callback === undefined ? {} : { callback }) }
    return {
      channel: HTTP,
      account,
      caller: caller ?? { owner: account, sees: 'all' },
      messageId: String(id).trim(),
      text: frame.content,
      attachments: [],
      route: { ...frame.route, keysOf: WEBHOOK },
      replyTo,
      ...(frame.autoCleanup === undefined ? {} : { autoCleanup: frame.autoCleanup }),
    }
  }

  /** The feed is there before the run can begin, so that nothing of it is missed. */
  #accept(message: InboundMessage): Promise<Acceptance> {
    return this.#requireIntake().accept(message, ({ key, run, duplicate }) => {
      if (!duplicate && !this.#isClosed) this.#feedOf({ ...message, key, run }).accepted()
    })
  }

  async #wait({ run, key, duplicate }: Acceptance, message: InboundMessage, gone: AbortSignal): Promise<HttpAnswer> {
    const reply = await this.#replyOf(run, gone).catch((thrown: unknown) => {
      if (thrown instanceof GatewayError && thrown.code === 'SHUTTING_DOWN') return undefined
      throw thrown
    })
    const { messageId } = message.replyTo as HttpReplyTo
    if (reply !== undefined)
      return jsonAnswer(
        statusOfReply(reply.content),
        replyFrame({ ...reply, redelivered: duplicate }, messageId, this.#options.fileUrl),
      )
    const error = 'the gateway is stopping; the message is stored and will be answered after the next start'
    return jsonAnswer(503, { type: 'error', error, code: 'SHUTTING_DOWN', session: key, messageId, runId: run })
  }

  /** The terminal answer, now or when it is there. */
  async #replyOf(run: RunId, gone: AbortSignal | undefined): Promise<Reply> {
    const known = await this.#requireIntake().find(HTTP, run)
    if (known === undefined) throw notFound(run)
    if (known.reply !== undefined) return known.reply
    const ended = deferred()
    const stop = this.#feedOf(known.message).read(
      { show: () => undefined, end: () => ended.resolve() },
      Number.MAX_SAFE_INTEGER,
    )
    const onGone = (): void => ended.reject(new GatewayError('SHUTTING_DOWN', 'the client has gone'))
    gone?.addEventListener('abort', onGone, { once: true })
    try {
      const early = await this.#cameMeanwhile(run)
      if (early !== undefined) return early
      await ended.promise
      return await this.#answerOf(run)
    } finally {
      gone?.removeEventListener('abort', onGone)
      stop()
    }
  }

  /** An answer that came between the look at the outbox and the reading; its feed has ended without this reader. */
  async #cameMeanwhile(run: RunId): Promise<Reply | undefined> {
    const reply = (await this.#requireIntake().find(HTTP, run))?.reply
    if (reply !== undefined) this.#feeds.delete(run)
    return reply
  }

  async #answerOf(run: RunId): Promise<Reply> {
    const reply = (await this.#requireIntake().find(HTTP, run))?.reply
    if (reply === undefined) throw new GatewayError('SHUTTING_DOWN', 'the gateway is shutting down')
    return reply
  }

  async #follow(run: RunId, afterSeq: number, redelivered: boolean): Promise<HttpAnswer> {
    const known = await this.#requireIntake().find(HTTP, run)
    if (known === undefined) throw notFound(run)
    let stop = (): unknown => undefined
    const { clock, replyBufferBytes: bufferBytes } = this.#options
    const stream = new EventStream({ clock, bufferBytes, onCancel: () => stop() })
    const { reply, message } = known
    if (reply !== undefined)
      stream.end(reply.seq > afterSeq ? terminalFrame({ ...reply, redelivered }, this.#options.fileUrl) : undefined)
    else {
      stop = this.#feedOf(message).read(stream, afterSeq)
      const answer = await this.#cameMeanwhile(run)
      if (answer !== undefined) stream.end(terminalFrame({ ...answer, redelivered }, this.#options.fileUrl))
    }
    return { kind: 'events', body: stream.body }
  }

  #feedOf({ run, key, account, replyTo }: Pick<AcceptedMessage, 'run' | 'key' | 'account' | 'replyTo'>): RunFeed {
    const known = this.#feeds.get(run)
    if (known !== undefined) return known
    const intake = this.#requireIntake()
    const { clock, progressEveryMs, replyBufferBytes } = this.#options
    const feed = new RunFeed({
      clock,
      about: { session: key, messageId: (replyTo as HttpReplyTo).messageId, runId: run },
      progressEveryMs,
      keptBytes: replyBufferBytes,
      nextSeq: () => intake.nextSeq(HTTP, account),
    })
    this.#feeds.set(run, feed)
    return feed
  }

  /** A run of another owner is, for a caller that sees its own only, as if it were not there. */
  async #find(run: string, caller: Caller): Promise<KnownRun> {
    const known = await this.#requireIntake().find(undefined, run as RunId)
    if (known === undefined) throw notFound(run)
    if (caller.sees === 'own' && callerOf(known.message).owner !== caller.owner) throw notFound(run)
    return known
  }

  #requireIntake(): Intake {
    if (this.#intake !== undefined && !this.#isClosed) return this.#intake
    throw new GatewayError('SHUTTING_DOWN', 'the gateway is not accepting messages right now')
  }
}

function accepted({ run, key, duplicate }: Acceptance, { replyTo }: InboundMessage): HttpAnswer {
  const { messageId } = replyTo as HttpReplyTo
  return jsonAnswer(202, { runId: run, session: key, messageId, ...(duplicate ? { redelivered: true } : {}) })
}

function jsonAnswer(status: number, body: JsonObject): HttpAnswer {
  return { kind: 'json', status, body }
}

function terminalFrame(reply: Reply, fileUrl: FileUrl): Frame {
  const frame = replyFrame(reply, replyToOf(reply).messageId, fileUrl)
  return { type: reply.content.kind === 'complete' ? 'complete' : 'error', seq: reply.seq, text: JSON.stringify(frame) }
}

function replyToOf({ replyTo }: Reply): HttpReplyTo {
  return replyTo as HttpReplyTo
}

function isStreaming({ headers }: Request): boolean {
  return (headers.get('accept') ?? '').toLowerCase().includes('text/event-stream')
}

function notFound(run: string): GatewayError {
  return new GatewayError('RUN_NOT_FOUND', 'no run has this id', { run: run.slice(0, 100) })
}

export function signatureOf(body: string, secret: string): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`
}
