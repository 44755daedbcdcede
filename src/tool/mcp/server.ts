import { sleep, deferred, type Deferred } from '../../base/async.ts'
import { backoffDelay } from '../../base/clock.ts'
import type { Ids } from '../../base/ids.ts'
import type { JsonObject } from '../../base/json.ts'
import type { Log } from '../../base/log.ts'
import { runSlices } from '../../base/loop-work.ts'
import type { RegisteredTool } from '../registry.ts'
import { errorResult } from '../results.ts'
import { safeErrorText } from '../safe-error-text.ts'
import type { Tool, ToolResult } from '../tool.ts'
import { MCP_DEFAULTS, type McpServerConfig, secretsOf } from './config.ts'
import { connectMcp, type McpConnection, type McpPorts } from './connection.ts'
import { toToolResult } from './to-result.ts'
import { type OfferedTools, type SkippedTool, toTools } from './to-tools.ts'
import { within } from './within.ts'

export interface McpServerDeps extends McpPorts {
  readonly ids: Ids
  readonly log: Log
}

/** For `clew status` and `clew tools list`. No secrets. */
export interface McpServerStatus {
  readonly server: string
  readonly state: 'starting' | 'ready' | 'waiting' | 'closed'
  /** How many the model is offered. */
  readonly tools: number
  readonly skipped: readonly SkippedTool[]
  /** Attempts since it last ran well. */
  readonly failures: number
  /** Why it is not available. */
  readonly reason?: string
}

const RESTART = { firstMs: MCP_DEFAULTS.firstRestartMs, maxMs: MCP_DEFAULTS.maxRestartMs, jitter: 0.25 }

/** After this many failed attempts in a row, about half a minute, its tools are no longer offered. */
const FAILURES_BEFORE_WITHDRAWAL = 6
/** After this many calls in a row without an answer it is started again. */
const MAX_UNANSWERED = 3

/**
 * One configured server, kept running. It is started at once, started again with growing pauses when it ends, and asked
 * for its tools anew when it says they changed. Whatever it does, a call ends in time with a result.
 */
export class McpServer {
  readonly name: string
  readonly #config: McpServerConfig
  readonly #deps: McpServerDeps
  readonly #stop = new AbortController()
  readonly #running: Promise<void>
  #state: McpServerStatus['state'] = 'starting'
  #offered: OfferedTools = { tools: [], skipped: [] }
  #connection: McpConnection | undefined
  #failures = 0
  #unanswered = 0
  #problem: string | undefined
  /** The reason that the log has already. */
  #logged: string | undefined
  /** Settles when the attempt under way, or the next one, has succeeded or failed. */
  #attempt: Deferred<boolean> = deferred()
  #wake = new AbortController()
  #refreshing: Promise<void> | undefined
  #refreshAgain = false

  constructor(name: string, config: McpServerConfig, deps: McpServerDeps) {
    this.name = name
    this.#config = config
    this.#deps = deps
    this.#running = this.#run()
  }

  tools(): readonly RegisteredTool[] {
    return this.#offered.tools
  }

  status(): McpServerStatus {
    return {
      server: this.name,
      state: this.#state,
      tools: this.#offered.tools.length,
      skipped: this.#offered.skipped,
      failures: this.#failures,
      ...(this.#problem !== undefined && { reason: this.#problem }),
    }
  }

  /** True once it is ready, false when the attempt under way has failed. */
  async settled(): Promise<boolean> {
    return this.#state === 'ready' || this.#attempt.promise
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error('the server is being closed'))
    this.#wake.abort()
    await this.#running
    await this.#refreshing
  }

  async #run(): Promise<void> {
    const { clock } = this.#deps
    while (!this.#stop.signal.aborted) {
      const startedAt = clock.monotonic()
      await this.#serve()
      if (this.#stop.signal.aborted) break
      if (clock.monotonic() - startedAt >= MCP_DEFAULTS.healthyMs) this.#failures = 0
      this.#failures++
      if (this.#failures >= FAILURES_BEFORE_WITHDRAWAL) this.#offered = { ...this.#offered, tools: [] }
      await this.#pause()
    }
    this.#state = 'closed'
    this.#attempt.resolve(false)
  }

  /** One life of the server, from its start to its end. Never throws. */
  async #serve(): Promise<void> {
    this.#state = 'starting'
    const attempt = this.#attempt
    const startTimeoutMs = this.#config.start_timeout_ms ?? MCP_DEFAULTS.startTimeoutMs
    let connecting: Promise<McpConnection> | undefined
    try {
      const connection = await within(this.#deps.clock, startTimeoutMs, this.#stop.signal, (signal) => {
        connecting = connectMcp(this.#config, this.#deps, () => this.#refresh(), signal)
        return connecting
      })
      this.#connection = connection
      await this.#list(connection, startTimeoutMs)
      this.#state = 'ready'
      this.#problem = undefined
      this.#logged = undefined
      attempt.resolve(true)
      const reason = await this.#endOf(connection)
      this.#problem = reason === undefined ? 'the connection ended' : this.#safe(new Error(reason))
    } catch (error) {
      this.#problem = this.#safe(error)
    } finally {
      this.#connection = undefined
      this.#attempt = deferred()
      attempt.resolve(false)
      // Also when we gave up waiting: a program that was asked to end must not go on running.
      await connecting?.then(
        (connection) => connection.close(),
        () => undefined,
      )
    }
    if (!this.#stop.signal.aborted) {
      const reason = this.#problem ?? 'unknown'
      const facts = { server: this.name, failures: this.#failures + 1, reason }
      if (reason === this.#logged) this.#deps.log.debug('an MCP server is still not available', facts)
      else this.#deps.log.warn('an MCP server is not available; it is tried again with growing pauses', facts)
      this.#logged = reason
    }
  }

  async #endOf(connection: McpConnection): Promise<string | undefined> {
    const stopped = new Promise<undefined>((resolve) =>
      this.#stop.signal.addEventListener('abort', () => resolve(undefined), { once: true }),
    )
    return Promise.race([connection.closed, stopped])
  }

  async #pause(): Promise<void> {
    this.#state = 'waiting'
    this.#wake = new AbortController()
    const delayMs = backoffDelay(this.#failures - 1, RESTART, this.#deps.ids)
    await sleep(this.#deps.clock, delayMs, this.#wake.signal).catch(() => undefined)
  }

  async #list(connection: McpConnection, timeoutMs: number): Promise<void> {
    const maxTools = this.#config.max_tools ?? MCP_DEFAULTS.maxTools
    const definitions = await within(this.#deps.clock, timeoutMs, this.#stop.signal, (signal) =>
      connection.listTools(maxTools, signal),
    )
    const call =
      (tool: string): Tool['run'] =>
      ({ arguments: given }, signal) =>
        this.#call(tool, given, signal)
    this.#offered = await runSlices(toTools(this.name, this.#config, definitions, call), 'mcp', () =>
      sleep(this.#deps.clock, 0, this.#stop.signal),
    )
    this.#reportSkipped()
  }

  #reportSkipped(): void {
    const { skipped } = this.#offered
    if (skipped.length === 0) return
    const named = skipped.slice(0, 10).map(({ tool, problem }) => `${tool}: ${problem}`)
    this.#deps.log.warn('some tools of an MCP server are not offered', {
      server: this.name,
      skipped: skipped.length,
      reasons: named,
    })
  }

  /** One at a time, and once more when something changed meanwhile: a server may announce changes as often as it likes. */
  #refresh(): void {
    this.#refreshAgain = true
    this.#refreshing ??= this.#refreshAll().finally(() => {
      this.#refreshing = undefined
    })
  }

  async #refreshAll(): Promise<void> {
    while (this.#refreshAgain && !this.#stop.signal.aborted) {
      this.#refreshAgain = false
      const connection = this.#connection
      if (connection === undefined) return
      try {
        await this.#list(connection, this.#config.timeout_ms ?? MCP_DEFAULTS.timeoutMs)
        await sleep(this.#deps.clock, MCP_DEFAULTS.firstRestartMs, this.#stop.signal)
      } catch {
        this.#deps.log.warn('the tools of an MCP server could not be listed again', { server: this.name })
      }
    }
  }

  async #call(tool: string, callArguments: JsonObject, signal: AbortSignal): Promise<ToolResult> {
    const connection = await this.#connected(signal)
    if (connection === undefined) return errorResult(`The server "${this.name}" is not available${this.#because()}.`)
    const timeoutMs = this.#config.timeout_ms ?? MCP_DEFAULTS.timeoutMs
    try {
      const answer = await within(this.#deps.clock, timeoutMs, signal, (stop) =>
        connection.callTool(tool, callArguments, stop),
      )
      this.#unanswered = 0
      if (answer.kind === 'result') return toToolResult(answer.result)
      return errorResult(`The server "${this.name}" refused the call: ${this.#safe(new Error(answer.message))}`)
    } catch (error) {
      signal.throwIfAborted()
      this.#distrust(connection)
      return errorResult(
        `The server "${this.name}" did not answer: ${this.#safe(error)}. What it had begun may have had effects.`,
      )
    }
  }

  /** Over HTTP nothing else shows that a connection is broken; over stdio one slow call says little. */
  #distrust(connection: McpConnection): void {
    this.#unanswered++
    if ('url' in this.#config || this.#unanswered >= MAX_UNANSWERED) {
      this.#unanswered = 0
      void connection.close()
    }
  }

  #safe(error: unknown): string {
    return safeErrorText(error, secretsOf(this.#config))
  }

  /** A server that is down gets one immediate attempt for a call that needs it, within the time it has to start. */
  async #connected(signal: AbortSignal): Promise<McpConnection | undefined> {
    if (this.#state === 'ready' && this.#connection !== undefined) return this.#connection
    if (this.#state === 'closed') return undefined
    const attempt = this.#attempt.promise
    this.#wake.abort()
    const startTimeoutMs = this.#config.start_timeout_ms ?? MCP_DEFAULTS.startTimeoutMs
    await within(this.#deps.clock, startTimeoutMs * 2, signal, () => attempt).catch(() => {
      signal.throwIfAborted()
    })
    return this.#connection
  }

  #because(): string {
    return this.#problem === undefined ? '' : ` (${this.#problem})`
  }
}
