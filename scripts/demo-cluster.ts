import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { startServer } from '../test/postgres/server.ts'

const MAIN = join(import.meta.dirname, '..', 'dist', 'cli', 'main.js')
const LEASE_MS = 3_000
const NAMES = ['A', 'B', 'C'] as const
type Name = (typeof NAMES)[number]
type Frame = Readonly<Record<string, unknown>>

const startedAt = performance.now()

function say(text: string): void {
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1).padStart(5)
  process.stdout.write(`${seconds} s  ${text}\n`)
}

interface Node {
  readonly name: Name
  readonly child: ChildProcess
  readonly port: number
}

const homes = new Map<Name, string>()
const nodes = new Map<Name, Node>()

function makeHome(name: Name, url: string): string {
  const home = mkdtempSync(join(tmpdir(), `clew-demo-${name.toLowerCase()}-`))
  const config = { model: 'demo', storage: { kind: 'postgres', url, lease_ms: LEASE_MS } }
  writeFileSync(join(home, 'bridge.json'), JSON.stringify(config), { mode: 0o600 })
  homes.set(name, home)
  return home
}

async function startNode(name: Name): Promise<Node> {
  const home = homes.get(name) ?? ''
  const child = spawn(process.execPath, [MAIN, 'start', '--home', home, '--port', '0'], { stdio: 'ignore' })
  for (;;) {
    const port = portOf(home, child.pid)
    if (port !== undefined && (await isHealthy(port))) {
      const node = { name, child, port }
      nodes.set(name, node)
      return node
    }
    if (child.exitCode !== null) throw new Error(`node ${name} did not start`)
    await pause(20)
  }
}

function portOf(home: string, pid: number | undefined): number | undefined {
  try {
    const contact = JSON.parse(readFileSync(join(home, 'gateway.json'), 'utf8')) as Record<string, unknown>
    const running = contact['process'] as { readonly pid: number }
    return running.pid === pid ? Number(contact['port']) : undefined
  } catch {
    return undefined
  }
}

async function isHealthy(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/healthz`).then(
    ({ ok }) => ok,
    () => false,
  )
}

async function end(name: Name, signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
  const node = nodes.get(name)
  if (node === undefined) return
  nodes.delete(name)
  const ended = new Promise((resolve) => node.child.once('exit', resolve))
  node.child.kill(signal)
  await ended
}

/** The nodes as one of them sees them. */
async function clusterFrom(name: Name): Promise<string> {
  const child = spawn(process.execPath, [MAIN, 'cluster', 'status', '--home', homes.get(name) ?? '', '--json'])
  let text = ''
  child.stdout.on('data', (piece: Buffer) => (text += piece.toString()))
  await new Promise((resolve) => child.on('close', resolve))
  const { nodes: live, lost } = JSON.parse(text) as { nodes: readonly unknown[]; lost: readonly unknown[] }
  return `${live.length} live, ${lost.length} lost`
}

/** One person, with one conversation, at whichever node. */
class Client {
  readonly answers = new Map<string, Frame[]>()
  readonly numbers: number[] = []
  #socket: WebSocket | undefined
  #at: Name = 'A'
  #wake: () => void = () => undefined

  async connect(name: Name): Promise<void> {
    this.#socket?.terminate()
    this.#at = name
    const socket = new WebSocket(`ws://127.0.0.1:${nodes.get(name)?.port ?? 0}/ws?uid=ann`)
    this.#socket = socket
    socket.on('message', (data: Buffer) => this.#read(JSON.parse(data.toString()) as Frame))
    await new Promise((resolve, reject) => {
      socket.once('open', resolve)
      socket.once('error', reject)
    })
    socket.on('error', () => undefined)
  }

  send(id: string, content: string): void {
    say(`client → node ${this.#at}   ${content}`)
    this.#socket?.send(JSON.stringify({ id, content, session: 'demo', ack: true }))
  }

  async accepted(id: string): Promise<void> {
    while (!this.#accepted.has(id)) await this.#next()
  }
  readonly #accepted = new Set<string>()

  async answer(id: string): Promise<Frame> {
    for (;;) {
      const [found] = this.answers.get(id) ?? []
      if (found !== undefined) return found
      await this.#next()
    }
  }

  close(): void {
    this.#socket?.terminate()
  }

  #next(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  #read(frame: Frame): void {
    const id = String(frame['messageId'])
    if (frame['type'] === 'accepted') this.#accepted.add(id)
    if (frame['type'] === 'complete' || frame['type'] === 'error') {
      this.answers.set(id, [...(this.answers.get(id) ?? []), frame])
      const isAgain = frame['redelivered'] === true
      if (typeof frame['seq'] === 'number' && !isAgain) this.numbers.push(frame['seq'])
      const [line = ''] = String(frame['content'] ?? frame['error']).split('\n')
      const note = isAgain ? '   (marked as a copy: it is not known here that it arrived)' : ''
      say(`node ${this.#at} → client   ${line.slice(0, 100)}${note}`)
    }
    this.#wake()
  }
}

async function demonstrate(client: Client): Promise<void> {
  say(`the nodes see each other: ${await clusterFrom('A')}`)
  await client.connect('A')
  client.send('m1', 'What is 6 * 7?')
  await client.answer('m1')

  say('')
  say('the client moves to node B; the same conversation goes on there')
  await client.connect('B')
  client.send('m2', 'What is 12 * 12?')
  await client.answer('m2')

  say('')
  say('back at node A, which holds the conversation: it is killed (kill -9) as soon as it has said "accepted"')
  await client.connect('A')
  client.send('m3', 'What time is it, and what is 2 + 2?')
  await client.accepted('m3')
  const killedAt = performance.now()
  await end('A', 'SIGKILL')
  await client.connect('C')
  say('node A is gone; the client connects to node C and sends nothing')
  await client.answer('m3')
  const took = ((performance.now() - killedAt) / 1_000).toFixed(1)
  say(`another node answered ${took} s after the kill: the lease of a node is ${LEASE_MS / 1_000} s here`)
  say(`the nodes now: ${await clusterFrom('C')}`)

  say('')
  say('node C stops in order (SIGTERM); the client goes to node B and need not wait for a lease')
  await end('C', 'SIGTERM')
  await client.connect('B')
  client.send('m4', 'What is 3 * 3?')
  await client.answer('m4')
}

/** What was promised, by what the client saw. */
function judge({ answers, numbers }: Client): boolean {
  const first = [...answers.values()].map((frames) => frames.filter((frame) => frame['redelivered'] !== true).length)
  const areOnce = answers.size === 4 && first.every((count) => count <= 1)
  const haveErrors = [...answers.values()].flat().some(({ type }) => type === 'error')
  const areRising = numbers.every((number, at) => at === 0 || number > (numbers[at - 1] ?? 0))
  say('')
  say(`4 messages at 3 nodes, one of them killed: ${areOnce ? 'each was answered once' : 'NOT each was answered once'}`)
  say(`numbers of the answers: ${numbers.join(', ')}${areRising ? ', rising' : ' NOT RISING'}`)
  return areOnce && areRising && !haveErrors
}

/** At a terminal the nodes stay, and can be killed and started by hand. */
async function stay(): Promise<void> {
  say('')
  for (const name of NAMES) if (!nodes.has(name)) await startNode(name)
  for (const { name, port } of nodes.values()) say(`node ${name}: http://127.0.0.1:${port}/  ws://127.0.0.1:${port}/ws`)
  say('keys: a, b, c kill that node (kill -9) or start it again; q ends everything')
  process.stdin.setRawMode(true)
  for await (const piece of process.stdin) {
    const key = String(piece).toUpperCase()
    if (key === 'Q' || key === '\u0003') break
    const name = NAMES.find((one) => one === key)
    if (name === undefined) continue
    if (nodes.has(name)) await end(name, 'SIGKILL').then(() => say(`node ${name} was killed`))
    else await startNode(name).then(({ port }) => say(`node ${name} is back on port ${port}`))
  }
  process.stdin.setRawMode(false)
}

say('starting a PostgreSQL of its own …')
const server = await startServer()
const client = new Client()
let isGood = false
const cleanUp = async (): Promise<void> => {
  client.close()
  for (const name of NAMES) await end(name, 'SIGKILL')
  await server.stop()
  for (const home of homes.values()) rmSync(home, { recursive: true, force: true })
}
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void cleanUp().then(() => process.exit(130)))
try {
  for (const name of NAMES) {
    makeHome(name, server.url)
    const { port } = await startNode(name)
    say(`node ${name} is ready on http://127.0.0.1:${port}/`)
  }
  await demonstrate(client)
  isGood = judge(client)
  if (process.stdin.isTTY && process.stdout.isTTY) await stay()
} finally {
  await cleanUp()
}
say(isGood ? 'everything as promised' : 'something is not as promised')
process.exit(isGood ? 0 : 1)
