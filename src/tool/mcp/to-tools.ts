import { createHash } from 'node:crypto'
import { isRecord, type JsonObject } from '../../base/json.ts'
import type { Slices } from '../../base/loop-work.ts'
import { capText } from '../cap-output.ts'
import type { RegisteredTool } from '../registry.ts'
import { safeErrorText } from '../safe-error-text.ts'
import type { Tool } from '../tool.ts'
import { compileArguments } from '../validate.ts'
import { MCP_DEFAULTS, type McpServerConfig } from './config.ts'

const MAX_CHARS = 64
const HASH_CHARS = 8

/**
 * `<server>__<tool>`, in the letters all model APIs accept. A name that had to be changed, cut, or could be read as that
 * of another server carries a hash of the original, so that two tools never share one and a name never depends on the
 * order in which servers answer.
 */
export function mcpToolName(server: string, tool: string): string {
  const plain = `${server}__${tool}`.replaceAll(/[^a-zA-Z0-9_-]/g, '_')
  const named = /^[a-zA-Z]/.test(plain) ? plain : `mcp_${plain}`
  const isOriginal = named === `${server}__${tool}` && !server.includes('__') && named.length <= MAX_CHARS
  if (isOriginal) return named
  const hash = createHash('sha256')
    .update(JSON.stringify([server, tool]))
    .digest('hex')
    .slice(0, HASH_CHARS)
  return `${named.slice(0, MAX_CHARS - HASH_CHARS - 1)}_${hash}`
}

export interface OfferedTools {
  readonly tools: readonly RegisteredTool[]
  /** Those that cannot be offered, and why. */
  readonly skipped: readonly SkippedTool[]
}

export interface SkippedTool {
  readonly tool: string
  readonly problem: string
}

const MAX_DESCRIPTION_CHARS = 4_000
/** All definitions of one server: they are part of every request. */
const MAX_SERVER_CHARS = 512 * 1024
/** Of definitions between two stops: their check takes about 5 ms. */
const SLICE_CHARS = 8 * 1024

/** Each definition stands for itself: one that lies is left out and named, the others stay. */
export function* toTools(
  server: string,
  config: McpServerConfig,
  definitions: readonly unknown[],
  call: (tool: string) => Tool['run'],
): Slices<OfferedTools> {
  const tools = new Map<string, RegisteredTool>()
  const skipped: SkippedTool[] = []
  let chars = 0
  let stopAt = SLICE_CHARS
  for (const definition of definitions) {
    const name = isRecord(definition) && typeof definition['name'] === 'string' ? definition['name'] : ''
    if (config.tools !== undefined && !config.tools.includes(name)) continue
    try {
      if (!isRecord(definition) || name === '') throw new Error('it has no name')
      chars += JSON.stringify(definition).length
      if (chars > MAX_SERVER_CHARS) throw new Error(`the server describes its tools with too much text`)
      const tool = toTool(server, name, config, definition, call(name))
      if (tools.has(tool.tool.name)) throw new Error('the server lists it twice')
      tools.set(tool.tool.name, tool)
    } catch (error) {
      skipped.push({ tool: capText(name, 100), problem: safeErrorText(error) })
    }
    if (chars < stopAt) continue
    stopAt = chars + SLICE_CHARS
    yield
  }
  return { tools: [...tools.values()], skipped }
}

function toTool(
  server: string,
  name: string,
  config: McpServerConfig,
  definition: Record<string, unknown>,
  run: Tool['run'],
): RegisteredTool {
  if (demandsTask(definition)) throw new Error('it runs only as a task, and tasks are not supported')
  const parameters = schemaOf(definition['inputSchema'])
  const hints = isRecord(definition['annotations']) ? definition['annotations'] : {}
  const isReadOnly = hints['readOnlyHint'] === true
  const description = typeof definition['description'] === 'string' ? definition['description'] : ''
  return {
    check: compileArguments(parameters, { untrusted: true }),
    tool: {
      name: mcpToolName(server, name),
      source: `mcp:${server}`,
      qualifiedName: `mcp:${server}:${name}`,
      description: capText(description, MAX_DESCRIPTION_CHARS),
      parameters,
      parallel: isReadOnly,
      repeatable: isReadOnly || hints['idempotentHint'] === true,
      // The server's own limit comes first and keeps the connection; this one is for a connection that hangs.
      timeoutMs:
        (config.timeout_ms ?? MCP_DEFAULTS.timeoutMs) +
        (config.start_timeout_ms ?? MCP_DEFAULTS.startTimeoutMs) +
        1_000,
      run,
    },
  }
}

/** `execution.taskSupport` of the protocol's version 2025-11-25; a plain call of such a tool always fails. */
function demandsTask({ execution }: Record<string, unknown>): boolean {
  return isRecord(execution) && execution['taskSupport'] === 'required'
}

/** Model APIs reject the dialect's name; a missing schema means a tool without arguments. */
function schemaOf(schema: unknown): JsonObject {
  if (schema === undefined) return { type: 'object', properties: {} }
  if (!isSchema(schema)) throw new Error('its schema is not an object')
  return schema['properties'] === undefined ? { ...schema, properties: {} } : schema
}

/** It came out of `JSON.parse`. */
function isSchema(value: unknown): value is JsonObject {
  return isRecord(value)
}
