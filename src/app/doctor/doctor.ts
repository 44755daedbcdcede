import { isRecord } from '../../base/json.ts'
import type { Config } from '../../config/config.ts'
import type { Environment } from '../../config/environment.ts'
import { checkConfig, loadConfig } from '../../config/load.ts'
import { formatProblem } from '../../config/problem.ts'
import { toGatewayError } from '../../core/errors.ts'
import { deadline } from '../../platform/web.ts'
import type { Contact } from '../contact.ts'
import type { HomePaths } from '../home.ts'
import type { Platform } from '../platform.ts'
import { startBreaches } from '../start-check.ts'
import { ok, problem, warning, type DoctorCheck } from './check.ts'
import { checkClock, checkDescriptors, checkDisk, checkHome, checkLocks, checkPort } from './machine-checks.ts'
import { checkChannels, checkMcp, checkMessages, checkTranscripts, type GatewayStatus } from './gateway-checks.ts'
import { checkModels } from './model-check.ts'
import { checkDatabase } from './storage-check.ts'
import type { DoctorWords } from './words.ts'

export interface DoctorOptions {
  readonly paths: HomePaths
  readonly env: Environment
  readonly words: DoctorWords
  /** Of the gateway that runs in this home. */
  readonly contact: Contact | undefined
  readonly status: GatewayStatus
  /** For each question to a model. */
  readonly timeoutMs: number
}

/** Looks at everything that can be wrong and changes nothing. A check that fails itself is a problem of that name. */
export async function examine(platform: Platform, options: DoctorOptions): Promise<readonly DoctorCheck[]> {
  const { paths, words, contact, status, timeoutMs } = options
  const { config, checks } = await checkConfiguration(platform, options)
  const limit = (): AbortSignal => deadline(timeoutMs)
  const learned = learnedModels(status)
  const groups: readonly (readonly [string, () => Promise<readonly DoctorCheck[]>])[] = [
    ['home', () => checkHome(platform, paths, words)],
    ['disk', () => checkDisk(paths, words)],
    ['clock', async () => [await checkClock(platform, { config, paths }, words, limit())]],
    ['port', async () => (config === undefined ? [] : [await checkPort(config, contact, words)])],
    ['descriptors', () => checkDescriptors(words)],
    ['database', async () => (config === undefined ? [] : checkDatabase(platform, config, words, timeoutMs))],
    ['locks', async () => [await checkLocks(platform, paths, words)]],
    ['model', async () => (config === undefined ? [] : checkModels(platform, { config, learned }, words, limit))],
    ['channel', async () => [...checkChannels(config, status, words), ...checkMcp(status, words)]],
    ['messages', async () => checkMessages(status, words)],
    ['transcripts', async () => [await checkTranscripts(platform, paths, status, words)]],
  ]
  const found: DoctorCheck[] = [...checks]
  for (const [name, check] of groups) found.push(...(await check().catch((error: unknown) => [failed(name, error)])))
  return found
}

function failed(name: string, thrown: unknown): DoctorCheck {
  const { message, code } = toGatewayError(thrown)
  return problem(name, `${message} (${code})`)
}

async function checkConfiguration(
  platform: Platform,
  { paths, env, words }: DoctorOptions,
): Promise<{ readonly config: Config | undefined; readonly checks: readonly DoctorCheck[] }> {
  const name = 'configuration'
  const options = { files: platform.files, path: paths.config, env }
  try {
    const problems = await checkConfig({
      ...options,
      further: (config) => startBreaches(platform, { config, paths }),
    })
    const checks = problems.map((found) => {
      const fix = found.isUnset === true ? words.setVariable : words.correctConfiguration
      return (found.severity === 'error' ? problem : warning)(name, formatProblem(found), fix)
    })
    const config = await loadConfig(options).then(
      (loaded) => loaded.config,
      () => undefined,
    )
    if (checks.length > 0) return { config, checks }
    const isThere = (await platform.files.stat(paths.config)) !== undefined
    const message = isThere ? words.configurationFine(paths.config) : words.noConfiguration(paths.home)
    return { config, checks: [ok(name, message)] }
  } catch (thrown) {
    return { config: undefined, checks: [failed(name, thrown)] }
  }
}

/** Models whose window came from their provider. */
function learnedModels(status: GatewayStatus): readonly string[] {
  const list = status?.['learnedWindows']
  if (!Array.isArray(list)) return []
  return list.flatMap((each: unknown) => (isRecord(each) && typeof each['model'] === 'string' ? [each['model']] : []))
}
