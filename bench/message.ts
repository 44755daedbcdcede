import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { homePaths } from '../src/app/home.ts'
import { cpuSecondsOf, GatewayProcess, quantile } from './lib/gateway-process.ts'
import { OpenClawProcess } from './lib/open-claw.ts'
import { NOT_INSTALLED } from './lib/peers.ts'
import { countSystemCalls } from './lib/system-calls.ts'

/**
 * What one whole message costs, from the frame to the answer, against the least a gateway with the same durability,
 * frames and requests costs (`processes/bare-gateway.ts`): the same clients, the same model over HTTP (14 deltas of 12
 * characters, 12 ms apart), processor time of the process with all its threads. The two take turns in one run; every
 * round counts, the result is the ratio of the medians. Then what each did for a message is counted, and OpenClaw does
 * the same job, where it is installed.
 */
const DELTAS = 14
const CONNECTIONS = 40
const PER_SECOND = 50
const WARM_UP = 400
const MESSAGES = 800
const COUNTED = 200
const ROUNDS = 5
const LIMIT = 1.5
const PEER_WARM_UP = 4
const PEER_MESSAGES = 16

interface Target {
  readonly name: string
  readonly pid: number
  readonly port: number
  readonly path: string
  stop(): Promise<void>
}

interface Requests {
  readonly requests: number
  readonly bytes: number
}

const model = fork(join(import.meta.dirname, 'processes', 'short-answers.ts'), [String(DELTAS)])
const [baseUrl] = (await once(model, 'message')) as [string]

async function requestsSoFar(): Promise<Requests> {
  model.send('count')
  const [counted] = (await once(model, 'message')) as [Requests]
  return counted
}

async function startClew(): Promise<Target> {
  const home = GatewayProcess.newHome()
  const { config } = homePaths(home, {})
  mkdirSync(home, { recursive: true })
  const providers = { local: { type: 'openai-compatible', baseUrl } }
  writeFileSync(config, JSON.stringify({ model: 'local/m', providers, agent: { tools: [] } }))
  const gateway = await GatewayProcess.start(home)
  const { pid, port } = gateway
  const stop = async (): Promise<void> => {
    await gateway.stop()
    GatewayProcess.removeHome(home)
  }
  return { name: 'clew', pid, port, path: '/ws?uid=', stop }
}

async function startBare(): Promise<Target> {
  const home = GatewayProcess.newHome()
  const child = fork(join(import.meta.dirname, 'processes', 'bare-gateway.ts'), [join(home, 'journal'), baseUrl])
  const [port] = (await once(child, 'message')) as [number]
  const stop = async (): Promise<void> => {
    const ended = once(child, 'exit')
    child.disconnect()
    await ended
    GatewayProcess.removeHome(home)
  }
  return { name: 'bare gateway', pid: child.pid ?? 0, port, path: '/?uid=', stop }
}

class Clients {
  readonly #sockets: WebSocket[] = []
  #open = new Map<string, () => void>()
  #sent = 0
  frames = 0
  bytes = 0

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
    this.bytes += data.length
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

interface Pair {
  readonly target: Target
  readonly clients: Clients
  readonly costs: number[]
}

async function begin(target: Target): Promise<Pair> {
  const clients = new Clients()
  await clients.connect(target)
  await clients.send(WARM_UP)
  return { target, clients, costs: [] }
}

async function measure({ target, clients, costs }: Pair, round: number): Promise<void> {
  const before = cpuSecondsOf(target.pid)
  await clients.send(MESSAGES)
  const ms = ((cpuSecondsOf(target.pid) - before) * 1000) / MESSAGES
  costs.push(ms)
  console.log(`round ${round}, ${target.name}: ${ms.toFixed(2)} ms`)
}

/** What each does for a message: the same job, or the ratio says nothing. */
async function count({ target, clients }: Pair): Promise<void> {
  const { frames, bytes } = clients
  const before = await requestsSoFar()
  const calls = await countSystemCalls(target.pid, () => clients.send(COUNTED))
  if (calls === undefined) await clients.send(COUNTED)
  const after = await requestsSoFar()
  const each = (total: number): string => (total / COUNTED).toFixed(1)
  const requests = `${each(after.requests - before.requests)} request of ${Math.round((after.bytes - before.bytes) / COUNTED)} bytes`
  const seen = `${each(clients.frames - frames)} frames, ${Math.round((clients.bytes - bytes) / COUNTED)} bytes to clients, ${requests}`
  const system =
    calls === undefined
      ? 'system calls not counted: strace is not installed'
      : `${each(calls.syncs)} syncs, ${each(calls.all)} system calls`
  console.log(`a message through ${target.name}: ${seen}, ${system}`)
}

async function measureOpenClaw(clew: number): Promise<void> {
  const peer = await OpenClawProcess.start(baseUrl)
  if (peer === undefined) return console.log(`OpenClaw 2026.9.6: ${NOT_INSTALLED}`)
  try {
    await peer.ask(PEER_WARM_UP)
    const costs: number[] = []
    for (let round = 1; round <= ROUNDS; round++) {
      const before = peer.cpuSeconds
      await peer.ask(PEER_MESSAGES)
      costs.push(((peer.cpuSeconds - before) * 1000) / PEER_MESSAGES)
    }
    const ms = quantile(costs, 0.5)
    const rounds = costs.map((cost) => cost.toFixed(0)).join(', ')
    console.log(
      `OpenClaw 2026.9.6 (/v1/chat/completions, streamed): ${ms.toFixed(0)} ms (rounds ${rounds}), ${(ms / clew).toFixed(0)}× clew`,
    )
  } finally {
    await peer.stop()
  }
}

const bare = await begin(await startBare())
const clew = await begin(await startClew())
const pairs = [bare, clew]
console.log(
  `processor time per message, ${DELTAS} deltas, ${PER_SECOND}/s over ${CONNECTIONS} connections, ${MESSAGES} messages a round`,
)
for (let round = 1; round <= ROUNDS; round++)
  for (const pair of round % 2 === 0 ? pairs.toReversed() : pairs) await measure(pair, round)
const [bareMs, clewMs] = [quantile(bare.costs, 0.5), quantile(clew.costs, 0.5)]
const ratio = clewMs / bareMs
console.log(`medians: bare gateway ${bareMs.toFixed(2)} ms, clew ${clewMs.toFixed(2)} ms`)
console.log(`ratio ${ratio.toFixed(2)} (limit ${LIMIT}: ${ratio <= LIMIT ? 'held' : 'not held'})`)
for (const pair of pairs) await count(pair)
for (const { target, clients } of pairs) {
  clients.close()
  await target.stop()
}
await measureOpenClaw(clewMs)
model.disconnect()
