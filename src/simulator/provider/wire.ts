import type { Clock } from '../../base/clock.ts'
import type { Ids } from '../../base/ids.ts'
import { type JsonValue, isRecord, type JsonObject, parseJson } from '../../base/json.ts'
import type { CheckOptions, RuleViolation } from '../rules/rule.ts'
import type { CachedTokens } from './prompt-cache.ts'
import type { RefusalKind, ScriptedAnswer, SimulatedApi } from './script.ts'
import type { LengthRefusalStyle } from './length-refusal.ts'
import type { Seals } from './seals.ts'

/** One API on the wire: its paths, its keys, its refusals and its answers, byte for byte. */
export interface ApiWire {
  readonly api: SimulatedApi
  /** Undefined for a path the service does not have. */
  route(method: string, url: URL, body: unknown): Route | undefined
  /** The key as the client sent it. */
  keyOf(headers: Headers, url: URL): string | undefined
  check(body: unknown, route: Route, options: CheckOptions): readonly RuleViolation[]
  /** A header the service insists on, apart from the key. */
  missingHeader?(headers: Headers): string | undefined
  refuse(refusal: Refusal, route: Route | undefined, exchange: Exchange): Refused
  /** The error event that ends a stream the service gives up on, after so many other events. */
  errorFrame(kind: RefusalKind, exchange: Exchange, events: number): string
  frames(answer: ScriptedAnswer, route: Route, exchange: Exchange): Iterable<Frame>
  complete(answer: ScriptedAnswer, route: Route, exchange: Exchange): JsonValue
  countTokens(tokens: number): JsonValue
  models(names: readonly string[], exchange: Exchange): JsonValue
  /** Headers of every answer that is not an error. */
  headers(exchange: Exchange): Readonly<Record<string, string>>
}

export interface Route {
  readonly endpoint: 'generate' | 'count-tokens' | 'models'
  readonly model: string
  readonly stream: boolean
  /** Which of two APIs on one host. */
  readonly api: SimulatedApi
  /** The stream is a JSON array instead of server-sent events. */
  readonly asArray?: boolean
}

/** One event of the stream; pings and errors come between two of them. */
export interface Frame {
  readonly text: string
}

export type Refusal =
  | { readonly kind: 'rules'; readonly violations: readonly RuleViolation[] }
  | {
      readonly kind: RefusalKind
      readonly message?: string
      readonly retryAfterSeconds?: number
      readonly key?: string
    }

export interface Refused {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: JsonValue
}

/** What one request and its answer need besides themselves. */
export interface Exchange {
  readonly clock: Clock
  readonly ids: Ids
  readonly seals: Seals
  readonly body: unknown
  /** Estimated tokens of the request, what came from the cache included. */
  readonly inputTokens: number
  readonly cached: CachedTokens
  readonly contextTokens: number
  readonly requestId: string
  readonly dialect: 'openai' | 'compatible'
  readonly lengthRefusal?: LengthRefusalStyle
}

/** Letters and digits, as the services' own ids have them. */
export function alphanumeric(ids: Ids, length: number): string {
  const alphabet = 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz0123456789'
  return Array.from({ length }, () => alphabet[Math.floor(ids.fraction() * alphabet.length)]).join('')
}

/** Fragments on code points: a service never splits a character inside a JSON string. */
export function fragments(text: string, size: number): string[] {
  const characters = Array.from(text)
  const count = Math.ceil(characters.length / size)
  return Array.from({ length: count }, (_, index) => characters.slice(index * size, (index + 1) * size).join(''))
}

const DEFAULT_DELTA_CHARS = 12

export function deltaChars(answer: ScriptedAnswer): number {
  return Math.max(1, answer.delivery?.deltaChars ?? DEFAULT_DELTA_CHARS)
}

export function argumentText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}

export interface Tokens {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly reasoning: number
}

export function tokensOf(answer: ScriptedAnswer, exchange: Exchange): Tokens {
  const { usage } = answer
  const spoken = answer.blocks.reduce((sum, block) => sum + JSON.stringify(block).length, 0)
  const thought = answer.blocks.reduce((sum, block) => sum + (block.type === 'thinking' ? block.thinking.length : 0), 0)
  return {
    input: usage?.input ?? exchange.inputTokens,
    output: usage?.output ?? Math.max(1, Math.ceil(spoken / 4)),
    cacheRead: usage === undefined ? exchange.cached.read : (usage.cacheRead ?? 0),
    cacheWrite: usage === undefined ? exchange.cached.write : (usage.cacheWrite ?? 0),
    reasoning: usage?.reasoning ?? Math.ceil(thought / 4),
  }
}

/** A server-sent event with a name, as Anthropic and OpenAI's Responses write it. */
export function namedEvent(name: string, data: string): string {
  return `event: ${name}\ndata: ${data}\n\n`
}

/** A server-sent event without a name, as the chat APIs write it. */
export function dataEvent(data: string): string {
  return `data: ${data}\n\n`
}

/** Google ends its lines the other way. */
export function crlfDataEvent(data: string): string {
  return `data: ${data}\r\n\r\n`
}

/** For values that came out of a JSON parser: there every object is a JSON object. */
export function isJsonObject(value: unknown): value is JsonObject {
  return isRecord(value)
}

export function isJson(value: unknown): value is JsonValue {
  return value === null || ['boolean', 'number', 'string', 'object'].includes(typeof value)
}

/** An object given as such or as JSON text; empty for everything else. */
export function toJsonObject(value: unknown): JsonObject {
  const parsed = typeof value === 'string' ? parseJson(value) : value
  return isJsonObject(parsed) ? parsed : {}
}
