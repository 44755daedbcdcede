import type { JsonObject } from '../base/json.ts'
import type { Config } from '../config/config.ts'
import { GatewayError } from '../core/errors.ts'
import { describeTools } from '../tool/describe.ts'
import { createBuiltInTools } from '../tool/built-in.ts'
import type { McpServerConfig } from '../tool/mcp/config.ts'
import type { McpServers } from '../tool/mcp/servers.ts'
import { createToolRegistry, type ToolRegistry } from '../tool/registry.ts'
import type { Tool } from '../tool/tool.ts'
import type { HomePaths } from './home.ts'
import type { Platform } from './platform.ts'
import { VERSION } from '../platform/own-folder.ts'
import { loadSchemaCompiler } from '../tool/validate.ts'
import { isStillAt, PathRefused } from '../tool/files/workspace.ts'
import { FileStore } from '../channel/files/file-store.ts'

export interface Toolbox {
  readonly registry: ToolRegistry
  readonly mcp: McpServers | undefined
  /** Why something the configuration names is not offered. */
  readonly notes: readonly string[]
  close(): Promise<void>
}

export interface ToolboxOptions {
  readonly config: Config
  readonly paths: HomePaths
  /** Of plugins and of the program around us. */
  readonly own: readonly Tool[]
}

/** The tools the configuration switches on, built-in and from MCP servers, and those that were brought along. */
export async function openTools(platform: Platform, { config, paths, own }: ToolboxOptions): Promise<Toolbox> {
  const mcp = await openMcp(platform, config, paths)
  const registry = createToolRegistry(
    [...builtInTools(platform, config, paths), ...own],
    mcp === undefined ? [] : [mcp.tools],
  )
  return { registry, mcp, notes: notesOn(config), close: async () => mcp?.close() }
}

function notesOn({ agent, a2a }: Config): readonly string[] {
  const isOff = (tool: string, list: object): boolean => agent.tools.includes(tool) && Object.keys(list).length === 0
  return [
    ...(isOff('exec', agent.exec.allow) ? ['exec is off: agent.exec.allow lists no program it may run'] : []),
    ...(isOff('a2a', a2a.agents) ? ['a2a is off: a2a.agents lists no agent it may call'] : []),
  ]
}

/** For `GET /api/tools` and `clew tools list`. No secrets. */
export function describeToolbox({ registry, mcp, notes }: Toolbox): JsonObject {
  return { tools: describeTools(registry).map((tool) => ({ ...tool })), servers: mcpStatus(mcp), notes }
}

/** The state of each MCP server, with the reason when it is not available and the tools that are not offered. */
export function mcpStatus(mcp: McpServers | undefined): readonly JsonObject[] {
  return (mcp?.status() ?? []).map((server) => ({ ...server, skipped: server.skipped.map((tool) => ({ ...tool })) }))
}

export function builtInTools(
  platform: Platform,
  { agent, a2a, limits }: Config,
  { workspace, memory, media }: HomePaths,
): readonly Tool[] {
  // The list of programs, or of agents, is the switch of these: naming them among the tools does nothing without one.
  const names = [
    ...agent.tools.filter((name) => name !== 'exec' && name !== 'a2a'),
    ...(agent.exec.allow.length > 0 ? ['exec'] : []),
    ...(Object.keys(a2a.agents).length > 0 ? ['a2a'] : []),
  ]
  const { clock, ids, files, http, commands } = platform
  return createBuiltInTools(names, {
    clock,
    ids,
    files,
    http,
    commands,
    workspace,
    memory,
    exec: agent.exec,
    sendFile: createSendFile(platform, { directory: media, maxBytes: limits.file_bytes }),
    a2a: { agents: a2a.agents, timeoutMs: a2a.timeout_ms, maxAnswerChars: a2a.answer_chars },
    fetch: { allowHosts: agent.fetch.allow_hosts },
  })
}

/** The MCP client is loaded only when a server is configured. */
async function openMcp(
  { clock, ids, http, commands, log }: Platform,
  config: Config,
  { workspace }: HomePaths,
): Promise<McpServers | undefined> {
  const servers = Object.entries(config.agent.mcp.servers).filter(([, server]) => server.enabled)
  if (servers.length === 0) return undefined
  const { openMcpServers } = await import('../tool/mcp/servers.ts')
  // A server may offer its tools at any time, also while messages are answered.
  loadSchemaCompiler()
  const settings = Object.fromEntries(servers.map(([name, server]) => [name, toMcpConfig(name, server)]))
  return openMcpServers(settings, {
    clock,
    ids,
    http,
    commands,
    workspace,
    version: VERSION,
    log: log.child({ part: 'mcp' }),
  })
}

type ServerSettings = Config['agent']['mcp']['servers'][string]

function toMcpConfig(
  name: string,
  { command, args, env, cwd, url, headers, tools, timeout_ms }: ServerSettings,
): McpServerConfig {
  const limits = { ...(tools === undefined ? {} : { tools }), ...(timeout_ms === undefined ? {} : { timeout_ms }) }
  if (command !== undefined) return { command, args, env, ...(cwd === undefined ? {} : { cwd }), ...limits }
  if (url !== undefined) return { url, headers, ...limits }
  throw new GatewayError('CONFIG_INVALID', `agent.mcp.servers.${name} needs a "command" or a "url"`, { name })
}

const BLOCK_BYTES = 64 * 1024

/** Copies a file of the workspace to the media, for the answer it goes with. */
export function createSendFile(
  { files, ids }: Platform,
  { directory, maxBytes }: { readonly directory: string; readonly maxBytes: number },
): (file: { readonly path: string; readonly name: string }, owner: string) => Promise<JsonObject> {
  const store = new FileStore({ files, ids, directory, maxBytes, maxTextBytes: 0 })
  return async ({ path, name }, owner) => {
    const { id, name: kept, mimeType, bytes } = await store.put(piecesOf(path), { name, mimeType: '' }, owner)
    // The path is what keeps the file as long as the transcript names it.
    return { id, name: kept, mimeType, bytes, path: store.pathOf(id, kept) }
  }

  async function* piecesOf(path: string): AsyncGenerator<Uint8Array> {
    const handle = await files.open(path, 'read')
    try {
      const stat = handle.stat()
      const { size } = stat
      // A program may have put a link in its place since it was looked at.
      if (stat.kind !== 'file' || !(await isStillAt(files, path, stat)))
        throw new PathRefused('the file changed while it was opened')
      if (size > maxBytes) throw new GatewayError('FRAME_TOO_LARGE', `the file is larger than ${maxBytes} bytes`)
      for (let at = 0; at < size; at += BLOCK_BYTES) yield await handle.read(at, BLOCK_BYTES)
    } finally {
      await handle.close()
    }
  }
}
