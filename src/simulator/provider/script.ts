import type { JsonObject } from '../../base/json.ts'
import type { SeenRequest } from './seen-request.ts'

/** The APIs a simulator speaks, under the names the gateway's providers use for them. */
export const SIMULATED_APIS = [
  'anthropic-messages',
  'openai-responses',
  'openai-completions',
  'google-generative-ai',
  'mistral-conversations',
] as const
/** The APIs that are simulated. */
export type SimulatedApi = (typeof SIMULATED_APIS)[number]

/** What the simulator does with one request: answers it, or refuses it as the service does on a bad day. */
export type ScriptedReply = ScriptedAnswer | ScriptedRefusal

/** An answer the simulator gives. */
export interface ScriptedAnswer {
  readonly blocks: readonly AnswerBlock[]
  /** Derived from the blocks when absent. */
  readonly stop?: AnswerStop
  readonly usage?: AnswerUsage
  readonly delivery?: Delivery
}

/** A part of a scripted answer. */
export type AnswerBlock =
  | { readonly type: 'text'; readonly text: string }
  /** Signed by the simulator unless a signature is given. */
  | { readonly type: 'thinking'; readonly thinking: string; readonly signature?: string; readonly redacted?: boolean }
  /** A string is sent as it is, so that a script can answer with broken JSON. */
  | { readonly type: 'toolCall'; readonly name: string; readonly arguments: JsonObject | string; readonly id?: string }
  | { readonly type: 'refusal'; readonly refusal: string }

/** Why a scripted answer ends. */
export type AnswerStop = 'stop' | 'length' | 'tool-calls' | 'refusal' | 'stop-sequence'

/**
 * Tokens. Without it they are estimated, and the cache numbers tell what the simulated prompt cache did; in a usage that
 * is given, absent cache numbers are zero.
 */
export interface AnswerUsage {
  readonly input?: number
  readonly output?: number
  readonly cacheRead?: number
  readonly cacheWrite?: number
  readonly reasoning?: number
}

/** How the bytes of a streamed answer arrive. */
export interface Delivery {
  /** Silence before the response headers. */
  readonly headersDelayMs?: number
  /** Silence between the headers and the first byte of the body. */
  readonly firstByteDelayMs?: number
  readonly betweenEventsMs?: number
  /** Characters per text or argument fragment. */
  readonly deltaChars?: number
  /** Cut the byte stream anywhere, in pieces of 1 to this many bytes, regardless of events and characters. */
  readonly splitBytes?: number
  /** A ping after every so many events, where the API has pings. */
  readonly pingEvery?: number
  /** Break the connection after this many bytes of the body. */
  readonly cutAfterBytes?: number
  /** Replace the rest of the stream by an error event after this many events. */
  readonly errorAfterEvents?: number
  readonly errorKind?: RefusalKind
  /** End the stream in an orderly way, but before its final events, after this many. */
  readonly endAfterEvents?: number
}

/** The refusals that every API can give. */
export type RefusalKind =
  | 'invalid-request'
  | 'authentication'
  | 'permission'
  | 'not-found'
  | 'rate-limit'
  | 'quota'
  | 'overloaded'
  | 'unavailable'
  | 'server-error'
  | 'context-overflow'
  | 'content-filter'

/** A refusal in the provider's own shape. */
export interface ScriptedRefusal {
  readonly refuse: RefusalKind
  readonly message?: string
  /** Sent the way the API sends it: a header, and in Google's case also in the body. */
  readonly retryAfterSeconds?: number
  readonly delivery?: Pick<Delivery, 'headersDelayMs'>
}

/** Asked once per accepted request, in order of arrival. */
export type Script = (request: SeenRequest) => ScriptedReply

export function isRefusal(reply: ScriptedReply): reply is ScriptedRefusal {
  return 'refuse' in reply
}

/** The stop the blocks imply. */
export function stopOf(answer: ScriptedAnswer): AnswerStop {
  if (answer.stop !== undefined) return answer.stop
  if (answer.blocks.some((block) => block.type === 'refusal')) return 'refusal'
  return answer.blocks.some((block) => block.type === 'toolCall') ? 'tool-calls' : 'stop'
}
