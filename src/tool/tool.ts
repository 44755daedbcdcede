import type { JsonObject } from '../base/json.ts'
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
  run(call: ToolCall, signal: AbortSignal): Promise<ToolResult>
}

export interface ToolCall {
  readonly id: string
  readonly arguments: JsonObject
  readonly session: SessionKey
  readonly sessionId: SessionId
}

export interface ToolResult {
  readonly content: readonly UserBlock[]
  readonly isError: boolean
  /** Files written, commands run …: shown in the cleanup note, never sent to the model. */
  readonly details?: JsonObject
}
