import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { homePaths } from '../src/app/home.ts'
import { cpuSecondsOf, GatewayProcess, quantile } from './lib/gateway-process.ts'

/**
 * What one whole message costs, from the frame to the answer, against a gateway of about ninety lines with the same
 * durability: the same clients, the same model over HTTP (14 deltas of 12 characters, 12 ms apart), processor time of
 * the process with all its threads. The two take turns in one run; every round counts, the result is the ratio of the
 * medians.
 */
const DELTAS = 14
const CONNECTIONS = 40
const PER_SECOND = 50
const WARM_UP = 400
const MESSAGES = 800
const ROUNDS = 5
const LIMIT = 1.5

interface Target {
  readonly name: string
  readonly pid: number
  readonly port: number
  readonly path: string
  stop(): Promise<void>
}

const model = fork(join(import.meta.dirname, 'processes', 'short-answers.ts'), [String(DELTAS)])
const [baseUrl] = (await once(model, 'message')) as [string]

async function startClew(): Promise<Target> {
  const home = GatewayProcess.newHome()
  const { config } = homePaths(home, {})
  mkdirSync(home, { recursive: true })
  const providers = { local: { type: 'openai-compatible', baseUrl } }
  writeFileSync(config, JSON.stringify({ model: 'local/m', providers, agent: { tools: [] } }))
  const { pid, port, ...gateway } = await startIn(home)
  return { name: 'clew', pid, port, path: '/ws?uid=', stop: gateway.stop }
}

async function startIn(home: string): Promise<{ pid: number; port: number; stop(): Promise<void> }> {
  const gateway = await GatewayProcess.start(home)
  return {
    pid: gateway.pid,
    port: gateway.port,
    async stop() {
      await gateway.stop()
      GatewayProcess.removeHome(home)
    },
  }
}

async function startBare(): Promise<Target> {
  const home = GatewayProcess.newHome()
  const child = fork(join(import.meta.dirname, 'processes', 'bare-gateway.ts'), [join(home, 'journal'), baseUrl])
  const [port] = (await once(child, 'message')) as [number]
  return {
    name: 'bare gateway',
    pid: child.pid ?? 0,
    port,
    path: '/?uid=',
    async stop() {
      const ended = once(child, 'exit')
      child.disconnect()
      await ended
      GatewayProcess.removeHome(home)
    },
  }
}

class Clients {
  readonly #sockets: WebSocket[] = []
  #open = new Map<string, () => void>()
  #sent = 0
  frames = 0

  async connect({ port, path }: Target): Promise<void> {
    for (let at = 0; at < CONNECTIONS; at++) {
      const socket = new WebSocket(`ws://127.0.0.1:${port}${path}c${at}`)
      await once(socket, 'open')
      socket.on('message', (data: Buffer) => this.#heard(data))
      this.#sockets.push(socket)
    }
  }

  #heard(data: Buffer): void {
    this.frames++
    const frame = JSON.parse(data.toString()) as { type: string; messageId?: string }
    if (frame.type === 'error') throw new Error(data.toString())
    if (frame.type === 'complete') this.#open.get(frame.messageId ?? '')?.()
  }

  async send(count: number): Promise<void> {
    const answers: Promise<void>[] = []
    for (let at = 0; at < count; at++) {
      const id = `m${this.#sent++}`
      answers.push(new Promise((resolve) => this.#open.set(id, resolve)))
      const socket = this.#sockets[this.#sent % CONNECTIONS]
      socket?.send(
        JSON.stringify({ id, content: `hello number ${id}`, session: `s${this.#sent % CONNECTIONS}`, stream: true }),
      )
      await pause(1000 / PER_SECOND)
    }
    await Promise.all(answers)
    this.#open = new Map()
  }

  close(): void {
    for (const socket of this.#sockets) socket.terminate()
  }
}

const targets = [await startBare(), await startClew()]
const clients = new Map<Target, Clients>()
for (const target of targets) {
  const own = new Clients()
  await own.connect(target)
  await own.send(WARM_UP)
  clients.set(target, own)
}
console.log(
  `processor time per message, ${DELTAS} deltas, ${PER_SECOND}/s over ${CONNECTIONS} connections, ${MESSAGES} messages a round`,
)
const costs = new Map<Target, number[]>(targets.map((target) => [target, []]))
for (let round = 1; round <= ROUNDS; round++) {
  for (const target of round % 2 === 0 ? targets.toReversed() : targets) {
    const own = clients.get(target)
    if (own === undefined) continue
    const before = cpuSecondsOf(target.pid)
    const frames = own.frames
    await own.send(MESSAGES)
    const ms = ((cpuSecondsOf(target.pid) - before) * 1000) / MESSAGES
    costs.get(target)?.push(ms)
    console.log(
      `round ${round}, ${target.name}: ${ms.toFixed(2)} ms, ${((own.frames - frames) / MESSAGES).toFixed(1)} frames`,
    )
  }
}
const [bare = 0, clew = 0] = targets.map((target) => quantile(costs.get(target) ?? [], 0.5))
console.log(`medians: bare gateway ${bare.toFixed(2)} ms, clew ${clew.toFixed(2)} ms`)
const ratio = clew / bare
console.log(`ratio ${ratio.toFixed(2)} (limit ${LIMIT}: ${ratio <= LIMIT ? 'held' : 'not held'})`)
for (const target of targets) {
  clients.get(target)?.close()
  await target.stop()
}
model.disconnect()
