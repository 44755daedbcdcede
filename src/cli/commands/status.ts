import { isRecord, type JsonObject } from '../../base/json.ts'
import { homePaths } from '../../app/home.ts'
import { apiOf, commandLine, findGateway, type CommonOptions } from '../connect.ts'
import { EXIT_FAILURE } from '../exit-codes.ts'
import { duration, printJson, printLines, table } from '../output.ts'

export async function status(options: CommonOptions): Promise<void> {
  const running = await findGateway(options)
  if (running === undefined) {
    process.exitCode = EXIT_FAILURE
    if (options.json === true) return printJson({ running: false })
    const { home } = homePaths(options.home, process.env)
    return printLines([`not running (home ${home}); start it with: ${commandLine('start', options)}`])
  }
  const report: JsonObject = { running: true, ...(await apiOf(running).get('/api/status')) }
  if (options.json === true) printJson(report)
  else printLines(table(describe(report)))
}

/** The report in words; `--json` has everything it holds. */
function describe(report: JsonObject): string[][] {
  const activity = recordOf(report['activity'])
  const replies = recordOf(report['replies'])
  return [
    [
      'gateway',
      `version ${textOf(report['version'])}, ${textOf(report['state'])}, up for ${duration(numberOf(report['uptimeSeconds']) * 1_000)}`,
    ],
    ['home', textOf(report['home'])],
    ['model', textOf(report['model'])],
    ['answers', `${numberOf(activity['running'])} running, ${numberOf(activity['queued'])} queued`],
    ['conversations', `${numberOf(report['sessions'])}`],
    [
      'replies',
      `${numberOf(replies['waiting'])} waiting for their client, ${numberOf(replies['unknown'])} with unknown delivery`,
    ],
    ...Object.entries(recordOf(report['providers'])).map(([name, value]) => [`provider ${name}`, circuitText(value)]),
    ...Object.entries(recordOf(report['channels'])).flatMap(([name, value]) => channelRows(name, recordOf(value))),
    ...serversOf(report['mcp']).map((server) => [`MCP ${textOf(server['server'])}`, mcpText(server)]),
  ]
}

const CIRCUITS: Readonly<Record<string, string>> = {
  closed: 'answers',
  open: 'failing; paused for a while',
  'half-open': 'failing; being tried again',
}

function circuitText(value: unknown): string {
  const state =
    typeof value === 'string' ? value : textOf(recordOf(value)['circuit']) || textOf(recordOf(value)['state'])
  const running = recordOf(value)['running']
  const slow = recordOf(value)['slow'] === true ? '; slow' : ''
  return `${CIRCUITS[state] ?? state}${typeof running === 'number' ? `, ${running} running` : ''}${slow}`
}

function channelRows(name: string, channel: Record<string, unknown>): string[][] {
  const links = Array.isArray(channel['links']) ? channel['links'].filter(isRecord) : []
  if (links.length === 0) return [[`channel ${name}`, 'ready']]
  return links.map((link, at) => [`channel ${name}, link ${at + 1}`, linkText(link)])
}

function linkText(link: Record<string, unknown>): string {
  const since = numberOf(link['since'])
  const next = numberOf(link['nextInMs'])
  return [
    textOf(link['state']),
    ...(since > 0 ? [`since ${new Date(since).toISOString().slice(0, 19).replace('T', ' ')} UTC`] : []),
    ...(next > 0 ? [`next try in ${duration(next)}`] : []),
    ...(typeof link['lastError'] === 'string' ? [link['lastError']] : []),
    textOf(link['url']),
  ].join(', ')
}

function serversOf(mcp: unknown): readonly Record<string, unknown>[] {
  const servers = recordOf(mcp)['servers']
  return Array.isArray(servers) ? servers.filter(isRecord) : []
}

function mcpText(server: Record<string, unknown>): string {
  return [textOf(server['state']), textOf(server['reason'])].filter((word) => word !== '').join(': ')
}

function recordOf(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {}
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : 0
}
