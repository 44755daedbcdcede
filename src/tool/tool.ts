import type { JsonObject } from '../base/json.ts'
import type { Log } from '../base/log.ts'
import type { SessionId, SessionKey } from '../core/ids.ts'
import type { UserBlock } from '../core/message.ts'

/** Something a model may call. A failed call is a result with `isError`, which the model can read; it never throws for that. */
export interface Tool {
  readonly name: string
  readonly description: string
  /** JSON Schema of an object; arguments are validated against it before `run` is called. */
  readonly parameters: JsonObject
  /** True when calls of one answer may run side by side. */
  readonly parallel: boolean
  /** True when running it twice does the same as running it once: it may be repeated after a crash. */
  readonly repeatable: boolean
  /** For tools with several actions: what holds for this call instead of the two flags above. Pure. */
  traitsOf?(callArguments: JsonObject): CallTraits
  /** Overrides the runner's time limit. */
  readonly timeoutMs?: number
  /** What `agent.approve` may call it besides its name: `mcp:<server>:<its name there>`. */
  readonly qualifiedName?: string
  /** Who offers it, for lists: `built-in`, `mcp:<server>` … */
  readonly source?: string
  run(call: ToolCall, signal: AbortSignal): Promise<ToolResult>
}

/** How a call may be run. */
export interface CallTraits {
  readonly parallel: boolean
  readonly repeatable: boolean
}

/** One call of a tool, as the model made it. */
export interface ToolCall {
  readonly id: string
  readonly arguments: JsonObject
  readonly session: SessionKey
  readonly sessionId: SessionId
  /** Who is spoken with, over all conversations. */
  readonly account?: string
  /** Whose the conversation is. */
  readonly owner?: string
  /** For lines about the call; it names the turn. */
  readonly log?: Log
}

/** What a call came to; `content` is what the model reads. */
export interface ToolResult {
  readonly content: readonly UserBlock[]
  readonly isError: boolean
  /** Files written, commands run …: shown in the cleanup note, never sent to the model. See `EffectDetails`. */
  readonly details?: JsonObject
}

/** The fields of `details` that say what a call changed outside the conversation; tools add others of their own. */
export interface EffectDetails extends JsonObject {
  /** Relative to the workspace. */
  readonly filesWritten?: readonly string[]
  readonly filesRemoved?: readonly string[]
  /** Files that go with the answer: `{ id, name, mimeType, bytes }` of each. */
  readonly attached?: readonly JsonObject[]
  /** Program names, without arguments. */
  readonly commandsRun?: readonly string[]
}
