import { sleep } from '../../base/async.ts'
import type { Clock } from '../../base/clock.ts'
import type { HttpListener, HttpServers } from '../../base/http.ts'
import type { Ids } from '../../base/ids.ts'
import { type JsonValue, parseJson } from '../../base/json.ts'
import type { TemplateFamily } from '../rules/chat-templates.ts'
import type { RuleProfile } from '../rules/rule.ts'
import { answerOf } from './answering-model.ts'
import { ANTHROPIC_PING, anthropicWire } from './anthropic-wire.ts'
import { chatWire } from './chat-wire.ts'
import { EMPTY_CONVERSATION, readConversation } from './conversation.ts'
import { deliver } from './delivery.ts'
import { googleWire } from './google-wire.ts'
import { mistralWire } from './mistral-wire.ts'
import { isJsonObject, type ApiWire, type Exchange, type Refusal, type Route } from './wire.ts'
import { estimateTokens, PromptCache } from './prompt-cache.ts'
import { responsesWire } from './responses-wire.ts'
import {
  type Delivery,
  isRefusal,
  type Script,
  type ScriptedAnswer,
  type ScriptedReply,
  type SimulatedApi,
} from './script.ts'
import { Seals } from './seals.ts'
import { redactedHeaders, redactedPath, type RequestOutcome, type SeenRequest } from './seen-request.ts'
import { isTooLong, type LengthRefusalStyle } from './length-refusal.ts'

const DEFAULT_KEPT = 200
const DEFAULT_KEPT_BODY_CHARS = 256 * 1024
const NOTHING_CACHED = { read: 0, write: 0 }

const WIRES: Readonly<Record<SimulatedApi, ApiWire>> = {
  'anthropic-messages': anthropicWire,
  'openai-responses': responsesWire,
  'openai-completions': chatWire,
  'google-generative-ai': googleWire,
  'mistral-conversations': mistralWire,
}

/** Which API, which models, and who answers. */
export interface SimulatorOptions {
  readonly api: SimulatedApi
  readonly clock: Clock
  readonly ids: Ids
  /** What to answer. A list is used up in order; then, or without a script, a deterministic model answers. */
  readonly script?: Script | readonly ScriptedReply[]
  /** How answers are delivered that do not say it themselves. */
  readonly delivery?: Delivery
  /** The only key accepted. Absent: any key, but there has to be one (except in the compatible dialect). */
  readonly apiKey?: string
  /** Which rules refuse a request; what the service refuses today when absent. */
  readonly profile?: RuleProfile
  /** For `openai-completions`: a server that imitates OpenAI, shows its reasoning and insists on alternation. */
  readonly dialect?: 'openai' | 'compatible'
  /** For the compatible dialect: whose chat template renders requests. By default the model's id decides. */
  readonly template?: TemplateFamily
  /** Refuse signatures that this simulator did not issue. Default true. */
  readonly verifySignatures?: boolean
  /** Requests estimated above this are refused as too long. Default 200 000. */
  readonly contextTokens?: number
  /** How a server of the compatible dialect says so; in OpenAI's sentence when absent. */
  readonly lengthRefusal?: LengthRefusalStyle
  readonly models?: readonly string[]
  /** How many requests are kept; the oldest are forgotten. Default 200. */
  readonly maxKept?: number
  /** Of longer bodies only the beginning of the text is kept. Default 256 Ki characters. */
  readonly maxKeptBodyChars?: number
  readonly maxBodyBytes?: number
  /** Called when an exchange is over, however it ended. */
  readonly onEnd?: (request: SeenRequest) => void
}

/** A simulator that listens. */
export interface ServedSimulator {
  readonly url: string
  /** What a client of the API takes as its base URL. */
  readonly baseUrl: string
  readonly port: number
  close(): Promise<void>
}

/** A model service in this process. */
export interface ProviderSimulator {
  readonly api: SimulatedApi
  /** In order of arrival; entries are completed while their exchange goes on. */
  readonly requests: readonly SeenRequest[]
  /** Adds replies behind those still waiting; they come before the script. */
  enqueue(...replies: ScriptedReply[]): void
  handle(request: Request): Promise<Response>
  serve(servers: HttpServers, options?: { readonly host?: string; readonly port?: number }): Promise<ServedSimulator>
}

/** A model service that checks every request as strictly as the real one and answers in its very bytes. */
export function createProviderSimulator(options: SimulatorOptions): ProviderSimulator {
  return new Simulator(options)
}

type Kept = { -readonly [Key in keyof SeenRequest]: SeenRequest[Key] }

class Simulator implements ProviderSimulator {
  readonly api: SimulatedApi
  readonly #options: SimulatorOptions
  readonly #seals: Seals
  readonly #cache: PromptCache
  readonly #queue: ScriptedReply[]
  readonly #kept: Kept[] = []
  #count = 0

  constructor(options: SimulatorOptions) {
    this.api = options.api
    this.#options = options
    this.#seals = new Seals(options.ids)
    this.#cache = new PromptCache(options.clock)
    this.#queue = typeof options.script === 'function' ? [] : [...(options.script ?? [])]
  }

  get requests(): readonly SeenRequest[] {
    return this.#kept
  }

  enqueue(...replies: ScriptedReply[]): void {
    this.#queue.push(...replies)
  }

  async handle(request: Request): Promise<Response> {
    const url = new URL(request.url)
    const bodyText = await request.text()
    const body = request.method === 'POST' ? parseJson(bodyText) : undefined
    const route = WIRES[this.api].route(request.method, url, body)
    const wire = WIRES[route?.api ?? this.api]
    const seen = this.#keep(request, url, bodyText, body, route)
    const exchange = this.#exchange(body)
    const refusal = this.#refusalOf(request, url, bodyText, body, route, wire, seen)
    if (refusal !== undefined || route === undefined) {
      return this.#refuse(refusal ?? { kind: 'not-found' }, route, wire, exchange, seen)
    }
    if (route.endpoint === 'models')
      return this.#json(200, wire.models(this.#models(), exchange), wire.headers(exchange), seen)
    if (isTooLong(exchange)) {
      return this.#refuse({ kind: 'context-overflow' }, route, wire, exchange, seen)
    }
    if (route.endpoint === 'count-tokens') {
      return this.#json(200, wire.countTokens(exchange.inputTokens), wire.headers(exchange), seen)
    }
    const cached = this.#cache.use(route.api, route.model, body)
    return this.#reply(this.#nextReply(seen), route, wire, { ...exchange, cached }, seen, request.signal)
  }

  async serve(
    servers: HttpServers,
    options: { readonly host?: string; readonly port?: number } = {},
  ): Promise<ServedSimulator> {
    const host = options.host ?? '127.0.0.1'
    const listener: HttpListener = await servers.listen({
      host,
      port: options.port ?? 0,
      maxBodyBytes: this.#options.maxBodyBytes ?? 64 * 1024 * 1024,
      maxFrameBytes: 1024,
      handle: (request) => this.handle(request),
      upgrade: () => ({ accept: false, status: 404, body: 'this service has no WebSocket' }),
    })
    const url = `http://${host.includes(':') ? `[${host}]` : host}:${listener.port}`
    const isOpenAi = this.api.startsWith('openai')
    return { url, baseUrl: isOpenAi ? `${url}/v1` : url, port: listener.port, close: () => listener.close() }
  }

  #maxKeptBodyChars(): number {
    return this.#options.maxKeptBodyChars ?? DEFAULT_KEPT_BODY_CHARS
  }

  #models(): readonly string[] {
    return this.#options.models ?? [`simulated-${this.api}`]
  }

  #exchange(body: unknown): Exchange {
    const { clock, ids } = this.#options
    return {
      clock,
      ids,
      seals: this.#seals,
      body,
      inputTokens: Math.max(1, Math.ceil(estimateTokens(body))),
      cached: NOTHING_CACHED,
      contextTokens: this.#options.contextTokens ?? 200_000,
      requestId: `req_011C${ids.hex(20)}`,
      dialect: this.#options.dialect ?? 'openai',
      ...(this.#options.lengthRefusal === undefined ? {} : { lengthRefusal: this.#options.lengthRefusal }),
    }
  }

  /** Everything the service looks at before it thinks about an answer. */
  #refusalOf(
    request: Request,
    url: URL,
    bodyText: string,
    body: unknown,
    route: Route | undefined,
    wire: ApiWire,
    seen: Kept,
  ): Refusal | undefined {
    const unauthorised = this.#checkKey(wire.keyOf(request.headers, url))
    if (unauthorised !== undefined) return unauthorised
    if (route === undefined) return { kind: 'not-found' }
    const missing = wire.missingHeader?.(request.headers)
    if (missing !== undefined) return { kind: 'invalid-request', message: missing }
    if (route.endpoint === 'models') return undefined
    // Counting takes a different body at Google, and the request proper is checked when it comes.
    if (route.endpoint === 'count-tokens' && route.api === 'google-generative-ai') return undefined
    seen.violations = wire.check(body, route, {
      profile: this.#options.profile ?? 'current',
      bodyBytes: Buffer.byteLength(bodyText),
      ...(this.#options.verifySignatures === false ? {} : { issued: this.#seals }),
      ...(this.#options.dialect === undefined ? {} : { dialect: this.#options.dialect }),
      ...(this.#options.template === undefined ? {} : { template: this.#options.template }),
    })
    return seen.violations.length > 0 ? { kind: 'rules', violations: seen.violations } : undefined
  }

  #checkKey(key: string | undefined): Refusal | undefined {
    if (this.#options.dialect === 'compatible' && this.#options.apiKey === undefined) return undefined
    if (key === undefined || key === '') return missingKey(this.api)
    if (this.#options.apiKey !== undefined && key !== this.#options.apiKey) return { kind: 'authentication' }
    return undefined
  }

  #nextReply(seen: SeenRequest): ScriptedReply {
    const queued = this.#queue.shift()
    if (queued !== undefined) return queued
    const { script } = this.#options
    return typeof script === 'function' ? script(seen) : answerOf(seen.conversation)
  }

  async #reply(
    reply: ScriptedReply,
    route: Route,
    wire: ApiWire,
    exchange: Exchange,
    seen: Kept,
    signal: AbortSignal,
  ): Promise<Response> {
    if (reply.delivery?.headersDelayMs !== undefined) {
      try {
        await sleep(this.#options.clock, reply.delivery.headersDelayMs, signal)
      } catch (error) {
        this.#end(seen, 'aborted', 0)
        throw error
      }
    }
    if (isRefusal(reply)) return this.#refuse({ ...reply, kind: reply.refuse }, route, wire, exchange, seen)
    if (!route.stream) return this.#json(200, wire.complete(reply, route, exchange), wire.headers(exchange), seen)
    return this.#stream(reply, route, wire, exchange, seen)
  }

  #stream(answer: ScriptedAnswer, route: Route, wire: ApiWire, exchange: Exchange, seen: Kept): Response {
    const { clock, ids } = this.#options
    seen.status = 200
    const body = deliver(wire.frames(answer, route, exchange), {
      delivery: { ...this.#options.delivery, ...answer.delivery },
      clock,
      ids,
      ping: wire.api === 'anthropic-messages' ? ANTHROPIC_PING : undefined,
      errorFrame: (kind, events) => wire.errorFrame(kind, exchange, events),
      ended: (how) => this.#end(seen, how, 200),
    })
    const type = route.asArray === true ? 'application/json; charset=UTF-8' : 'text/event-stream; charset=utf-8'
    return new Response(body, {
      headers: { ...wire.headers(exchange), 'content-type': type, 'cache-control': 'no-cache' },
    })
  }

  #refuse(refusal: Refusal, route: Route | undefined, wire: ApiWire, exchange: Exchange, seen: Kept): Response {
    const { status, headers, body } = wire.refuse(refusal, route, exchange)
    return this.#json(status, body, headers, seen)
  }

  #json(status: number, body: JsonValue, headers: Readonly<Record<string, string>>, seen: Kept): Response {
    this.#end(seen, status < 400 ? 'completed' : 'refused', status)
    return new Response(JSON.stringify(body), { status, headers: { ...headers, 'content-type': 'application/json' } })
  }

  #end(seen: Kept, outcome: RequestOutcome, status: number): void {
    seen.outcome = outcome
    seen.status = status
    seen.endedAt = this.#options.clock.now()
    this.#options.onEnd?.(seen)
    if (seen.bodyText.length >= this.#maxKeptBodyChars()) seen.conversation = EMPTY_CONVERSATION
  }

  #keep(request: Request, url: URL, bodyText: string, body: unknown, route: Route | undefined): Kept {
    const seen: Kept = {
      index: this.#count++,
      at: this.#options.clock.now(),
      api: route?.api ?? this.api,
      endpoint: route?.endpoint ?? 'unknown',
      method: request.method,
      path: redactedPath(url),
      headers: redactedHeaders(request.headers),
      bodyText: bodyText.slice(0, this.#maxKeptBodyChars()),
      body: isJsonObject(body) && bodyText.length <= this.#maxKeptBodyChars() ? body : undefined,
      model: route?.model ?? '',
      stream: route?.stream ?? false,
      conversation: readConversation(route?.api ?? this.api, body),
      violations: [],
      outcome: 'running',
      status: 0,
      endedAt: undefined,
    }
    this.#kept.push(seen)
    if (this.#kept.length > (this.#options.maxKept ?? DEFAULT_KEPT)) this.#kept.shift()
    return seen
  }
}

function missingKey(api: SimulatedApi): Refusal {
  if (api === 'google-generative-ai') return { kind: 'permission' }
  if (api === 'anthropic-messages') return { kind: 'authentication', message: 'x-api-key header is required' }
  if (api === 'mistral-conversations') return { kind: 'authentication' }
  const message =
    "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
  return { kind: 'authentication', message }
}
