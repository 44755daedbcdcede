import { createServer } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { BuiltGateway, newHome, removeHome } from '../built-gateway.ts'
import { pause } from './client.ts'
import { CutProxy } from './cut-proxy.ts'

const SHIFT_CLOCK = pathToFileURL(join(import.meta.dirname, 'shift-clock.mjs')).href

export interface NodeSetting {
  /** Of the database itself; each node gets a line of its own to it. */
  readonly database: { readonly port: number; readonly schema: string }
  readonly leaseMs: number
  readonly modelUrl: string
  readonly clockOffMs: number
  /** What runs, with its own arguments: the built program, or a copy with a planted fault. */
  readonly program: readonly string[]
}

/** One gateway process that may die and start again, always at the same address. */
export class ChaosNode {
  readonly port: number
  readonly line: CutProxy
  readonly #home: string
  readonly #setting: NodeSetting
  #gateway: BuiltGateway | undefined
  #isStopped = false

  private constructor(port: number, home: string, line: CutProxy, setting: NodeSetting) {
    this.port = port
    this.line = line
    this.#home = home
    this.#setting = setting
  }

  static async create(setting: NodeSetting): Promise<ChaosNode> {
    const { database, leaseMs, modelUrl } = setting
    const line = await CutProxy.open(database.port)
    const url = `postgres://postgres:postgres@127.0.0.1:${line.port}/postgres`
    const home = await newHome({
      model: 'test/m',
      providers: { test: { type: 'openai-compatible', baseUrl: modelUrl, apiKey: 'none' } },
      storage: { kind: 'postgres', url, schema: database.schema, lease_ms: leaseMs, pool: 5 },
      shutdown: { drain_ms: 1_000 },
      agent: { tools: [] },
    })
    return new ChaosNode(await freePort(), home, line, setting)
  }

  get output(): string {
    return this.#gateway?.output ?? ''
  }

  get isRunning(): boolean {
    const child = this.#gateway?.child
    return child !== undefined && child.exitCode === null && child.signalCode === null
  }

  start(): void {
    const { clockOffMs, program } = this.#setting
    this.#gateway = BuiltGateway.spawn(
      this.#home,
      ['--port', String(this.port)],
      { NODE_OPTIONS: `--import ${SHIFT_CLOCK}`, CLEW_CHAOS_CLOCK_MS: String(clockOffMs) },
      program,
    )
  }

  async ready(): Promise<void> {
    await this.#gateway?.ready()
  }

  async kill(): Promise<void> {
    this.resume()
    await this.#gateway?.kill()
  }

  async terminate(): Promise<number | null> {
    this.resume()
    return (await this.#gateway?.stop()) ?? null
  }

  stop(): void {
    this.#isStopped = true
    this.#gateway?.child.kill('SIGSTOP')
  }

  resume(): void {
    if (this.#isStopped) this.#gateway?.child.kill('SIGCONT')
    this.#isStopped = false
  }

  /** Runs and answers, whatever was done to it before. */
  async heal(): Promise<void> {
    this.line.set('pass')
    this.resume()
    if (!this.isRunning) this.start()
    for (let tries = 0; tries < 600; tries++) {
      if (!this.isRunning) this.start()
      const response = await fetch(`http://127.0.0.1:${this.port}/healthz`).catch(() => undefined)
      if (response?.ok === true) return
      await pause(100)
    }
    throw new Error(`a node did not come back: ${this.output}`)
  }

  async remove(): Promise<void> {
    await this.kill()
    this.line.close()
    await removeHome(this.#home)
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => resolve(typeof address === 'object' && address !== null ? address.port : 0))
    })
  })
}
