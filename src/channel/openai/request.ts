import type { ClientTool, Sampling } from '../../core/client-turn.ts'
import type { AnswerAddress } from './finder.ts'
import type { SentMessage } from './sent-message.ts'

/** Stands for an answer of ours that the client does not repeat. */
export interface AnswerReference {
  readonly role: 'reference'
  readonly address: AnswerAddress
}

/** A request of either API, decoded. */
export interface ChatRequest {
  readonly api: 'chat' | 'responses'
  /** As the client named it. */
  readonly model: string
  /** Without system messages. */
  readonly messages: readonly (SentMessage | AnswerReference)[]
  readonly system?: string
  readonly tools: readonly ClientTool[]
  readonly toolChoice?: 'required' | { readonly name: string }
  readonly sampling: Sampling
  readonly stream: boolean
  /** Chat Completions send what was used only when asked for it. */
  readonly includeUsage: boolean
  readonly user?: string
  /** Responses only. */
  readonly previous?: AnswerAddress
  readonly store: boolean
  readonly metadata?: Readonly<Record<string, string>>
}

/** Of a history; far more than a model can read. */
/** What one request may hold. */
export interface RequestLimits {
  readonly messages: number
  readonly tools: number
}
