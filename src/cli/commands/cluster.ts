import { isRecord } from '../../base/json.ts'
import { apiOf, requireContact, type CommonOptions } from '../connect.ts'
import { duration, printJson, printLines, table } from '../output.ts'

/** The gateways that share one database, as the running one sees them. */
export async function clusterStatus(options: CommonOptions): Promise<void> {
  const report = await apiOf(await requireContact(options)).get('/api/cluster')
  if (options.json === true) return printJson(report)
  const database = isRecord(report['database']) ? report['database'] : {}
  if (database['ok'] === false) return printLines(['PostgreSQL does not answer.'])
  const head = ['NODE', 'ADDRESS', 'VERSION', 'STATE', 'SESSIONS', 'WORKING', 'SEEN']
  const rows = [...rowsOf(report['nodes']), ...rowsOf(report['lost'], 'lost')]
  printLines(table([head, ...rows]))
  printLines([
    '',
    `PostgreSQL ${textOf(database['version'])} answers in ${textOf(database['latencyMs'])} ms; ${textOf(database['connections'])} connections`,
  ])
}

function rowsOf(nodes: unknown, state?: string): string[][] {
  const listed: readonly unknown[] = Array.isArray(nodes) ? nodes : []
  return listed
    .filter(isRecord)
    .map((node) => [
      textOf(node['id']),
      textOf(node['address']),
      textOf(node['version']),
      state ?? textOf(node['state']),
      textOf(node['sessions']),
      textOf(node['turns']),
      `${duration(typeof node['heartbeatAgeMs'] === 'number' ? node['heartbeatAgeMs'] : 0)} ago`,
    ])
}

function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}
