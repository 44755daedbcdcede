import type { JsonObject } from '../base/json.ts'
import { GatewayError } from '../core/errors.ts'
import type { CallTraits, Tool } from './tool.ts'
import { compileArguments, type CheckArguments } from './validate.ts'

/** The names all four model APIs accept. */
const TOOL_NAME = /^[a-zA-Z][a-zA-Z0-9_-]{0,63}$/

export interface ToolRegistry {
  /** What a model is offered, sorted by name so that the same tools give the same request. */
  specs(): readonly ToolSpec[]
  find(name: string): RegisteredTool | undefined
  tools(): readonly RegisteredTool[]
}

export interface ToolSpec {
  readonly name: string
  readonly description: string
  readonly parameters: JsonObject
}

export interface RegisteredTool {
  readonly tool: Tool
  readonly check: CheckArguments
}

/** More tools may come and go while the program runs, as those of MCP servers do. Asked anew at every request. */
export type ToolSource = () => readonly RegisteredTool[]

/** Throws for a name no model accepts, a name used twice, or a schema that does not compile: these are our own tools. */
export function createToolRegistry(tools: readonly Tool[], sources: readonly ToolSource[] = []): ToolRegistry {
  const own = new Map<string, RegisteredTool>()
  for (const tool of tools) {
    if (!TOOL_NAME.test(tool.name)) throw invalid(tool, `"${tool.name}" is not a usable tool name`)
    if (own.has(tool.name)) throw invalid(tool, `two tools are called "${tool.name}"`)
    own.set(tool.name, { tool, check: compileArguments(tool.parameters, { own: tool.source === 'built-in' }) })
  }
  /** Ours win: a server cannot replace a built-in tool by using its name. */
  const all = (): Map<string, RegisteredTool> => {
    const names = new Map<string, RegisteredTool>()
    for (const source of sources) for (const entry of source()) names.set(entry.tool.name, entry)
    for (const [name, entry] of own) names.set(name, entry)
    return names
  }
  const sorted = (): RegisteredTool[] =>
    [...all().values()].sort((a, b) => (a.tool.name < b.tool.name ? -1 : a.tool.name > b.tool.name ? 1 : 0))
  return {
    specs: () => sorted().map(({ tool: { name, description, parameters } }) => ({ name, description, parameters })),
    find: (name) => own.get(name) ?? all().get(name),
    tools: sorted,
  }
}

/** A tool of the user's own may throw here: then nothing is taken for granted of the call. */
export function traitsOf(tool: Tool, callArguments: JsonObject): CallTraits {
  try {
    return tool.traitsOf?.(callArguments) ?? { parallel: tool.parallel, repeatable: tool.repeatable }
  } catch {
    return { parallel: false, repeatable: false }
  }
}

function invalid({ name, source }: Tool, problem: string): GatewayError {
  return new GatewayError('PLUGIN_INVALID', problem, { name, source })
}
