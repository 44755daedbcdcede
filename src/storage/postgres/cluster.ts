import type { Clock } from '../../base/clock.ts'
import type { Database } from '../../base/database.ts'
import type { ClusterNode, ClusterStatus } from '../storage.ts'

const NODES = {
  name: 'cluster_nodes',
  text: `select id, address, version, state, turns, ms(started_at) as "startedAt",
      greatest(0, ms(clock_timestamp()) - ms(heartbeat_at)) as "heartbeatAgeMs", lease_until > clock_timestamp() as "isAlive",
      (select count(*) from sessions s where s.node = nodes.id) as sessions
    from nodes where lease_until > clock_timestamp() - interval '1 hour' order by started_at, id`,
}
const DATABASE = {
  name: 'cluster_database',
  text: `select current_setting('server_version') as version,
    (select count(*) from pg_stat_activity where datname = current_database()) as connections`,
}

/** The nodes as the database knows them, and how it answers. */
export async function readCluster(database: Pick<Database, 'query'>, clock: Clock): Promise<ClusterStatus> {
  const before = clock.monotonic()
  const [about] = await database.query<{ version: string; connections: number }>(DATABASE, [])
  const latencyMs = clock.monotonic() - before
  const rows = await database.query<ClusterNode & { readonly isAlive: boolean }>(NODES, [])
  const shown = (isAlive: boolean): readonly ClusterNode[] =>
    rows.flatMap(({ isAlive: one, ...node }) => (one === isAlive ? [node] : []))
  return {
    nodes: shown(true),
    lost: shown(false),
    database: { version: about?.version ?? '', ok: true, latencyMs, connections: about?.connections ?? 0 },
  }
}
