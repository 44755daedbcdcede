import { z } from 'zod'
import type { JsonObject } from '../base/json.ts'
import { silentLog, type Log } from '../base/log.ts'
import { errorResult, textResult } from './results.ts'
import type { Tool } from './tool.ts'

/** What a tool is given besides its input. */
export interface ToolContext {
  /** Aborted when the user stops the turn or the time limit has passed: end soon after. */
  readonly signal: AbortSignal
  /** The conversation that calls: its key, and the id of its transcript. */
  readonly session: { readonly key: string; readonly id: string }
  /** Log lines of this tool. Sizes and ids, never what people wrote. */
  readonly log: Log
}

/** A tool as `defineTool` takes it. */
export interface ToolDefinition<Input extends z.ZodType> {
  /** A letter, then letters, digits, `_` and `-`; at most 64. */
  readonly name: string
  /** Tells the model what the tool does and when to use it. */
  readonly description: string
  /** A zod schema of an object. The model gets it as JSON Schema; `run` gets what it parsed. */
  readonly input: Input
  /** Calls of one answer may run side by side. False unless given. */
  readonly parallel?: boolean
  /** Running it twice does the same as running it once: it is repeated after a crash. False unless given. */
  readonly repeatable?: boolean
  /** Instead of `agent.tool_timeout_ms`. */
  readonly timeoutMs?: number
  /** May be async. A text is shown to the model as it is, anything else as JSON. What it throws becomes a result that failed. */
  run(input: z.output<Input>, context: ToolContext): unknown
}

/** Makes a tool out of a zod schema and a function. Throws at once when it cannot be used. */
export function defineTool<Input extends z.ZodType>(definition: ToolDefinition<Input>): Tool {
  const { name, description, input, parallel = false, repeatable = false, timeoutMs } = definition
  if (typeof definition.run !== 'function') throw new TypeError(`the tool "${name}" has no function run`)
  return {
    name,
    description,
    parameters: toParameters(name, input),
    parallel,
    repeatable,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    async run(call, signal) {
      const parsed = await input.safeParseAsync(call.arguments)
      if (!parsed.success) return errorResult(`The arguments are not valid: ${z.prettifyError(parsed.error)}`)
      const session = { key: call.session, id: call.sessionId }
      const answer: unknown = await definition.run(parsed.data, { signal, session, log: call.log ?? silentLog })
      return textResult(typeof answer === 'string' ? answer : (JSON.stringify(answer) ?? 'Done.'))
    },
  }
}

function toParameters(name: string, input: z.ZodType): JsonObject {
  if (typeof input !== 'object' || !('_zod' in input))
    throw new TypeError(`the input of the tool "${name}" must be a schema of zod 4`)
  const { $schema: _, ...parameters } = z.toJSONSchema(input, { io: 'input' }) as unknown as JsonObject
  if (parameters['type'] !== 'object')
    throw new TypeError(`the input of the tool "${name}" must be an object: z.object(…)`)
  return parameters
}
