import type { JsonObject } from '../base/json.ts'

/**
 * Messages as they are stored: the shapes of pi-coding-agent's session format 3, so that its files are ours and
 * ours are its. Unknown fields are kept wherever a message travels; they are the next provider's signature format.
 */
export type Message =
  | UserMessage
  | AssistantMessage
  | ToolResultMessage
  | CustomMessage
  | BashExecutionMessage
  | SystemMessage
  | CompactionSummaryMessage
  | BranchSummaryMessage

/** What `prepare` leaves: every other role has become user text, every call has its result. */
export type PreparedMessage = UserMessage | AssistantMessage | ToolResultMessage

export interface TextBlock {
  readonly type: 'text'
  readonly text: string
  readonly textSignature?: string
  /** What the provider sent with this block and we do not interpret. */
  readonly raw?: JsonObject
}

export interface ImageBlock {
  readonly type: 'image'
  /** Base64. */
  readonly data: string
  readonly mimeType: string
}

export interface ThinkingBlock {
  readonly type: 'thinking'
  readonly thinking: string
  /** Opaque: replayed byte for byte or dropped with its block, never edited. */
  readonly thinkingSignature?: string
  readonly redacted?: boolean
  readonly raw?: JsonObject
}

export interface ToolCallBlock {
  readonly type: 'toolCall'
  readonly id: string
  readonly name: string
  readonly arguments: JsonObject
  /** Opaque, Google's. */
  readonly thoughtSignature?: string
  /** The model's arguments when they are not a JSON object; `arguments` is empty then, and the call must not be run. */
  readonly invalidArguments?: string
  readonly raw?: JsonObject
}

export type UserBlock = TextBlock | ImageBlock
export type AssistantBlock = TextBlock | ThinkingBlock | ToolCallBlock

export interface UserMessage {
  readonly role: 'user'
  readonly content: string | readonly UserBlock[]
  /** What a hook put in front (`before_agent_start`): the model reads it first, and it is not shown as the user's words. */
  readonly prependContext?: string
  /** Unix ms, as in every message. */
  readonly timestamp: number
  readonly provenance?: Provenance
  /** Digest of what a client sent that resends its history; what is stored may differ from it. */
  readonly sent?: string
}

/** Where a user message came from. Anything but `external_user` is shown to the model as such. */
/** The source of what was written on the dashboard. */
export const DASHBOARD_TOOL = 'dashboard'

export interface Provenance {
  readonly kind: 'external_user' | 'inter_session' | 'internal_system'
  readonly sourceSessionKey?: string
  readonly sourceChannel?: string
  readonly sourceTool?: string
}

export interface AssistantMessage {
  readonly role: 'assistant'
  readonly content: readonly AssistantBlock[]
  readonly api: string
  readonly provider: string
  readonly model: string
  readonly responseId?: string
  readonly usage: Usage
  readonly stopReason: StopReason
  readonly errorMessage?: string
  readonly timestamp: number
  /** What the provider sent with the answer and we do not interpret; `stopReason` in its own word among it. */
  readonly raw?: JsonObject
}

export type StopReason = 'stop' | 'length' | 'toolUse' | 'error' | 'aborted'

/** Tokens of one request as the provider reported them; zeros when it reported nothing. */
export interface Usage {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly totalTokens: number
  readonly cost: Cost
}

export interface Cost {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly total: number
}

export const NO_USAGE: Usage = {
  input: 0,
  output: 0,
  cacheRead: 0,
  cacheWrite: 0,
  totalTokens: 0,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
}

export interface ToolResultMessage {
  readonly role: 'toolResult'
  readonly toolCallId: string
  readonly toolName: string
  readonly content: readonly UserBlock[]
  /** For people and programs; never sent to a model. */
  readonly details?: unknown
  readonly isError: boolean
  /** How long the tool worked; never sent to a model. */
  readonly durationMs?: number
  readonly timestamp: number
}

export interface CustomMessage {
  readonly role: 'custom'
  readonly customType: string
  readonly content: string | readonly UserBlock[]
  readonly display: boolean
  readonly details?: unknown
  readonly timestamp: number
}

export interface BashExecutionMessage {
  readonly role: 'bashExecution'
  readonly command: string
  readonly output: string
  readonly exitCode?: number
  readonly cancelled: boolean
  readonly truncated: boolean
  readonly fullOutputPath?: string
  readonly excludeFromContext?: boolean
  readonly timestamp: number
}

export interface SystemMessage {
  readonly role: 'system'
  readonly content: string | readonly UserBlock[]
  readonly timestamp: number
}

/** Built when reading, never stored as a message. */
export interface CompactionSummaryMessage {
  readonly role: 'compactionSummary'
  readonly summary: string
  readonly tokensBefore: number
  readonly timestamp: number
}

export interface BranchSummaryMessage {
  readonly role: 'branchSummary'
  readonly summary: string
  readonly fromId: string
  readonly timestamp: number
}

/** The text a person would read in a message's content. */
export function textOf(content: string | readonly { readonly type: string; readonly text?: string }[]): string {
  if (typeof content === 'string') return content
  return content.flatMap((block) => (block.type === 'text' && block.text !== undefined ? [block.text] : [])).join('\n')
}

export function toolCallsOf(message: AssistantMessage): readonly ToolCallBlock[] {
  return message.content.filter((block): block is ToolCallBlock => block.type === 'toolCall')
}

/** Behind an answer that the output limit cut short, for people. */
export const CUT_NOTICE = '\n\n[The answer was cut off at the model’s output limit. Say “continue” to go on.]'

/** The answer alone, for programs that learn in another way that it was cut. */
export function withoutCutNotice(text: string): string {
  return text.endsWith(CUT_NOTICE) ? text.slice(0, -CUT_NOTICE.length) : text
}
