import type { JsonObject } from '../base/json.ts'
import type { CleanupStrategy } from '../core/cleanup-strategy.ts'
import type { StepCleanupCompleted, StepCompleted } from '../core/event.ts'
import type { RunId, SessionId, SessionKey } from '../core/ids.ts'
import type { AssistantMessage, Message, ToolResultMessage, UserBlock } from '../core/message.ts'
import type { Outcome } from '../core/outcome.ts'

/** What each hook is given. Everything in it is a frozen copy: changing it has no effect but an error. */
export interface HookEvents {
  /** Once per user message, before its first request. */
  before_agent_start: { readonly prompt: string; readonly messages: readonly Message[] }
  /** Before a tool's result is stored. `isSynthetic`: it was made up to close a call that has no result. */
  tool_result_persist: {
    readonly toolName: string
    readonly toolCallId: string
    readonly message: ToolResultMessage
    readonly isSynthetic: boolean
  }
  /** Before any message is stored, tool results included (after `tool_result_persist`). */
  before_message_write: { readonly message: Message }
  before_tool_call: { readonly toolName: string; readonly toolCallId: string; readonly arguments: JsonObject }
  after_tool_call: {
    readonly toolName: string
    readonly toolCallId: string
    readonly arguments: JsonObject
    readonly content: readonly UserBlock[]
    readonly isError: boolean
    readonly durationMs: number
  }
  llm_input: {
    readonly provider: string
    readonly model: string
    readonly system: string
    readonly messages: readonly Message[]
    readonly tools: readonly string[]
    readonly round: number
  }
  llm_output: {
    readonly provider: string
    readonly model: string
    readonly message: Omit<AssistantMessage, 'timestamp'>
    readonly round: number
    readonly durationMs: number
  }
  /** After a step, before anything of it is hidden. `hide` is what the configured strategy would hide. */
  choose_cleanup: {
    readonly stepId: string
    readonly outcome: Outcome['kind']
    readonly strategy: CleanupStrategy
    /** The rounds that may be hidden, first one first. */
    readonly rounds: readonly CleanupRound[]
    readonly hide: readonly string[]
  }
  step_completed: Omit<StepCompleted, 'type'> & { readonly outcome: Outcome }
  step_cleanup_completed: Omit<StepCleanupCompleted, 'type'>
  before_compaction: { readonly tokensBefore: number; readonly messages: number; readonly reason: string }
  after_compaction: { readonly tokensBefore: number; readonly tokensAfter: number; readonly summary: string }
  before_reset: { readonly reason: 'reset' | 'delete' }
  session_start: { readonly resumed: boolean }
  session_end: { readonly reason: 'reset' | 'delete' | 'idle' | 'shutdown' }
  /** The service behind a channel cleared a conversation, also one that was never used. `sessionId` and `id` are its own. */
  session_cleared: {
    readonly channel: string
    readonly session: SessionKey
    readonly sessionId: string
    readonly id: string
  }
  /** Data that came through a channel, beside a text or alone; `id` is the message's own. */
  channel_data: { readonly channel: string; readonly id: string; readonly data: readonly JsonObject[] }
}

/** One model answer with its results; they are hidden together or not at all. */
export interface CleanupRound {
  /** Entry ids, the answer's first. */
  readonly entries: readonly string[]
  readonly tools: readonly string[]
  /** Every call failed. */
  readonly failed: boolean
}

/** The points of a conversation at which hooks are called. */
export type HookName = keyof HookEvents

/** What the modifying hooks may answer. The others observe: their answer is ignored. */
export interface HookResults {
  before_agent_start: {
    /** Put before the prompt, with a blank line between; those of several hooks are joined, highest priority first. */
    readonly prependContext?: string
    /** Replaces the system prompt of this message. */
    readonly systemPrompt?: string
    /** `<provider>/<model id>` for this message. */
    readonly model?: string
  }
  tool_result_persist: { readonly message?: ToolResultMessage }
  /** `block`: the message is not stored, and no hook of lower priority is asked. */
  before_message_write: { readonly block?: boolean; readonly message?: Message }
  /** `block`: the tool is not run; the model reads `reason` as its error. */
  before_tool_call: { readonly block?: boolean; readonly reason?: string; readonly arguments?: JsonObject }
  /** `hide` names entries and wins over `strategy`; what may not be hidden stays. `summary`: instead of the usual note. */
  choose_cleanup: {
    readonly strategy?: CleanupStrategy
    readonly hide?: readonly string[]
    readonly summary?: string
  }
}

export type ModifyingHook = keyof HookResults
export type ObservingHook = Exclude<HookName, ModifyingHook>

/** Where it happens. The signal is aborted when the gateway no longer waits for the handler. */
export interface HookContext {
  readonly session: SessionKey
  readonly sessionId: SessionId
  readonly run?: RunId
  /** `provider/model` that the turn asks, or asked first. */
  readonly model?: string
  readonly agentId?: string
}

export type HookAnswer<Name extends HookName> = Name extends ModifyingHook
  ? HookResults[Name] | undefined | void
  : unknown

export type HookHandler<Name extends HookName> = (
  event: HookEvents[Name],
  context: HookContext & { readonly signal: AbortSignal },
) => HookAnswer<Name> | Promise<HookAnswer<Name>>

/** What a hook module exports as `hooks`, and what the library API takes. */
export type HookModule = {
  readonly [Name in HookName]?: HookHandler<Name> | HookWithOptions<Name>
}

export interface HookWithOptions<Name extends HookName> {
  readonly handler: HookHandler<Name>
  /** Higher first; 0 when it is not given. Equal ones in the order they were registered. */
  readonly priority?: number
  readonly timeoutMs?: number
}

export const MODIFYING_HOOKS: readonly ModifyingHook[] = [
  'before_agent_start',
  'tool_result_persist',
  'before_message_write',
  'before_tool_call',
  'choose_cleanup',
]

export const HOOK_NAMES: readonly HookName[] = [
  ...MODIFYING_HOOKS,
  'after_tool_call',
  'llm_input',
  'llm_output',
  'step_completed',
  'step_cleanup_completed',
  'before_compaction',
  'after_compaction',
  'before_reset',
  'session_start',
  'session_end',
  'session_cleared',
  'channel_data',
]

/** Gives a module's hooks their types: `export const hooks = defineHooks({ … })`. */
export function defineHooks(hooks: HookModule): HookModule {
  return hooks
}
