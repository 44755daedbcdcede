import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WebSocket } from 'ws'

export const ROOT = join(import.meta.dirname, '..', '..')
export const MAIN = join(ROOT, 'dist', 'cli', 'main.js')

export type Frame = Record<string, unknown>

let built: Promise<void> | undefined

/** Builds `dist` once for all files of a test run; nothing happens when it is fresh. */
export function build(): Promise<void> {
  built ??= run(process.execPath, [join(ROOT, 'scripts', 'build.mjs')]).then(({ code, output }) => {
    if (code !== 0) throw new Error(`the build failed: ${output}`)
  })
  return built
}

export async function run(
  command: string,
  args: readonly string[],
  options: { readonly env?: NodeJS.ProcessEnv; readonly cwd?: string } = {},
): Promise<{ readonly code: number | null; readonly output: string }> {
  const child = spawn(command, args, { cwd: options.cwd ?? ROOT, env: options.env ?? process.env })
  let output = ''
  child.stdout.on('data', (piece: Buffer) => (output += piece.toString()))
  child.stderr.on('data', (piece: Buffer) => (output += piece.toString()))
  const code = await new Promise<number | null>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', resolve)
  })
  return { code, output }
}

/** With a schema of its own where this project of the test run keeps conversations in PostgreSQL. */
export async function newHome(config: object = {}): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), 'clew-system-'))
  await configure(home, { ...(await storageOfHome()), ...config })
  return home
}

/** Writes `bridge.json`; the home stays on the storage it has. */
export async function configure(home: string, config: object): Promise<void> {
  const path = join(home, 'bridge.json')
  const known = await readFile(path, 'utf8').then(
    (text) => JSON.parse(text) as { storage?: object },
    () => ({ storage: undefined }),
  )
  const storage = known.storage === undefined ? {} : { storage: known.storage }
  await writeFile(path, JSON.stringify({ ...storage, ...config }))
}

/** A lease that a restart after `kill -9` need not wait for long. */
const LEASE_MS = 1_000

async function storageOfHome(): Promise<object> {
  if (process.env['CLEW_TEST_STORAGE'] !== 'postgres') return {}
  const { databaseUrl, freshSchema } = await import('./test-database.ts')
  return { storage: { kind: 'postgres', url: await databaseUrl(), schema: freshSchema(), lease_ms: LEASE_MS } }
}

export function removeHome(home: string): Promise<void> {
  return rm(home, { recursive: true, force: true, maxRetries: 5 })
}

/** The built command line, started in a home, reached over loopback. */
export class BuiltGateway {
  readonly home: string
  readonly child: ChildProcess
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
  output = ''
  port = 0

  private constructor(home: string, child: ChildProcess) {
    this.home = home
    this.child = child
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (piece: Buffer) => (this.output = (this.output + piece.toString()).slice(-20_000)))
    this.exited = new Promise((resolve) => child.on('exit', (code, signal) => resolve({ code, signal })))
  }

  /** Without waiting until it is ready. */
  static spawn(
    home: string,
    args: readonly string[] = ['--port', '0'],
    env: Readonly<Record<string, string>> = {},
    program: readonly string[] = [MAIN],
  ): BuiltGateway {
    const child = spawn(process.execPath, [...program, 'start', '--home', home, ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'], ...env },
    })
    return new BuiltGateway(home, child)
  }

  static async start(
    home: string,
    args?: readonly string[],
    env?: Readonly<Record<string, string>>,
  ): Promise<BuiltGateway> {
    await build()
    const gateway = BuiltGateway.spawn(home, args, env)
    await gateway.ready()
    return gateway
  }

  /** Waits for the contact file of this very process, and for `/healthz`. */
  async ready(): Promise<void> {
    for (let tries = 0; tries < 2_000; tries++) {
      if (this.child.exitCode !== null || this.child.signalCode !== null)
        throw new Error(`the gateway ended: ${this.output}`)
      const contact = await this.#contact()
      if (contact !== undefined && (await this.#isHealthy(contact.port))) {
        this.port = contact.port
        return
      }
      await pause(10)
    }
    throw new Error(`the gateway did not become ready: ${this.output}`)
  }

  async connect(query = ''): Promise<SystemClient> {
    const socket = new WebSocket(`ws://127.0.0.1:${this.port}/ws${query}`)
    const client = new SystemClient(socket)
    await client.opened
    return client
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL')
    await this.exited
  }

  async stop(): Promise<number | null> {
    this.child.kill('SIGTERM')
    return (await this.exited).code
  }

  async #contact(): Promise<{ readonly port: number } | undefined> {
    try {
      const contact = JSON.parse(await readFile(join(this.home, 'gateway.json'), 'utf8')) as {
        port: number
        process: { pid: number }
      }
      return contact.process.pid === this.child.pid ? contact : undefined
    } catch {
      return undefined
    }
  }

  async #isHealthy(port: number): Promise<boolean> {
    try {
      return (await fetch(`http://127.0.0.1:${port}/healthz`)).ok
    } catch {
      return false
    }
  }
}

export class SystemClient {
  readonly socket: WebSocket
  readonly frames: Frame[] = []
  readonly opened: Promise<void>
  #wake: (() => void)[] = []

  constructor(socket: WebSocket) {
    this.socket = socket
    this.opened = new Promise((resolve, reject) => {
      socket.once('open', () => resolve())
      socket.once('error', reject)
    })
    socket.on('error', () => undefined)
    socket.on('message', (data: Buffer) => {
      this.frames.push(JSON.parse(data.toString()) as Frame)
      for (const wake of this.#wake.splice(0)) wake()
    })
    socket.on('close', () => {
      for (const wake of this.#wake.splice(0)) wake()
    })
  }

  send(frame: unknown): void {
    this.socket.send(typeof frame === 'string' ? frame : JSON.stringify(frame))
  }

  /** The frame with this place in the order of arrival. */
  async frame(index: number): Promise<Frame> {
    await this.until(() => this.frames.length > index)
    const frame = this.frames[index]
    if (frame === undefined) throw new Error('the connection ended before the frame came')
    return frame
  }

  async ask(frame: unknown): Promise<Frame> {
    const index = this.frames.length
    this.send(frame)
    return this.frame(index)
  }

  /** Resolves when it holds, or the connection ended. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds() && this.socket.readyState === WebSocket.OPEN)
      await new Promise<void>((resolve) => this.#wake.push(resolve))
  }

  async close(): Promise<void> {
    if (this.socket.readyState === WebSocket.CLOSED) return
    const closed = new Promise((resolve) => this.socket.once('close', resolve))
    this.socket.close()
    await closed
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
