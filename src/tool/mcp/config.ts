/** `agent.mcp.servers.<name>` of the configuration, environment variables already put in. */
export type McpServerConfig = (McpStdioServer | McpHttpServer) & McpServerLimits

export interface McpStdioServer {
  /** A program, started without a shell. */
  readonly command: string
  readonly args?: readonly string[]
  /** Added to PATH, HOME and the like; nothing else of ours is passed on. */
  readonly env?: Readonly<Record<string, string>>
  /** The workspace when it is not given. */
  readonly cwd?: string
}

export interface McpHttpServer {
  /** Streamable HTTP. */
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface McpServerLimits {
  /** Of one call. */
  readonly timeout_ms?: number
  /** Until the server has said hello and listed its tools. */
  readonly start_timeout_ms?: number
  readonly max_tools?: number
  /** Offer only these, by the server's own names. */
  readonly tools?: readonly string[]
}

export const MCP_DEFAULTS = {
  timeoutMs: 60_000,
  startTimeoutMs: 20_000,
  maxTools: 100,
  /** Of one message, in bytes. */
  maxMessageBytes: 8 * 1024 * 1024,
  firstRestartMs: 1_000,
  maxRestartMs: 5 * 60_000,
  /** A server that ran this long before it ended is started again as if for the first time. */
  healthyMs: 60_000,
  /** How long a server may take to end when it is asked to. */
  stopGraceMs: 2_000,
} as const

/** Values that must not show up in messages. */
export function secretsOf(config: McpServerConfig): readonly string[] {
  return Object.values('url' in config ? (config.headers ?? {}) : (config.env ?? {}))
}
