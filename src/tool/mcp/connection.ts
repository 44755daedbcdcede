import type * as Sdk from '@modelcontextprotocol/client'
import { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import type { Commands } from '../../base/commands.ts'
import { deferred, NEVER } from '../../base/async.ts'
import type { HttpClient } from '../../base/http.ts'
import type { JsonObject } from '../../base/json.ts'
import { MCP_DEFAULTS, type McpServerConfig } from './config.ts'
import { createHttpFetch } from './http-fetch.ts'
import { StdioTransport } from './stdio-transport.ts'
import { within } from './within.ts'

export interface McpPorts {
  readonly clock: Clock
  readonly commands: Commands
  readonly http: HttpClient
  /** Where programs run that name no folder of their own. */
  readonly workspace: string
  /** What we call ourselves to servers. */
  readonly version: string
}

export interface McpConnection {
  /** As the server sent them, unchecked. */
  listTools(maxTools: number, signal: AbortSignal): Promise<readonly unknown[]>
  callTool(name: string, callArguments: JsonObject, signal: AbortSignal): Promise<McpAnswer>
  /** Settles when the connection is over, with the reason when it was the other side's. Not redacted. */
  readonly closed: Promise<string | undefined>
  close(): Promise<void>
}

/** `refused`: the server answered with an error. Anything else that goes wrong is thrown and ends the connection. */
export type McpAnswer =
  | { readonly kind: 'result'; readonly result: Readonly<Record<string, unknown>> }
  | { readonly kind: 'refused'; readonly message: string }

const MAX_PAGES = 50
const END_SESSION_MS = 1_000

/**
 * Looser than the SDK's: one tool that lies about itself must not cost us the others. Its `callTool` would also run the
 * patterns of the server's output schemas, which are not used here.
 */
const toolsPage = z.looseObject({ tools: z.array(z.unknown()), nextCursor: z.string().optional() })
const anyResult = z.looseObject({})

/** Loads the SDK at the first use: a gateway without servers never pays for it. */
export async function connectMcp(
  config: McpServerConfig,
  ports: McpPorts,
  onToolsChanged: () => void,
  signal: AbortSignal,
): Promise<McpConnection> {
  const sdk = await import('@modelcontextprotocol/client')
  signal.throwIfAborted()
  const startTimeoutMs = config.start_timeout_ms ?? MCP_DEFAULTS.startTimeoutMs
  // The caller has its own, exact limit; the SDK's only keeps requests from staying open for ever.
  const timeoutMs = Math.max(startTimeoutMs, config.timeout_ms ?? MCP_DEFAULTS.timeoutMs) + 1_000
  const transport = 'url' in config ? httpTransport(sdk, config, ports, timeoutMs) : stdioTransport(config, ports)
  const client = new sdk.Client(
    { name: 'clew', version: ports.version },
    {
      capabilities: {},
      listChanged: { tools: { autoRefresh: false, debounceMs: 200, onChanged: onToolsChanged } },
      versionNegotiation: { mode: 'url' in config ? 'auto' : 'legacy' },
    },
  )
  const closed = deferred<string | undefined>()
  let problem: Error | undefined
  Object.assign(client, {
    onclose: () => closed.resolve(transport instanceof StdioTransport ? transport.endReason : undefined),
    onerror: (error: Error) => {
      problem ??= error
    },
  })
  const onAbort = (): void => void transport.close().catch(() => undefined)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    await client.connect(transport, { signal, timeout: timeoutMs })
  } catch (error) {
    await transport.close().catch(() => undefined)
    signal.throwIfAborted()
    throw problem ?? error
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
  return {
    closed: closed.promise,
    close: async () => {
      if (transport instanceof sdk.StreamableHTTPClientTransport) await endSession(transport, ports.clock)
      await client.close().catch(() => undefined)
      closed.resolve(undefined)
    },
    listTools: (maxTools, listSignal) => listAll(client, maxTools, timeoutMs, listSignal),
    callTool: async (name, callArguments, callSignal) => {
      const request = { method: 'tools/call', params: { name, arguments: { ...callArguments } } }
      try {
        const result = await client.request(request, anyResult, { signal: callSignal, timeout: timeoutMs })
        return { kind: 'result', result }
      } catch (error) {
        if (error instanceof sdk.ProtocolError) return { kind: 'refused', message: error.message }
        throw error
      }
    },
  }
}

/** Politeness only: a server that keeps its sessions would otherwise keep ours for ever. */
async function endSession(transport: Sdk.StreamableHTTPClientTransport, clock: Clock): Promise<void> {
  await within(clock, END_SESSION_MS, NEVER, () => transport.terminateSession()).catch(() => undefined)
}

async function listAll(
  client: Sdk.Client,
  maxTools: number,
  timeout: number,
  signal: AbortSignal,
): Promise<readonly unknown[]> {
  const tools: unknown[] = []
  let cursor: string | undefined
  for (let page = 0; page < MAX_PAGES && tools.length < maxTools; page++) {
    const params = cursor === undefined ? {} : { cursor }
    const answer = await client.request({ method: 'tools/list', params }, toolsPage, { signal, timeout })
    tools.push(...answer.tools)
    cursor = answer.nextCursor
    if (cursor === undefined) break
  }
  return tools.slice(0, maxTools)
}

function httpTransport(
  sdk: typeof Sdk,
  config: Extract<McpServerConfig, { readonly url: string }>,
  ports: McpPorts,
  timeoutMs: number,
): Sdk.StreamableHTTPClientTransport {
  return new sdk.StreamableHTTPClientTransport(new URL(config.url), {
    fetch: createHttpFetch({
      http: ports.http,
      clock: ports.clock,
      timeoutMs,
      maxAnswerBytes: MCP_DEFAULTS.maxMessageBytes,
    }),
    requestInit: { headers: { ...config.headers } },
  })
}

function stdioTransport(
  config: Extract<McpServerConfig, { readonly command: string }>,
  ports: McpPorts,
): StdioTransport {
  return new StdioTransport({
    commands: ports.commands,
    clock: ports.clock,
    command: {
      program: config.command,
      arguments: config.args ?? [],
      directory: config.cwd ?? ports.workspace,
      createDirectory: config.cwd === undefined,
      environment: { ...ports.commands.baseEnvironment(), ...config.env },
    },
    maxMessageBytes: MCP_DEFAULTS.maxMessageBytes,
    stopGraceMs: MCP_DEFAULTS.stopGraceMs,
  })
}
