import { type Log, silentLog } from '../../base/log.ts'
import type { ToolSource } from '../registry.ts'
import type { McpServerConfig } from './config.ts'
import { McpServer, type McpServerDeps, type McpServerStatus } from './server.ts'

export interface McpServers {
  /** For `createToolRegistry(tools, [servers.tools])`. */
  readonly tools: ToolSource
  status(): readonly McpServerStatus[]
  /** Resolves when every server has started or failed its first attempt; bounded by their start timeouts. */
  settled(): Promise<void>
  /** Ends every server with everything it started. */
  close(): Promise<void>
}

/** Starts all servers side by side and returns at once: a slow or broken server delays no other. */
export function openMcpServers(
  configs: Readonly<Record<string, McpServerConfig>>,
  deps: Omit<McpServerDeps, 'log'> & { readonly log?: Log },
): McpServers {
  const log = deps.log ?? silentLog
  const servers = Object.entries(configs).map(([name, config]) => new McpServer(name, config, { ...deps, log }))
  return {
    tools: () => servers.flatMap((server) => server.tools()),
    status: () => servers.map((server) => server.status()),
    settled: async () => {
      await Promise.all(servers.map((server) => server.settled()))
    },
    close: async () => {
      await Promise.all(servers.map((server) => server.close()))
    },
  }
}
