import type { JsonValue } from '../../base/json.ts'
import { homePaths } from '../../app/home.ts'
import { nodeProcesses } from '../../platform/node-processes.ts'
import { pause } from '../../platform/web.ts'
import { GatewayError } from '../../core/errors.ts'
import { apiOf, commandLine, findGateway, requireContact, type CommonOptions } from '../connect.ts'
import { printJson, printLines } from '../output.ts'
import { contactUrl } from '../../app/contact.ts'

const LOOK_EVERY_MS = 100

/** Ends the gateway of this home in order: running answers get their drain time. */
export async function stop(options: CommonOptions & { readonly timeout: number }): Promise<void> {
  const running = await findGateway(options)
  if (running === undefined) {
    const { home } = homePaths(options.home, process.env)
    if (options.json === true) return printJson({ stopped: false, running: false })
    return printLines([`no gateway runs in ${home}`])
  }
  const { pid } = running.contact.process
  process.kill(pid, 'SIGTERM')
  for (let waitedMs = 0; nodeProcesses.isAlive(running.contact.process); waitedMs += LOOK_EVERY_MS) {
    if (waitedMs > options.timeout * 1_000)
      throw new GatewayError('GATEWAY_UNREACHABLE', `the gateway (pid ${pid}) still runs after ${options.timeout} s`, {
        pid,
      })
    await pause(LOOK_EVERY_MS)
  }
  if (options.json === true) printJson({ stopped: true, pid })
  else printLines([`stopped the gateway (pid ${pid})`])
}

/** Has the gateway of this home read its configuration again. */
export async function reload(options: CommonOptions): Promise<void> {
  const running = await requireContact(options)
  const report = await apiOf(running).post('/api/reload')
  if (options.json === true) return printJson(report)
  const [applied, restart, warnings] = [report['applied'], report['restart'], report['warnings']].map(textList)
  const lines = [
    ...(applied ?? []).map((key) => `applied        ${key}`),
    ...(restart ?? []).map((key) => `needs restart  ${key}`),
  ]
  printLines([
    ...(warnings ?? []).map((warning) => `warning: ${warning}`),
    ...(lines.length === 0 ? ['nothing has changed'] : lines),
    ...(restart === undefined || restart.length === 0 ? [] : [`restart with: ${commandLine('restart', options)}`]),
  ])
}

function textList(value: JsonValue | undefined): readonly string[] {
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : []
}

/** A link that opens the dashboard once, without the token. */
export async function dashboard(options: CommonOptions): Promise<void> {
  const running = await requireContact(options)
  const { code } = await apiOf(running).post('/api/codes')
  const url = contactUrl(running.contact, 'http')
  const link = typeof code === 'string' ? `${url}/#code=${code}` : url
  if (options.json === true) printJson({ url: link })
  else printLines([link])
}
