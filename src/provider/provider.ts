import type { JsonObject } from '../base/json.ts'
import type { Sampling } from '../core/client-turn.ts'
import type { AssistantMessage, PreparedMessage } from '../core/message.ts'

/**
 * A model API. `encode` is pure: the same request gives the same bytes on every machine and in every later year, so a
 * past request can be rebuilt and its hash compared. `stream` sends those bytes and nothing else.
 */
export interface ModelProvider {
  /** The name in the configuration, `anthropic`, `my-local` … */
  readonly name: string
  readonly api: ModelApi
  /** Chat Completions of a server that is not OpenAI's own. */
  readonly dialect?: 'compatible'
  encode(request: ModelRequest): EncodedRequest
  /**
   * Ends with exactly one `end` event, or throws a `GatewayError` with a `MODEL_…` code. Aborting closes the connection
   * and throws the signal's reason.
   */
  stream(request: EncodedRequest, signal: AbortSignal): AsyncIterable<ModelEvent>
}

/** The wire format of a provider, which decides the rules a history is prepared for; `demo` has none. */
export type ModelApi =
  | 'anthropic-messages'
  | 'openai-responses'
  | 'openai-completions'
  | 'google-generative-ai'
  | 'mistral-conversations'
  | 'demo'

/** What a model is asked, before an API has put it into its own words. */
export interface ModelRequest {
  /** The model id as the provider knows it. */
  readonly model: string
  readonly system: string
  /** Prepared: paired, ordered and limited for this API. */
  readonly messages: readonly PreparedMessage[]
  readonly tools: readonly ToolSpec[]
  /** Nothing but user and assistant turns: where the system prompt is a turn it goes into the first user message. */
  readonly plainTurns?: boolean
  readonly maxOutputTokens: number
  /** `off`, `minimal`, `low`, `medium`, `high` or `xhigh`; anything else counts as `off`. */
  readonly thinkingLevel: string
  /** Stays the same for one conversation; lets a provider find its prompt cache. Must not name a person. */
  readonly cacheKey?: string
  /** How it is to choose its words; only what `takes` says of the API. */
  readonly sampling?: Sampling
  /** One of the tools has to be called, or the one named. */
  readonly toolChoice?: 'required' | { readonly name: string }
}

/** A tool as it is described to a model. */
export interface ToolSpec {
  readonly name: string
  readonly description: string
  /** JSON Schema of an object. */
  readonly parameters: JsonObject
}

/** A request as it goes over the wire. */
export interface EncodedRequest {
  readonly model: string
  /** The exact bytes of the request body, as text. */
  readonly body: string
  /** The request's `cacheKey`: tells failures of one conversation from those of many. */
  readonly conversation?: string
}

/** What a model says while it answers; `end` is the last. */
export type ModelEvent =
  | { readonly type: 'text-delta'; readonly delta: string }
  | { readonly type: 'thinking-delta'; readonly delta: string }
  | { readonly type: 'tool-call-start'; readonly index: number; readonly name: string }
  /** The request starts over. Never after a `text-delta`; previews of thinking and of tool calls are void. */
  | { readonly type: 'retry'; readonly attempt: number; readonly delayMs: number; readonly code: string }
  /** The finished answer. Its `timestamp` is set by the caller's clock when it is stored. */
  | { readonly type: 'end'; readonly message: Omit<AssistantMessage, 'timestamp'> }
