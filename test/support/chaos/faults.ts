import type { RunningServer } from '../../postgres/server.ts'
import type { Random } from '../fuzz/random.ts'
import { pause } from './client.ts'
import type { ChaosNode } from './nodes.ts'
import type { TableReader } from './tables.ts'

export interface FaultDeps {
  readonly nodes: readonly ChaosNode[]
  readonly server: RunningServer
  readonly reader: TableReader
  readonly random: Random
  readonly leaseMs: number
  /** Only these. */
  readonly only?: readonly string[] | undefined
  began(name: string): void
}

/** So often the connections that listen are ended: sooner than they are open again. */
const [DEAF_TIMES, DEAF_MS] = [40, 40]

/** After these a node may have been silent beyond its lease: what it worked on counts as interrupted. */
export const SILENCING: ReadonlySet<string> = new Set([
  'kill -9',
  'SIGSTOP beyond the lease',
  'the line refuses for longer than the lease',
  'the line holds everything back',
  'the line holds everything back for longer than anything waits',
  'PostgreSQL restarts',
  'PostgreSQL crashes',
])

/** Long enough for what was under way to be committed, shorter than anything waits. */
const LOST_MS = 300

/** Each takes as long as it needs, and leaves the node as it is then: the next healing brings it back. */
export const FAULTS: Readonly<Record<string, (node: ChaosNode, deps: FaultDeps) => Promise<void>>> = {
  'kill -9': (node) => node.kill(),
  SIGTERM: async (node) => void (await node.terminate()),
  'SIGSTOP beyond the lease': async (node, { leaseMs }) => {
    node.stop()
    await pause(leaseMs * 2)
    node.resume()
  },
  'SIGSTOP within the lease': async (node, { leaseMs }) => {
    node.stop()
    await pause(leaseMs / 3)
    node.resume()
  },
  'the line is cut': async (node) => node.line.cut(),
  'answers of the database are lost': async (node) => {
    node.line.set('lose')
    await pause(LOST_MS)
    node.line.cut()
    node.line.set('pass')
  },
  'the line refuses for longer than the lease': async (node, { leaseMs }) => {
    node.line.set('refuse')
    await pause(leaseMs * 2)
    node.line.set('pass')
  },
  'the line holds everything back': async (node, { leaseMs }) => {
    node.line.set('hold')
    await pause(leaseMs * 2)
    node.line.set('pass')
  },
  'the line delays': async (node, { leaseMs }) => {
    node.line.set('delay')
    await pause(leaseMs)
    node.line.set('pass')
  },
  'PostgreSQL restarts': (_, { server }) => server.restart(),
  'the line holds everything back for longer than anything waits': async (node) => {
    node.line.set('hold')
    await pause(7_000)
    node.line.set('pass')
  },
  'PostgreSQL crashes': async (_, { reader }) => {
    const [one] = await reader.query<{ pid: number }>(
      `select pid from pg_stat_activity where application_name like 'clew%' limit 1`,
    )
    if (one !== undefined) process.kill(one.pid, 'SIGKILL')
  },
  'no node hears another': async (_, { reader }) => {
    for (let times = 0; times < DEAF_TIMES; times++) {
      await reader.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'clew%' and query ilike 'listen %'`,
      )
      await pause(DEAF_MS)
    }
  },
  pg_terminate_backend: async (_, { reader }) => {
    await reader.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'clew%' and random() < 0.5`,
    )
  },
}

/** So many faults, one after the other with a pause between them; a fault may begin while an earlier one goes on. */
export async function makeFaults(
  count: number,
  everyMs: number,
  deps: FaultDeps,
): Promise<Readonly<Record<string, number>>> {
  const made: Record<string, number> = {}
  const under: Promise<void>[] = []
  const busy = new Set<ChaosNode>()
  for (let made_ = 0; made_ < count; made_++) {
    await pause(everyMs)
    const name = deps.random.pick(deps.only ?? Object.keys(FAULTS))
    const node = deps.random.pick(deps.nodes)
    if (busy.has(node)) continue
    busy.add(node)
    made[name] = (made[name] ?? 0) + 1
    deps.began(name)
    const fault = (FAULTS[name]?.(node, deps) ?? Promise.resolve())
      .then(() => pause(deps.random.int(1_000)))
      .then(() => (node.isRunning ? undefined : node.start()))
      .finally(() => busy.delete(node))
    under.push(fault)
  }
  await Promise.all(under)
  return made
}
