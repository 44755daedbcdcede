import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import { cpus, loadavg } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import type { WebSocket } from 'ws'
import { startServer } from '../test/postgres/server.ts'
import { cpuSecondsOf, GatewayProcess, processorTimes, quantile } from './lib/gateway-process.ts'

/** Several nodes on one PostgreSQL beside one node with files. Short runs: CLEW_BENCH_SECONDS=5. */
const SECONDS = Number(process.env['CLEW_BENCH_SECONDS'] ?? 8)
const WARM_SECONDS = 2
const CLIENTS = 60
const ROUNDS = 2
const CORES = cpus().length
/** With more than this of its processors in use a machine has nothing left that more nodes could use. */
const USED_UP = 0.9
const TAKE_OVERS = Number(process.env['CLEW_BENCH_TAKE_OVERS'] ?? 5)
const [LEASE_MS, DRAIN_MS] = [10_000, 1_000]
const MANY_SESSIONS = Number(process.env['CLEW_BENCH_SESSIONS'] ?? 1_000_000)
const ECHO = join(import.meta.dirname, '..', 'examples', 'plugins', 'echo-provider.mjs')

function say(text: string): void {
  process.stdout.write(`${text}\n`)
}

say(
  'rule, before anything was measured: three nodes on one PostgreSQL answer at least twice the messages per second of',
)
say(
  'one node with files, unless PostgreSQL or the processors of this machine are used up; then that is shown. Start and',
)
say('memory of a node with 1 000 000 sessions are at most 1.25 times those with none.')
say(
  `${CLIENTS} clients, each with a conversation of its own and one message at a time; the model answers at once inside the`,
)
say(
  `gateway. ${SECONDS} s after ${WARM_SECONDS} s of warming up, ${ROUNDS} rounds in turn. Clients, nodes and PostgreSQL`,
)
say(`share ${CORES} processors with other work: compare processor time per message rather than rates.`)

const server = await startServer()
const pool = new pg.Pool({ connectionString: server.url, max: CLIENTS })
// Idle connections end with the server; without a listener that would end the program.
pool.on('error', () => undefined)
try {
  await measureThroughput()
  await measureRaw()
  await measureTakeOver()
  await measureMany()
} finally {
  await pool.end()
  await server.stop()
}

interface Measured {
  readonly perSecond: number
  readonly nodesMs: number
  readonly databaseMs: number
  readonly clientsMs: number
  readonly p50: number
  readonly p99: number
  /** Processors of the machine that were not idle, for any process. */
  readonly busy: number
}

async function measureThroughput(): Promise<void> {
  say('')
  say('whole messages (sent, durable, answered, answer durable and received) · processor time per message, in ms')
  const kinds = [
    ['one node, files', 1, undefined],
    ['one node, PostgreSQL', 1, 'bench_one'],
    ['three nodes, PostgreSQL', 3, 'bench_three'],
  ] as const
  const found = new Map<string, Measured[]>()
  for (let round = 0; round < ROUNDS; round++)
    for (const [name, nodes, schema] of kinds) {
      const measured = await measureOnce(nodes, schema)
      found.set(name, [...(found.get(name) ?? []), measured])
      const { perSecond, nodesMs, databaseMs, clientsMs, p50, p99 } = measured
      say(
        `  ${name.padEnd(24)} ${perSecond.toFixed(0).padStart(5)}/s · nodes ${nodesMs.toFixed(2)}, database ${databaseMs.toFixed(2)}, clients ${clientsMs.toFixed(2)} · answered p50 ${p50.toFixed(0)} ms, p99 ${p99.toFixed(0)} ms`,
      )
    }
  const median = (name: string, field: keyof Measured): number =>
    quantile(
      (found.get(name) ?? []).map((one) => one[field]),
      0.5,
    )
  const files = median('one node, files', 'perSecond')
  const three = median('three nodes, PostgreSQL', 'perSecond')
  const [nodesMs, databaseMs, clientsMs, busy] = (['nodesMs', 'databaseMs', 'clientsMs', 'busy'] as const).map(
    (field) => median('three nodes, PostgreSQL', field),
  ) as [number, number, number, number]
  const used = (three * (nodesMs + databaseMs + clientsMs)) / 1_000
  say(`  three nodes on PostgreSQL answer ${(three / files).toFixed(2)} times what one node with files does`)
  say(
    `  they use ${used.toFixed(2)} of ${CORES} processors, with PostgreSQL and clients; ${busy.toFixed(2)} were busy in all`,
  )
  say(`  ${verdict(three / files, used, busy)}`)
  say(
    `  on machines of their own: a node answers at most ${(1_000 / nodesMs).toFixed(0)}/s with the one processor it uses, and PostgreSQL serves ${(1_000 / databaseMs).toFixed(0)}/s with each of its own`,
  )
}

function verdict(ratio: number, used: number, busy: number): string {
  const most = CORES * USED_UP
  if (ratio >= 2) return 'the rule is held'
  if (used >= most) return 'the limit is the machine: nodes, PostgreSQL and clients used its processors up'
  if (busy >= most) return 'nothing is shown: other work used the processors of this machine up'
  return 'the rule is NOT held: neither twice the rate nor all processors used; see the raw commits for the disk'
}

async function measureOnce(count: number, schema: string | undefined): Promise<Measured> {
  const homes = Array.from({ length: count }, () => newHome(schema))
  const nodes: GatewayProcess[] = []
  for (const home of homes) nodes.push(await GatewayProcess.start(home))
  const sockets: WebSocket[] = []
  try {
    const latencies: number[] = []
    const state = { isOver: false, answers: 0 }
    for (let n = 0; n < CLIENTS; n++) {
      const socket = await nodes[n % nodes.length]?.connect(`u${n}`)
      if (socket === undefined) continue
      sockets.push(socket)
      talk(socket, n, state, latencies)
    }
    await pause(WARM_SECONDS * 1_000)
    const [before, machineBefore] = [await costs(nodes), machineTimes()]
    const [answersBefore, startedAt] = [state.answers, performance.now()]
    latencies.length = 0
    await pause(SECONDS * 1_000)
    const [after, machineAfter] = [await costs(nodes), machineTimes()]
    const answers = state.answers - answersBefore
    const seconds = (performance.now() - startedAt) / 1_000
    state.isOver = true
    const perMessage = (field: keyof Awaited<ReturnType<typeof costs>>): number =>
      ((after[field] - before[field]) * 1_000) / Math.max(1, answers)
    return {
      perSecond: answers / seconds,
      nodesMs: perMessage('nodes'),
      databaseMs: schema === undefined ? 0 : perMessage('database'),
      clientsMs: perMessage('clients'),
      p50: quantile(latencies, 0.5),
      p99: quantile(latencies, 0.99),
      busy: CORES * (1 - (machineAfter.idle - machineBefore.idle) / (machineAfter.all - machineBefore.all)),
    }
  } finally {
    for (const socket of sockets) socket.terminate()
    for (const node of nodes) await node.stop()
    for (const home of homes) GatewayProcess.removeHome(home)
    if (schema !== undefined) await pool.query(`drop schema if exists ${schema} cascade`)
  }
}

function machineTimes(): { readonly all: number; readonly idle: number } {
  const times = cpus().map(({ times: one }) => one)
  const idle = times.reduce((sum, one) => sum + one.idle, 0)
  return { idle, all: times.reduce((sum, one) => sum + one.user + one.nice + one.sys + one.irq + one.idle, 0) }
}

function newHome(schema: string | undefined, more: object = {}): string {
  const home = GatewayProcess.newHome()
  const storage = schema === undefined ? {} : { storage: { kind: 'postgres', url: server.url, schema } }
  const config = {
    model: 'echo/plain',
    plugins: [ECHO],
    agent: { tools: [] },
    limits: { sessions: 10_000_000, frames_per_second: 10_000, frames_burst: 10_000, concurrent_turns: 200 },
    ...storage,
    ...more,
  }
  writeFileSync(join(home, 'bridge.json'), JSON.stringify(config))
  return home
}

/** Sends the next message when the last one is answered. */
function talk(
  socket: WebSocket,
  client: number,
  state: { isOver: boolean; answers: number },
  latencies: number[],
): void {
  let [sent, sentAt] = [0, 0]
  const next = (): void => {
    sentAt = performance.now()
    socket.send(JSON.stringify({ id: `m${client}-${sent++}`, content: 'hello there', session: `bench-${client}` }))
  }
  socket.on('message', (data: Buffer) => {
    const { type, code } = JSON.parse(data.toString()) as { type: string; code?: string }
    if (type === 'error') throw new Error(`a message failed: ${code ?? 'unknown'}`)
    if (type !== 'complete') return
    state.answers++
    latencies.push(performance.now() - sentAt)
    if (!state.isOver) next()
  })
  next()
}

async function costs(
  nodes: readonly GatewayProcess[],
): Promise<{ readonly nodes: number; readonly database: number; readonly clients: number }> {
  const { user, system } = process.cpuUsage()
  return {
    nodes: nodes.reduce((sum, node) => sum + node.cpuSeconds, 0),
    database: await databaseSeconds(),
    clients: (user + system) / 1_000_000,
  }
}

/** Processor time of PostgreSQL: its first process with the children that have ended, and the living ones. */
async function databaseSeconds(): Promise<number> {
  const { rows } = await pool.query<{ pid: number }>('select pg_backend_pid() as pid')
  const parent = Number(statOf(rows[0]?.pid ?? 0)[1])
  const [, , ...fields] = statOf(parent)
  const ended = (Number(fields[11]) + Number(fields[12])) / 100
  const living = readdirSync('/proc')
    .filter((name) => /^\d+$/u.test(name))
    .filter((name) => Number(statOf(Number(name))[1]) === parent)
  return living.reduce((sum, pid) => sum + secondsOf(Number(pid)), secondsOf(parent) + ended)
}

function statOf(pid: number): readonly string[] {
  try {
    return readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  } catch {
    return []
  }
}

function secondsOf(pid: number): number {
  try {
    return cpuSecondsOf(pid)
  } catch {
    return 0
  }
}

/** What this PostgreSQL does when it has nothing to do but to commit. */
async function measureRaw(): Promise<void> {
  say('')
  say(`raw: rows of 1 kB through pg, each statement a commit, ${SECONDS} s each`)
  await pool.query('create schema raw; create table raw.rows (id bigint generated always as identity, body text)')
  const text = 'insert into raw.rows (body) select $1 from generate_series(1, $2)'
  const body = 'x'.repeat(1_000)
  for (const [connections, rows] of [
    [1, 1],
    [3, 1],
    [3, 20],
    [CLIENTS, 1],
  ] as const) {
    const [before, startedAt] = [await databaseSeconds(), performance.now()]
    let commits = 0
    const work = async (): Promise<void> => {
      const client = await pool.connect()
      while (performance.now() - startedAt < SECONDS * 1_000) {
        await client.query({ name: 'raw', text, values: [body, rows] })
        commits++
      }
      client.release()
    }
    await Promise.all(Array.from({ length: connections }, work))
    const seconds = (performance.now() - startedAt) / 1_000
    const cost = (((await databaseSeconds()) - before) * 1_000) / commits
    say(
      `  ${String(connections).padStart(2)} connections, ${String(rows).padStart(2)} rows each: ${(commits / seconds).toFixed(0).padStart(5)} commits/s, ${((commits * rows) / seconds).toFixed(0).padStart(6)} rows/s · database ${cost.toFixed(2)} ms per commit`,
    )
  }
  await pool.query('drop schema raw cascade')
}

/** From the end of a node to the answer that another one gives, at a client that is connected there. */
async function measureTakeOver(): Promise<void> {
  say('')
  say(
    `taken over by another node (lease ${LEASE_MS} ms, shutdown.drain_ms ${DRAIN_MS}): from the signal to the answer, ${TAKE_OVERS} times each`,
  )
  const model = await startModel()
  try {
    const found = new Map<string, number[]>()
    for (let round = 0; round < TAKE_OVERS; round++)
      for (const [name, signal, isRunning] of [
        ['kill -9 while a turn runs', 'SIGKILL', true],
        ['kill -9, a message that comes then', 'SIGKILL', false],
        ['SIGTERM while a turn runs', 'SIGTERM', true],
        ['SIGTERM, a message that comes then', 'SIGTERM', false],
      ] as const)
        found.set(name, [...(found.get(name) ?? []), await takeOverOnce(model, signal, isRunning)])
    for (const [name, times] of found)
      say(
        `  ${name.padEnd(36)} ${quantile(times, 0.5).toFixed(0).padStart(6)} ms (${Math.min(...times).toFixed(0)} to ${Math.max(...times).toFixed(0)})`,
      )
  } finally {
    model.close()
  }
}

async function takeOverOnce(model: BenchModel, signal: NodeJS.Signals, isRunning: boolean): Promise<number> {
  const schema = 'bench_taken'
  const homes = [newHome(schema, model.config), newHome(schema, model.config)] as const
  const nodes = [await GatewayProcess.start(homes[0]), await GatewayProcess.start(homes[1])] as const
  const sockets: WebSocket[] = []
  try {
    const [first, second] = [await nodes[0].connect('ann'), await nodes[1].connect('ann')]
    sockets.push(first, second)
    await answered(first, 'm0', () => ask(first, 'm0'))
    const [open, isAsked] = [isRunning ? 'm1' : 'm2', model.hang(isRunning)]
    if (isRunning) {
      ask(first, open)
      await isAsked
      void model.hang(false)
    }
    const signalledAt = performance.now()
    await answered(second, open, () => {
      nodes[0].child.kill(signal)
      if (!isRunning) ask(second, open)
    })
    return performance.now() - signalledAt
  } finally {
    for (const socket of sockets) socket.terminate()
    for (const node of nodes) if (node.child.exitCode === null && node.child.signalCode === null) await node.stop()
    for (const home of homes) GatewayProcess.removeHome(home)
    await pool.query(`drop schema if exists ${schema} cascade`)
  }
}

function ask(socket: WebSocket, id: string): void {
  socket.send(JSON.stringify({ id, content: 'hello there', session: 'taken' }))
}

function answered(socket: WebSocket, id: string, begin: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const hear = (data: Buffer): void => {
      const { type, messageId } = JSON.parse(data.toString()) as { type: string; messageId?: string }
      if (messageId !== id || (type !== 'complete' && type !== 'error')) return
      socket.off('message', hear)
      if (type === 'complete') resolve()
      else reject(new Error(`a message was not taken over: ${data.toString()}`))
    }
    socket.on('message', hear)
    begin()
  })
}

interface BenchModel {
  readonly config: object
  /** Whether it leaves requests without an answer from now on; resolves when it is asked the next time. */
  hang(isHanging: boolean): Promise<void>
  close(): void
}

/** A service that answers at once, or never. */
async function startModel(): Promise<BenchModel> {
  let [isHanging, asked] = [false, (): void => undefined]
  const hanging = new Set<ServerResponse>()
  const service = createServer((request, response) => {
    request.resume()
    request.on('end', () => {
      asked()
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      if (isHanging) return void hanging.add(response)
      const chunk = { id: 'c', object: 'chat.completion.chunk', created: 0, model: 'm' }
      const choices = [{ index: 0, delta: { content: 'yes' }, finish_reason: 'stop' }]
      response.end(`data: ${JSON.stringify({ ...chunk, choices })}\n\ndata: [DONE]\n\n`)
    })
  })
  service.listen(0, '127.0.0.1')
  await once(service, 'listening')
  const address = service.address()
  const baseUrl = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/v1`
  return {
    config: {
      model: 'test/m',
      providers: { test: { type: 'openai-compatible', baseUrl, apiKey: 'none' } },
      storage: { kind: 'postgres', url: server.url, schema: 'bench_taken', lease_ms: LEASE_MS },
      shutdown: { drain_ms: DRAIN_MS },
    },
    hang: (isNow) => {
      isHanging = isNow
      return new Promise((resolve) => (asked = resolve))
    },
    close: () => {
      for (const response of hanging) response.destroy()
      service.closeAllConnections()
      service.close()
    },
  }
}

/** Start and memory of a node beside the number of conversations in the database. */
async function measureMany(): Promise<void> {
  say('')
  const schema = 'bench_many'
  const home = newHome(schema)
  try {
    const none = await startOften(home)
    say(`sessions in the database: 0 · ${describe(none)}`)
    const startedAt = performance.now()
    await pool.query(
      `insert into ${schema}.sessions (key, session_id, owner, record)
       select 'webhook:user-' || n, 'sess_' || n, 'user-' || n, '{"lastChannel": "webhook", "messages": 1}'
       from generate_series(1, $1::integer) as n`,
      [MANY_SESSIONS],
    )
    await pool.query(`analyze ${schema}.sessions`)
    say(`  (${MANY_SESSIONS} rows were put there by SQL in ${((performance.now() - startedAt) / 1_000).toFixed(0)} s)`)
    const many = await startOften(home)
    say(`sessions in the database: ${MANY_SESSIONS} · ${describe(many)}`)
    say(
      `  ratio: start ${(many.cpuMs / none.cpuMs).toFixed(2)} (processor time), memory ${(many.memory / none.memory).toFixed(2)}`,
    )
  } finally {
    GatewayProcess.removeHome(home)
    await pool.query(`drop schema if exists ${schema} cascade`)
  }
}

interface Started {
  readonly readyMs: number
  readonly cpuMs: number
  readonly memory: number
  readonly firstMs: number
}

function describe({ readyMs, cpuMs, memory, firstMs }: Started): string {
  return `ready after ${readyMs.toFixed(0)} ms (${cpuMs.toFixed(0)} ms of processor), ${memory} MB after 1 s, first answer of a new conversation ${firstMs.toFixed(0)} ms (medians of 5)`
}

async function startOften(home: string): Promise<Started> {
  await (await GatewayProcess.start(home)).stop()
  const [ready, cpu, memory, first]: [number[], number[], number[], number[]] = [[], [], [], []]
  for (let turn = 0; turn < 5; turn++) {
    const node = await GatewayProcess.start(home)
    ready.push(node.readyAfterMs)
    cpu.push(node.cpuSeconds * 1_000)
    await pause(1_000)
    memory.push(node.rssMegabytes)
    const socket = await node.connect('new')
    for (let n = 0; n < 2; n++) {
      const sentAt = performance.now()
      const answered = new Promise<void>((resolve) =>
        socket.on('message', (data: Buffer) => data.includes('"complete"') && resolve()),
      )
      socket.send(JSON.stringify({ id: `n${turn}-${n}`, content: 'hello', session: `new-${turn}-${n}` }))
      await answered
      // The first one loads what was not loaded yet.
      if (n === 1) first.push(performance.now() - sentAt)
      socket.removeAllListeners('message')
    }
    socket.terminate()
    await node.stop()
  }
  return {
    readyMs: quantile(ready, 0.5),
    cpuMs: quantile(cpu, 0.5),
    memory: quantile(memory, 0.5),
    firstMs: quantile(first, 0.5),
  }
}

say('')
say(
  `load average of the machine now: ${loadavg()
    .map((load) => load.toFixed(1))
    .join(', ')}`,
)
const { all, stolen } = processorTimes()
say(
  `since the machine started ${((stolen / all) * 100).toFixed(1)} % of its processor time went to others on the same host`,
)
