import { type Log, silentLog } from '../base/log.ts'
import { type BuiltInToolParts, createBuiltInTools } from './built-in.ts'
import { type McpServerEntry, secretsOf, toMcpServers } from './mcp/config.ts'
import type { McpServerStatus } from './mcp/server.ts'
import { openMcpServers } from './mcp/servers.ts'
import { createToolRegistry, type ToolRegistry } from './registry.ts'
import { createToolRunner, type ToolRunner } from './run-tool-calls.ts'
import type { Tool } from './tool.ts'

/** The part of `agent` in the configuration that is about tools. */
export interface AgentToolsConfig {
  readonly tools: readonly string[]
  readonly tool_timeout_ms: number
  readonly parallel_tools: number
  readonly tool_output_chars: number
  readonly exec: { readonly allow: readonly string[] }
  readonly fetch: { readonly allow_hosts: readonly string[] }
  readonly mcp: { readonly servers: Readonly<Record<string, McpServerEntry>> }
}

export interface OpenToolsParts extends Omit<BuiltInToolParts, 'exec' | 'fetch'> {
  readonly log?: Log
  /** Of our own program, for MCP servers. */
  readonly version: string
  /** Of a program that uses us as a library. */
  readonly extra?: readonly Tool[]
  /** Values no error may show to a model; those of MCP servers are known. */
  readonly secrets?: readonly string[]
}

export interface OpenTools {
  readonly registry: ToolRegistry
  readonly runner: ToolRunner
  mcpStatus(): readonly McpServerStatus[]
  /** When every MCP server has started or failed once. Nobody has to wait for it. */
  settled(): Promise<void>
  close(): Promise<void>
}

/** Everything the configuration says about tools, running. Throws `CONFIG_INVALID` for a tool that does not exist. */
export function openTools(config: AgentToolsConfig, parts: OpenToolsParts): OpenTools {
  const { log = silentLog, extra = [], secrets = [] } = parts
  const builtIn = createBuiltInTools(config.tools, {
    ...parts,
    exec: config.exec,
    fetch: { allowHosts: config.fetch.allow_hosts },
  })
  const configs = toMcpServers(config.mcp.servers)
  const servers = openMcpServers(configs, { ...parts, log })
  const registry = createToolRegistry([...builtIn, ...extra], [servers.tools])
  return {
    registry,
    runner: createToolRunner({
      registry,
      clock: parts.clock,
      log,
      maxConcurrent: config.parallel_tools,
      limits: { timeoutMs: config.tool_timeout_ms, maxChars: config.tool_output_chars },
      secrets: [...secrets, ...Object.values(configs).flatMap(secretsOf)],
    }),
    mcpStatus: () => servers.status(),
    settled: () => servers.settled(),
    close: () => servers.close(),
  }
}
