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
  readonly requests: number
  readonly epochSamples: number
}

const SCHEMA = 'clew'
const HOUR_MS = 3_600_000
/** Clocks of the nodes: right, an hour ahead, an hour behind. */
const CLOCKS = [0, HOUR_MS, -HOUR_MS]
/** After the last fault every open message has an answer within so many looks, half a second apart. */
const LOOKS = 120

/** Nodes, clients and a database with faults, and the judgement of what came of it. The seed decides what is done. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const { seed, leaseMs, program, say } = options
  const server = await startServer()
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
  const history: History = { sent: [], frames: [], resets: [] }
  const clients = createClients(options, world, history)
  const stop = new AbortController()
  const living = clients.map((client) => client.live(options.messages, stop.signal))
  const faults = await makeFaults(options.faults, options.faultEveryMs, { ...world, random, leaseMs })
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
    requests: model.requests,
    epochSamples: reader.samples,
  }
}

/** Two connections for each account, so that its answers may go to either. */
function createClients(options: ChaosOptions, { nodes, reader }: World, history: History): readonly ChaosClient[] {
  let [moment, tags] = [0, 0]
  return Array.from({ length: options.clients }, (_, index) => {
    const account = `user-${index >> 1}`
    return new ChaosClient({
      account,
      sessions: [`room-${index >> 1}a`, `room-${index >> 1}b`],
      random: createRandom(options.seed * 1_000 + index),
      history,
      ports: nodes.map(({ port }) => port),
      moment: () => ++moment,
      nextTag: () => `t${++tags}`,
      leftTranscripts: (session) => reader.left(session),
    })
  })
}

async function quiet(reader: TableReader): Promise<void> {
  for (let look = 0; look < LOOKS && (await reader.openMessages()) > 0; look++) await pause(500)
}

const COLLECT_TRIES = 5

/** Every client comes back once more and asks for everything that it may have missed. */
async function collectAll(clients: readonly ChaosClient[], history: History): Promise<void> {
  for (const client of clients) client.close()
  const isAnswered = (account: string): boolean =>
    history.sent.every(
      (message) =>
        message.account !== account ||
        message.acceptedAt === undefined ||
        history.frames.some(
          ({ type, run, messageId }) =>
            messageId === message.id && run !== undefined && (type === 'complete' || type === 'error'),
        ),
    )
  const first = clients.filter((_, index) => index % 2 === 0)
  await Promise.all(first.map((client) => client.collect(() => isAnswered(client.account), COLLECT_TRIES)))
}
