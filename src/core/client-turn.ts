import type { JsonObject } from '../base/json.ts'
import type { EntryId } from './ids.ts'
import type { Attachment } from './inbound.ts'

/**
 * What a client that speaks a model's API decides about one turn. It is stored with its message, so that a turn goes on
 * in the same way after a crash.
 */
export interface ClientTurn {
  /** Stands in for the agent's system prompt. */
  readonly system?: string
  /** `provider/model`; the configured one when absent. */
  readonly model?: string
  /** Run by the client: a call of one of them ends the turn, and its result begins the next. */
  readonly tools: readonly ClientTool[]
  /** `required`: one of the client's tools has to be called; a name: that one. */
  readonly toolChoice?: 'required' | { readonly name: string }
  readonly sampling?: Sampling
  readonly place: TurnPlacement
  /** By which a resent history finds this conversation again. */
  readonly mark?: ConversationMark
}

export interface ClientTool {
  readonly name: string
  readonly description: string
  /** JSON Schema of an object. */
  readonly parameters: JsonObject
}

/** How a model is to choose its words, in the terms of no particular API. */
export interface Sampling {
  readonly maxOutputTokens?: number
  readonly temperature?: number
  readonly topP?: number
  readonly stop?: readonly string[]
  readonly format?: AnswerFormat
}

/** JSON of any kind, or of a schema. */
export type AnswerFormat =
  | { readonly type: 'json' }
  | { readonly type: 'schema'; readonly name: string; readonly schema: JsonObject; readonly strict?: boolean }

/** Where in the tree a turn begins, and what comes before its question. */
export interface TurnPlacement {
  /** The entry it goes on from, null for a new root; absent: wherever the conversation ends. */
  readonly at?: EntryId | null
  /** Messages that the transcript does not hold, in order. */
  readonly earlier: readonly ClientMessage[]
  /** How many of them, from the end, came with this request; the others are of an earlier time. */
  readonly fresh: number
  /** False when the message itself asks nothing: the question, or the results it waits for, are there. */
  readonly asks: boolean
  /** Of the question as it was sent. */
  readonly digest?: string
}

/** A message of a client's own history. */
export type ClientMessage =
  | {
      readonly role: 'user'
      readonly text: string
      readonly attachments: readonly Attachment[]
      /** Of what was sent; what is stored of it may differ. */
      readonly digest: string
    }
  | { readonly role: 'assistant'; readonly text: string; readonly calls: readonly ClientCall[] }
  | { readonly role: 'tool'; readonly callId: string; readonly text: string; readonly digest: string }

/** A call of a client's tool, as the model wrote it. */
export interface ClientCall {
  readonly id: string
  readonly name: string
  /** JSON, unless the model failed to write any. */
  readonly arguments: string
}

/** Digests of a conversation's first message and of all its messages up to the last request. */
export interface ConversationMark extends JsonObject {
  readonly root: string
  readonly last: string
}
