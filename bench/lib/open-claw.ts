import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { cpuSecondsOf, GatewayProcess } from './gateway-process.ts'
import { openClaw } from './peers.ts'

const START_TRIES = 300
const TOKEN = 'bench'

/** OpenClaw's gateway with one model, asked over its OpenAI-compatible address. */
export class OpenClawProcess {
  readonly #child: ChildProcess
  readonly #port: number
  readonly #home: string
  #sessions = 0

  private constructor(child: ChildProcess, port: number, home: string) {
    this.#child = child
    this.#port = port
    this.#home = home
  }

  /** Undefined when it is not installed. */
  static async start(baseUrl: string): Promise<OpenClawProcess | undefined> {
    if (openClaw === undefined) return undefined
    const home = GatewayProcess.newHome()
    mkdirSync(join(home, 'workspace'), { recursive: true })
    const port = await freePort()
    const config = join(home, 'openclaw.json')
    writeFileSync(config, JSON.stringify(configOf(home, port, baseUrl)))
    const env = {
      PATH: process.env['PATH'],
      HOME: home,
      OPENCLAW_CONFIG_PATH: config,
      OPENCLAW_STATE_DIR: join(home, 'state'),
    }
    const child = spawn(openClaw.node, [openClaw.path, 'gateway', 'run'], { env, stdio: 'ignore' })
    const started = new OpenClawProcess(child, port, home)
    for (let attempt = 0; attempt < START_TRIES; attempt++) {
      if (child.exitCode !== null) break
      if (await started.#isHealthy()) return started
      await pause(500)
    }
    await started.stop()
    throw new Error('OpenClaw did not start')
  }

  get cpuSeconds(): number {
    return cpuSecondsOf(this.#child.pid ?? 0)
  }

  /** So many messages, four conversations at once. */
  async ask(count: number): Promise<void> {
    const lane = async (session: number): Promise<void> => {
      for (let at = 0; at < count / 4; at++) await this.#askOnce(session, at)
    }
    const first = this.#sessions
    this.#sessions += 4
    await Promise.all([0, 1, 2, 3].map((lane_) => lane(first + lane_)))
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode === null) {
      const ended = once(this.#child, 'exit')
      this.#child.kill('SIGKILL')
      await ended
    }
    GatewayProcess.removeHome(this.#home)
  }

  async #askOnce(session: number, at: number): Promise<void> {
    const response = await fetch(`http://127.0.0.1:${this.#port}/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${TOKEN}` },
      body: JSON.stringify({
        model: 'openclaw/main',
        stream: true,
        user: `s${session}`,
        messages: [{ role: 'user', content: `hello number ${at}` }],
      }),
    })
    const text = await response.text()
    if (!response.ok || !text.includes('twelve chars'))
      throw new Error(`OpenClaw answered ${response.status}: ${text.slice(0, 300)}`)
  }

  async #isHealthy(): Promise<boolean> {
    try {
      return (await fetch(`http://127.0.0.1:${this.#port}/healthz`)).ok
    } catch {
      return false
    }
  }
}

function configOf(home: string, port: number, baseUrl: string): object {
  const model = {
    id: 'm',
    name: 'm',
    reasoning: false,
    input: ['text'],
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    contextWindow: 128_000,
    maxTokens: 4_096,
  }
  return {
    gateway: {
      port,
      mode: 'local',
      bind: 'loopback',
      auth: { mode: 'token', token: TOKEN },
      http: { endpoints: { chatCompletions: { enabled: true } } },
    },
    models: {
      mode: 'replace',
      providers: { local: { baseUrl, apiKey: 'x', api: 'openai-completions', models: [model] } },
    },
    agents: { defaults: { model: { primary: 'local/m' }, workspace: join(home, 'workspace') } },
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}
