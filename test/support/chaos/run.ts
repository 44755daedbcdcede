import { startServer } from '../../postgres/server.ts'
import { createRandom } from '../fuzz/random.ts'
import { judge, type Judgement } from './checker.ts'
import { ChaosClient, pause } from './client.ts'
import { makeFaults } from './faults.ts'
import type { History } from './history.ts'
import { ChaosModel } from './model.ts'
import { ChaosNode } from './nodes.ts'
import { TableReader, type Tables } from './tables.ts'

export interface ChaosOptions {
  readonly seed: number
  readonly nodes: number
  readonly clients: number
  /** Of each client, at most. */
  readonly messages: number
  readonly faults: number
  readonly faultEveryMs: number
  readonly leaseMs: number
  /** So many times as many resets, cancels and deletes as there are else. */
  readonly stops?: number | undefined
  /** Only these disturbances; all of them when absent. */
  readonly only?: readonly string[] | undefined
  readonly program: readonly string[]
  /** Hears of everything that was judged, when something was found. */
  keep?(history: History, tables: Tables): void
  say(line: string): void
}

export interface ChaosReport extends Judgement {
  readonly faults: Readonly<Record<string, number>>
  readonly sent: number
  readonly frames: number
  readonly copies: number
  /** What answers that are errors say. */
  readonly codes: Readonly<Record<string, number>>
  readonly requests: number
  readonly epochSamples: number
}

const SCHEMA = 'clew'
const HOUR_MS = 3_600_000
/** Clocks of the nodes: right, an hour ahead, an hour behind. */
const CLOCKS = [0, HOUR_MS, -HOUR_MS]
/** Open messages are given up after so many looks, half a second apart, in which none of them was answered. */
const LOOKS_IN_VAIN = 80

/** Nodes, clients and a database with faults, and the judgement of what came of it. The seed decides what is done. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { seed, leaseMs, program, say } = options
  // A commit that need not reach the disk stays off it for long: a crash then shows who did not wait.
  const server = await startServer(['wal_writer_delay=10s'])
  const model = new ChaosModel(createRandom(seed + 1))
  const nodes: ChaosNode[] = []
  const reader = new TableReader(server.url, SCHEMA)
  try {
    const modelUrl = await model.listen()
    for (let index = 0; index < options.nodes; index++) {
      const clockOffMs = CLOCKS[index % CLOCKS.length] ?? 0
      const database = { port: server.port, schema: SCHEMA }
      const node = await ChaosNode.create({ database, leaseMs, modelUrl, clockOffMs, program })
      nodes.push(node)
      node.start()
      await node.ready()
    }
    say(`${nodes.length} nodes are up`)
    reader.startSampling(250)
    return await disturb(options, { server, model, nodes, reader })
  } finally {
    model.close()
    await reader.stop()
    for (const node of nodes) await node.remove()
    await server.stop()
  }
}

interface World {
  readonly server: Awaited<ReturnType<typeof startServer>>
  readonly model: ChaosModel
  readonly nodes: readonly ChaosNode[]
  readonly reader: TableReader
}

async function disturb(options: ChaosOptions, world: World): Promise<ChaosReport> {
  const { seed, leaseMs, say } = options
  const { nodes, reader, model } = world
  const random = createRandom(seed)
  const history: History = { sent: [], frames: [], resets: [], deletes: [], disturbances: [] }
  let moments = 0
  const moment = (): number => ++moments
  const clients = createClients(options, world, history, moment)
  const stop = new AbortController()
  const living = clients.map((client) => client.live(options.messages, stop.signal))
  const faults = await makeFaults(options.faults, options.faultEveryMs, {
    ...world,
    random,
    leaseMs,
    only: options.only,
    began: (name) => void history.disturbances.push({ name, at: moment() }),
  })
  say(`${options.faults} faults are over; ${history.sent.length} messages so far`)
  stop.abort()
  await Promise.all(living)
  model.calm()
  for (const node of nodes) await node.heal()
  await quiet(reader)
  await collectAll(clients, history)
  await reader.stop()
  const tables = await reader.read()
  const judgement = judge(history, tables)
  const violations = [...judgement.violations, ...reader.backwards]
  if (violations.length > 0) options.keep?.(history, tables)
  const copies = history.frames.filter(({ redelivered }) => redelivered).length
  return {
    ...judgement,
    violations,
    faults,
    sent: history.sent.length,
    frames: history.frames.length,
    copies,
    codes: codesOf(history),
    requests: model.requests,
    epochSamples: reader.samples,
  }
}

function codesOf({ frames }: History): Readonly<Record<string, number>> {
  const codes: Record<string, number> = {}
  const known = new Set<string>()
  for (const { type, code = 'none', run } of frames) {
    if (type !== 'error' || run === undefined || known.has(run)) continue
    known.add(run)
    codes[code] = (codes[code] ?? 0) + 1
  }
  return codes
}

/** Two connections for each account, so that its answers may go to either. */
function createClients(
  options: ChaosOptions,
  { nodes, reader }: World,
  history: History,
  moment: () => number,
): readonly ChaosClient[] {
  let tags = 0
  return Array.from({ length: options.clients }, (_, index) => {
    const account = `user-${index >> 1}`
    return new ChaosClient({
      account,
      sessions: [`room-${index >> 1}a`, `room-${index >> 1}b`],
      random: createRandom(options.seed * 1_000 + index),
      history,
      stops: options.stops ?? 1,
      ports: nodes.map(({ port }) => port),
      moment,
      nextTag: () => `t${++tags}`,
      leftTranscripts: (session) => reader.left(session),
    })
  })
}

async function quiet(reader: TableReader): Promise<void> {
  let fewest = Number.POSITIVE_INFINITY
  for (let inVain = 0; inVain < LOOKS_IN_VAIN && fewest > 0; inVain++) {
    const open = await reader.openMessages()
    if (open < fewest) [fewest, inVain] = [open, 0]
    await pause(500)
  }
}

const COLLECT_TRIES = 5

/** Every client comes back once more and asks for everything that it may have missed. */
async function collectAll(clients: readonly ChaosClient[], history: History): Promise<void> {
  for (const client of clients) client.close()
  const missing = new Map<string, Set<string>>()
  for (const { account, id, acceptedAt } of history.sent)
    if (acceptedAt !== undefined) missing.set(account, (missing.get(account) ?? new Set()).add(id))
  let judged = 0
  const isAnswered = (account: string): boolean => {
    for (; judged < history.frames.length; judged++) {
      const { account: of, type, run, messageId } = history.frames[judged]!
      if (run !== undefined && (type === 'complete' || type === 'error')) missing.get(of)?.delete(messageId ?? '')
    }
    return (missing.get(account)?.size ?? 0) === 0
  }
  const first = clients.filter((_, index) => index % 2 === 0)
  await Promise.all(first.map((client) => client.collect(() => isAnswered(client.account), COLLECT_TRIES)))
}
