import { isRecord, type JsonObject } from '../../base/json.ts'
import { homePaths } from '../../app/home.ts'
import { apiOf, commandLine, findGateway, type CommonOptions } from '../connect.ts'
import { EXIT_FAILURE } from '../exit-codes.ts'
import { chooseLanguage } from '../../core/language.ts'
import { languageOf } from '../language.ts'
import { duration, printJson, printLines, table } from '../output.ts'
import { STATUS_WORDS, type StatusWords } from '../status-words.ts'

export async function status(options: CommonOptions): Promise<void> {
  const running = await findGateway(options)
  const words = STATUS_WORDS[chooseLanguage(await languageOf(running))]
  if (running === undefined) {
    process.exitCode = EXIT_FAILURE
    if (options.json === true) return printJson({ running: false })
    const { home } = homePaths(options.home, process.env)
    return printLines([words.notRunning(home, commandLine('start', options))])
  }
  const report: JsonObject = { running: true, ...(await apiOf(running).get('/api/status')) }
  if (options.json === true) printJson(report)
  else printLines(table(describe(report, words)))
}

/** The report in words; `--json` has everything it holds. */
export function describe(report: JsonObject, words: StatusWords): string[][] {
  const activity = recordOf(report['activity'])
  const replies = recordOf(report['replies'])
  const uptime = duration(numberOf(report['uptimeSeconds']) * 1_000)
  return [
    [words.gateway, words.gatewayState(textOf(report['version']), textOf(report['state']), uptime)],
    [words.home, textOf(report['home'])],
    [words.model, textOf(report['model'])],
    [words.answers, words.answersNow(numberOf(activity['running']), numberOf(activity['queued']))],
    [words.conversations, `${numberOf(report['sessions'])}`],
    [words.replies, words.repliesNow(numberOf(replies['waiting']), numberOf(replies['unknown']))],
    ...Object.entries(recordOf(report['providers'])).map(([name, value]) => [
      words.provider(name),
      providerText(recordOf(value), words),
    ]),
    ...Object.entries(recordOf(report['channels'])).flatMap(([name, value]) =>
      channelRows(name, recordOf(value), words),
    ),
    ...serversOf(report['mcp']).map((server) => [`MCP ${textOf(server['server'])}`, mcpText(server)]),
  ]
}

function providerText(provider: Record<string, unknown>, words: StatusWords): string {
  const circuit = textOf(provider['circuit'])
  const waiting = numberOf(provider['waiting'])
  const failure = textOf(recordOf(provider['lastFailure'])['code'])
  return [
    words.circuits[circuit] ?? circuit,
    words.running(numberOf(provider['running'])),
    ...(waiting > 0 ? [words.slow(waiting, duration(numberOf(provider['slowestMs'])))] : []),
    ...(circuit !== 'closed' && failure !== '' ? [words.lastFailure(failure)] : []),
  ].join('')
}

/** A row for each link that the channel keeps: XiaoYi's servers, or the hub that the webhook dials. */
function channelRows(name: string, channel: Record<string, unknown>, words: StatusWords): string[][] {
  const links = Array.isArray(channel['links']) ? channel['links'].filter(isRecord) : []
  const hub = isRecord(channel['hub']) ? [[words.hub(name), linkText(channel['hub'], words)]] : []
  const own = links.length === 0 ? [[words.channel(name), words.ready]] : []
  return [...own, ...links.map((link, at) => [words.link(name, at + 1), linkText(link, words)]), ...hub]
}

function linkText(link: Record<string, unknown>, words: StatusWords): string {
  const since = numberOf(link['since'])
  const next = numberOf(link['nextInMs'])
  return [
    textOf(link['state']),
    ...(since > 0 ? [words.since(new Date(since).toISOString().slice(0, 19).replace('T', ' '))] : []),
    ...(next > 0 ? [words.nextTry(duration(next))] : []),
    ...[textOf(link['lastError'])].filter((reason) => reason !== ''),
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
