import { isRecord } from '../../base/json.ts'
import type { Config } from '../../config/config.ts'
import { checkTranscript } from '../../transcript/check.ts'
import type { HomePaths } from '../home.ts'
import type { Platform } from '../platform.ts'
import { ok, problem, warning, type DoctorCheck } from './check.ts'
import type { DoctorWords } from './words.ts'

/** `/api/status` of the running gateway; undefined when none runs. */
export type GatewayStatus = Readonly<Record<string, unknown>> | undefined

const MAX_TRANSCRIPTS = 500
const MAX_TRANSCRIPT_BYTES = 256 * 1024 * 1024

export function checkChannels(config: Config | undefined, status: GatewayStatus, words: DoctorWords): DoctorCheck[] {
  if (status === undefined) {
    const isOn = config?.channels.xiaoyi.enabled === true
    return isOn ? [ok('channel xiaoyi', words.channelUnknown)] : []
  }
  return Object.entries(recordOf(status['channels'])).flatMap(([name, value]) => {
    const { links, hub } = recordOf(value)
    return [...(Array.isArray(links) ? links : []), hub]
      .filter(isRecord)
      .map((link) => linkCheck(`channel ${name}`, link, words))
  })
}

/** What counts as working in the words of the channels; a link that is stopped is not needed now, or another node's. */
const UP = new Set(['up', 'open', 'resting', 'stopped'])

function linkCheck(label: string, link: Readonly<Record<string, unknown>>, words: DoctorWords): DoctorCheck {
  const state = textOf(link['state'])
  return UP.has(state)
    ? ok(label, words.channelFine(state))
    : problem(label, words.channelDown(state, textOf(link['lastError'])), words.checkChannel)
}

export function checkMcp(status: GatewayStatus, words: DoctorWords): DoctorCheck[] {
  const { servers } = recordOf(status?.['mcp'])
  return (Array.isArray(servers) ? servers : []).filter(isRecord).map((server) => {
    const label = `mcp ${textOf(server['server'])}`
    return server['state'] === 'ready'
      ? ok(label, words.mcpFine)
      : warning(label, words.mcpDown(textOf(server['reason'])), words.checkChannel)
  })
}

export function checkMessages(status: GatewayStatus, words: DoctorWords): DoctorCheck[] {
  if (status === undefined) return [ok('messages', words.messagesUnknown)]
  const poisoned = countOf(status['poisoned'])
  const unknown = countOf(recordOf(status['replies'])['unknown'])
  const found = [
    ...(poisoned > 0 ? [problem('messages', words.poisoned(poisoned), words.lookAtLogs)] : []),
    ...(unknown > 0 ? [warning('messages', words.unknownDelivery(unknown), words.askClients)] : []),
  ]
  return found.length > 0 ? found : [ok('messages', words.messagesFine)]
}

/** Reads them; the number and size of those read are bounded, and the check says how many there were. */
export async function checkTranscripts(
  { files }: Platform,
  paths: HomePaths,
  status: GatewayStatus,
  words: DoctorWords,
): Promise<DoctorCheck> {
  const names = (await files.list(paths.transcripts)).filter((name) => name.endsWith('.jsonl'))
  const damaged: string[] = []
  let [checked, bytes] = [0, 0]
  for (const name of names) {
    const path = `${paths.transcripts}/${name}`
    bytes += (await files.stat(path))?.size ?? 0
    if (checked >= MAX_TRANSCRIPTS || bytes > MAX_TRANSCRIPT_BYTES) break
    checked++
    const report = await checkTranscript(files, path).catch(() => undefined)
    // A running gateway may be in the middle of the last line.
    const notes = report?.notes.filter(({ kind }) => status === undefined || kind !== 'torn-tail') ?? []
    if (report?.isHealthy === false && notes.length > 0) damaged.push(path)
  }
  const [first] = damaged
  return first === undefined
    ? ok('transcripts', words.transcripts(checked, names.length))
    : problem('transcripts', words.damaged(damaged.length, first), words.repair(first))
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : {}
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function countOf(value: unknown): number {
  if (Array.isArray(value)) return value.length
  return typeof value === 'number' ? value : 0
}
