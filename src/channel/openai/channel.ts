import { createHash } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import type { Ids } from '../../base/ids.ts'
import { jsonExcess, parseForeignJson, isRecord, type JsonObject } from '../../base/json.ts'
import type { Log } from '../../base/log.ts'
import { loopWork } from '../../base/loop-work.ts'
import { GatewayError, toGatewayError } from '../../core/errors.ts'
import type { SessionEvent } from '../../core/event.ts'
import type { RunId, SessionKey } from '../../core/ids.ts'
import {
  UNKNOWN_OWNER,
  type AcceptedMessage,
  type Caller,
  type DeliveryFate,
  type InboundMessage,
  type Reply,
} from '../../core/inbound.ts'
import type { Acceptance, Channel, Intake, KnownRun } from '../channel.ts'
import type { HttpSender } from '../http/channel.ts'
import { idempotencyKeyOf, isJsonType } from '../http/codec.ts'
import { SenderRates, type SenderLimits } from '../sender-rates.ts'
import { shownAnswer, toReplyTo, type OpenAiAnswer, type OpenAiReplyTo } from './answering.ts'
import { RunWatch } from './run-watch.ts'
import { decodeChat } from './decode-chat.ts'
import { decodeResponses } from './decode-responses.ts'
import type { ConversationFinder } from './finder.ts'
import { addressOfResponse } from './answer-id.ts'
import { placeRequest, type PlacedRequest, type PlaceDeps } from './place-request.ts'
import type { ChatRequest, RequestLimits } from './request.ts'

export const OPENAI = 'openai'

/** Conversations whose response is not stored; they go as soon as they are answered. */
const UNSTORED = 'openai-unstored:'

export interface OpenAiChannelOptions extends PlaceDeps {
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly rates: SenderLimits
  readonly requestLimits: RequestLimits
  /** On their way to a slow reader. */
  readonly replyBufferBytes: number
  readonly finder: ConversationFinder
  readonly models: ModelNames
}

/** The models a client may name. */
export interface ModelNames {
  list(): readonly string[]
  /**
   * The reference of a name, undefined for the configured one. Throws `MODEL_UNKNOWN`, and `FIELD_INVALID` for a setting
   * that its API has no field for.
   */
  resolve(request: Pick<ChatRequest, 'api' | 'model' | 'sampling'>): string | undefined
}

/**
 * OpenAI's two APIs. A request resends its history: what the transcript holds of it is recognised, the rest is appended at
 * the place where they part, and the last message becomes a turn like that of any other channel.
 */
export class OpenAiChannel implements Channel {
  readonly name = OPENAI
  readonly #options: OpenAiChannelOptions
  readonly #rates: SenderRates
  readonly #watches = new Map<RunId, RunWatch>()
  readonly #background = new Set<Promise<void>>()
  #intake: Intake | undefined
  #isClosed = false

  constructor(options: OpenAiChannelOptions) {
    this.#options = options
    this.#rates = new SenderRates(options.clock, options.rates)
  }

  /** Answers from before the last stop are kept, and can be asked for; what must not be kept goes now. */
  async start(intake: Intake): Promise<void> {
    this.#intake = intake
    for (const { reply } of await intake.undelivered(OPENAI))
      if (reply !== undefined) intake.acknowledge(OPENAI, reply.account, reply.seq)
    const open = new Set((await intake.unanswered(OPENAI)).map(({ key }) => key))
    const unstored = await intake.control({ type: 'list', prefix: UNSTORED })
    if (unstored.type !== 'list') return
    for (const { key } of unstored.sessions) if (!open.has(key)) this.#forget(key)
  }

  models(): readonly string[] {
    return this.#options.models.list()
  }

  /** `POST /v1/chat/completions` and `POST /v1/responses`. */
  async post(api: ChatRequest['api'], request: Request, sender: HttpSender): Promise<OpenAiAnswer> {
    this.#rates.take(sender)
    const { headers } = request
    const type = headers.get('content-type')
    if (type !== null && !isJsonType(type)) throw onlyJson()
    const key = idempotencyKeyOf(headers)
    const body = await request.text()
    const decoded = loopWork('frame', () => decodeBody(api, body, this.#options.requestLimits))
    const model = this.#options.models.resolve(decoded)
    const caller = sender.caller ?? { owner: sender.account ?? UNKNOWN_OWNER, sees: 'all' }
    const session = headers.get('x-clew-session')?.trim()
    const placed = await placeRequest(
      decoded,
      { caller, ...(session === undefined || session === '' ? {} : { session }) },
      this.#options,
      request.signal,
    )
    const message = this.#messageOf(decoded, placed, { sender, caller, key, body, model })
    const watch = new RunWatch()
    const acceptance = await this.#accept(message, watch)
    const isDetached = headers.get('x-clew-detach') === '1'
    const gone = (): void => {
      if (!isDetached) this.#stop(acceptance)
    }
    const answer = await this.#answer(acceptance, decoded, { watch, gone, signal: request.signal })
    return acceptance.duplicate ? { ...answer, isRepeat: true } : answer
  }

  /** `GET /v1/responses/ID`. */
  async response(id: string, caller: Caller, signal: AbortSignal): Promise<OpenAiAnswer> {
    const address = addressOfResponse(id)
    if (address === undefined) throw notFound()
    const { finder } = this.#options
    const stored = await finder.answerAt(address, caller, signal)
    const known = await this.#requireIntake().find(OPENAI, address.run)
    if (known !== undefined && !(known.message.replyTo as OpenAiReplyTo).store) throw notFound()
    if (stored !== undefined && (known === undefined || known.reply !== undefined)) {
      const created = Math.floor((known?.message.acceptedAt ?? stored.at) / 1000)
      return shownAnswer(stored.content, {
        address,
        created,
        key: stored.key,
        replyTo: known?.message.replyTo ?? {},
      })
    }
    if (known === undefined || (await finder.sessionIdOf(known.message.key)) !== address.sessionId) throw notFound()
    if (!(await finder.exists(known.message.key, caller))) throw notFound()
    const created = Math.floor(known.message.acceptedAt / 1000)
    return shownAnswer(known.reply?.content, {
      address,
      created,
      key: known.message.key,
      replyTo: known.message.replyTo,
    })
  }

  observe({ event }: SessionEvent, { run }: AcceptedMessage): void {
    const watch = this.#watches.get(run)
    if (event.type === 'text-delta') watch?.text(event.round, event.delta)
    else if (event.type === 'thinking-delta' || event.type === 'round-end') watch?.stir()
  }

  get awaited(): ReadonlyMap<RunId, unknown> {
    return this.#watches
  }

  follows(run: RunId): boolean {
    return this.#watches.has(run)
  }

  async deliver(reply: Reply): Promise<DeliveryFate> {
    const watch = this.#watches.get(reply.run)
    this.#watches.delete(reply.run)
    watch?.end(reply.content)
    if (reply.key.startsWith(UNSTORED)) this.#forget(reply.key)
    return 'delivered'
  }

  status(): JsonObject {
    return { openRuns: this.#watches.size }
  }

  drain(): void {
    // Requests stay open: running answers still go out.
  }

  async close(): Promise<void> {
    this.#isClosed = true
    for (const watch of this.#watches.values()) watch.end(undefined)
    this.#watches.clear()
    while (this.#background.size > 0) await Promise.all(this.#background)
  }

  #messageOf(decoded: ChatRequest, placed: PlacedRequest, about: MessageParts): InboundMessage {
    const { sender, caller, key, body, model } = about
    const { system, tools, toolChoice, sampling, user, store } = decoded
    const id = key ?? this.#options.ids.uuid()
    const name =
      key === undefined
        ? id
        : createHash('sha256')
            .update(JSON.stringify([caller.owner, key]))
            .digest('hex')
            .slice(0, 32)
    const session = placed.key ?? `${store ? `${OPENAI}:` : UNSTORED}${name}`
    const digest = createHash('sha256').update(body).digest('base64url')
    return {
      channel: OPENAI,
      account: sender.account ?? UNKNOWN_OWNER,
      caller,
      messageId: id,
      text: placed.text,
      attachments: placed.attachments,
      route: { session, preserveCase: placed.keepsCase, ...(user === undefined ? {} : { senderId: user }) },
      replyTo: toReplyTo(decoded),
      ...(key === undefined ? {} : { idempotency: { key, digest } }),
      client: {
        tools,
        place: placed.place,
        ...(system === undefined ? {} : { system }),
        ...(model === undefined ? {} : { model }),
        ...(toolChoice === undefined ? {} : { toolChoice }),
        ...(Object.keys(sampling).length === 0 ? {} : { sampling }),
        ...(placed.mark === undefined || !store ? {} : { mark: placed.mark }),
      },
    }
  }

  #accept(message: InboundMessage, watch: RunWatch): Promise<Acceptance> {
    return this.#requireIntake().accept(message, ({ run, duplicate }) => {
      if (!duplicate && !this.#isClosed) this.#watches.set(run, watch)
    })
  }

  async #answer(
    { run, key, duplicate }: Acceptance,
    decoded: ChatRequest,
    reading: { readonly watch: RunWatch; readonly gone: () => void; readonly signal: AbortSignal },
  ): Promise<OpenAiAnswer> {
    const { finder, clock, replyBufferBytes } = this.#options
    const sessionId = await finder.sessionIdOf(key)
    // Last, so that an answer cannot come between this look and the watching.
    const known = await this.#requireIntake().find(OPENAI, run)
    if (known === undefined || sessionId === undefined)
      throw new GatewayError('RUN_NOT_FOUND', 'the conversation was deleted')
    const watch = duplicate ? this.#watchOf(known) : reading.watch
    const about = {
      address: { run, sessionId },
      created: Math.floor(known.message.acceptedAt / 1000),
      key,
      replyTo: known.message.replyTo as OpenAiReplyTo,
    }
    const onDropped = duplicate ? () => undefined : reading.gone
    return watch.answer(about, {
      stream: decoded.stream,
      includeUsage: decoded.includeUsage,
      clock,
      bufferBytes: replyBufferBytes,
      signal: reading.signal,
      onDropped,
    })
  }

  /** Of a run that another request began, perhaps before a restart. */
  #watchOf({ message, reply }: KnownRun): RunWatch {
    if (reply !== undefined) return RunWatch.ended(reply.content)
    const watch = this.#watches.get(message.run) ?? new RunWatch()
    this.#watches.set(message.run, watch)
    return watch
  }

  /** Front ends stop an answer by closing the connection. What was said stays, marked as cut. */
  #stop({ run, key }: Acceptance): void {
    if (!this.#isClosed) this.#own(this.#cancel(run, key))
  }

  async #cancel(run: RunId, key: SessionKey): Promise<void> {
    const intake = this.#requireIntake()
    if ((await intake.find(OPENAI, run))?.reply === undefined) await intake.control({ type: 'cancel', key, run })
  }

  #forget(key: SessionKey): void {
    if (!this.#isClosed) this.#own(this.#requireIntake().control({ type: 'delete', key }))
  }

  #own(work: Promise<unknown>): void {
    const owned = work.then(
      () => undefined,
      (thrown: unknown) => {
        const { code } = toGatewayError(thrown)
        if (code !== 'SESSION_NOT_FOUND')
          this.#options.log.warn('a conversation could not be stopped or deleted', { code })
      },
    )
    this.#background.add(owned)
    void owned.finally(() => this.#background.delete(owned))
  }

  #requireIntake(): Intake {
    if (this.#intake !== undefined && !this.#isClosed) return this.#intake
    throw new GatewayError('SHUTTING_DOWN', 'the gateway is not accepting messages right now')
  }
}

interface MessageParts {
  readonly sender: HttpSender
  readonly caller: Caller
  readonly key: string | undefined
  readonly body: string
  readonly model: string | undefined
}

function decodeBody(api: ChatRequest['api'], body: string, limits: RequestLimits): ChatRequest {
  if (body.trim() === '') throw new GatewayError('FRAME_MALFORMED', 'the body is empty')
  if (jsonExcess(body) !== undefined)
    throw new GatewayError('FRAME_MALFORMED', 'the body holds too many or too deep values')
  const fields = parseForeignJson(body)
  if (!isRecord(fields)) throw new GatewayError('FRAME_MALFORMED', 'the body is not a JSON object')
  return api === 'chat' ? decodeChat(fields, limits) : decodeResponses(fields, limits)
}

function onlyJson(): GatewayError {
  return new GatewayError('CONTENT_TYPE_UNSUPPORTED', 'send application/json', { field: 'Content-Type' })
}

function notFound(): GatewayError {
  return new GatewayError('RUN_NOT_FOUND', 'no response has this id')
}
