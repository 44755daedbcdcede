import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { sleep } from '../../base/async.ts'
import type { Clock } from '../../base/clock.ts'
import type { CommandEnd, CommandLine, Commands, RunningCommand } from '../../base/commands.ts'
import { jsonExcess, isRecord, parseJson } from '../../base/json.ts'
import { loopWork } from '../../base/loop-work.ts'
import { FloodGuard, type FloodLimits } from './flood-guard.ts'

export interface StdioTransportOptions {
  readonly commands: Commands
  readonly clock: Clock
  readonly command: CommandLine
  readonly maxMessageBytes: number
  readonly stopGraceMs: number
  readonly flood?: FloodLimits
}

const LEAVE_MS = 500
/** Of what a program wrote to stderr last. */
const STDERR_BYTES = 2_048
const STDERR_LINES = 3

/**
 * JSON messages, one per line, to and from a program of our own. Other than the SDK's transport it ends the program with
 * everything it started, bounds what it may send, and keeps the last of its stderr for the reason of its end.
 */
export class StdioTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: NonNullable<Transport['onmessage']>
  readonly #options: StdioTransportOptions
  readonly #guard: FloodGuard
  #running: RunningCommand | undefined
  #pieces: Uint8Array[] = []
  #pendingBytes = 0
  #closing: Promise<void> | undefined
  #stderr = Buffer.alloc(0)
  #endReason: string | undefined

  constructor(options: StdioTransportOptions) {
    this.#options = options
    this.#guard = new FloodGuard(options.clock, options.flood)
  }

  async start(): Promise<void> {
    const running = this.#options.commands.start(this.#options.command, {
      onStdout: (bytes) => this.#receive(bytes),
      onStderr: (bytes) => this.#takeStderr(bytes),
    })
    this.#running = running
    void running.ended.then((end) => {
      if (this.#closing === undefined) this.#endBecause(describeEnd(end))
      void this.close()
    })
  }

  /** Why it is over, when that was not our wish: with what the program said last. Not redacted. */
  get endReason(): string | undefined {
    if (this.#endReason === undefined) return undefined
    const said = lastLines(this.#stderr.toString('utf8'))
    return said === '' ? this.#endReason : `${this.#endReason}; it said: ${said}`
  }

  #endBecause(reason: string): void {
    this.#endReason ??= reason
    this.onerror?.(new Error(this.endReason))
  }

  #takeStderr(bytes: Uint8Array): void {
    this.#stderr = Buffer.concat([this.#stderr, bytes]).subarray(-STDERR_BYTES)
    this.#checkFlood(bytes.length, 0)
  }

  async send(message: JSONRPCMessage): Promise<void> {
    if (this.#running === undefined || this.#closing !== undefined) throw new Error('the server is not running')
    const running = this.#running
    try {
      await running.write(`${JSON.stringify(message)}\n`)
    } catch (error) {
      // A program that takes no input has usually ended: why it ended says more than the broken pipe.
      await this.#endsByItself(running)
      throw this.endReason === undefined ? error : new Error(this.endReason, { cause: error })
    }
  }

  /** Resolves when the program and all it started are gone. */
  close(): Promise<void> {
    this.#closing ??= this.#end(true)
    return this.#closing
  }

  /** The end of its input is how a server is asked to leave; the signal is for those who do not listen. */
  async #end(isPolite: boolean): Promise<void> {
    this.#running?.endInput()
    if (isPolite && this.#running !== undefined) await this.#endsByItself(this.#running)
    await this.#running?.stop(this.#options.stopGraceMs)
    this.#pieces = []
    this.onclose?.()
  }

  async #endsByItself(running: RunningCommand): Promise<void> {
    const ended = new AbortController()
    const limit = sleep(this.#options.clock, LEAVE_MS, ended.signal).catch(() => undefined)
    await Promise.race([running.ended, limit])
    ended.abort()
  }

  #receive(bytes: Uint8Array): void {
    let from = 0
    for (let end = bytes.indexOf(10); end !== -1; end = bytes.indexOf(10, from)) {
      this.#pieces.push(bytes.subarray(from, end))
      from = end + 1
      loopWork('mcp', () => this.#finishLine())
      if (this.#closing !== undefined) return
    }
    const rest = bytes.subarray(from)
    if (rest.length > 0) this.#pieces.push(rest)
    this.#pendingBytes += rest.length
    if (this.#pendingBytes > this.#options.maxMessageBytes) this.#fail('a message of the server is too long')
    else this.#checkFlood(bytes.length, 0)
  }

  #finishLine(): void {
    const line = Buffer.concat(this.#pieces)
    this.#pieces = []
    this.#pendingBytes = 0
    if (line.length > this.#options.maxMessageBytes) return this.#fail('a message of the server is too long')
    if (!this.#checkFlood(0, 1)) return
    const text = line.toString('utf8')
    if (jsonExcess(text) !== undefined) return this.#fail('a message of the server is nested too deep')
    const message = parseJson(text)
    // Many servers greet on stdout; what is not a message is not for us.
    if (isMessage(message)) this.onmessage?.(message)
  }

  #checkFlood(bytes: number, messages: number): boolean {
    if (this.#closing !== undefined) return false
    if (this.#guard.allows(bytes, messages)) return true
    this.#fail('the server sends too much')
    return false
  }

  #fail(problem: string): void {
    if (this.#closing !== undefined) return
    this.#endBecause(problem)
    this.#closing = this.#end(false)
  }
}

function describeEnd(end: CommandEnd): string {
  switch (end.kind) {
    case 'exited':
      return `the program exited with code ${end.code}`
    case 'killed':
      return `the program was ended by ${end.signal}`
    case 'failed':
      return end.errno === 'ENOENT'
        ? 'command not found, or its working directory does not exist'
        : `the program could not be started (${end.errno})`
  }
}

function lastLines(text: string): string {
  const lines = text.split('\n').map((line) => line.trim())
  return lines
    .filter((line) => line !== '')
    .slice(-STDERR_LINES)
    .join(' | ')
}

function isMessage(value: unknown): value is JSONRPCMessage {
  return isRecord(value) && value['jsonrpc'] === '2.0'
}
