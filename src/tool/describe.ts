import type { JsonObject } from '../base/json.ts'
import { isRecord } from '../base/json.ts'
import type { ToolRegistry } from './registry.ts'

export interface ToolDescription {
  readonly name: string
  readonly source: string
  readonly description: string
  /** Names of the arguments, required ones first, optional ones with a question mark. */
  readonly arguments: readonly string[]
  readonly parallel: boolean
  readonly repeatable: boolean
  readonly timeoutMs?: number
}

/** For `clew tools list`: what the model is offered, in the order it is offered. */
export function describeTools(registry: ToolRegistry): readonly ToolDescription[] {
  return registry.tools().map(({ tool }) => ({
    name: tool.name,
    source: tool.source ?? 'library',
    description: tool.description,
    arguments: argumentNames(tool.parameters),
    parallel: tool.parallel,
    repeatable: tool.repeatable,
    ...(tool.timeoutMs !== undefined && { timeoutMs: tool.timeoutMs }),
  }))
}

function argumentNames(parameters: JsonObject): readonly string[] {
  const required = Array.isArray(parameters['required']) ? parameters['required'] : []
  const names = isRecord(parameters['properties']) ? Object.keys(parameters['properties']) : []
  const isRequired = (name: string): boolean => required.includes(name)
  return [...names.filter(isRequired), ...names.filter((name) => !isRequired(name)).map((name) => `${name}?`)]
}
