import type { Config } from '../../config/config.ts'
import { endpointOf } from '../../provider/endpoint.ts'
import { resolveConfig } from '../../provider/provider-config.ts'
import { toProviderSettings } from '../agent.ts'
import type { HomePaths } from '../home.ts'
import type { Platform } from '../platform.ts'
import { ok, warning, type DoctorCheck } from './check.ts'
import type { DoctorWords } from './words.ts'

/** This program did not exist before. */
const EARLIEST = Date.UTC(2025, 0, 1)
/** XiaoYi signs with the time, and providers' tokens have one: some minutes are tolerated everywhere. */
const TOLERATED_MS = 2 * 60_000
const FUTURE_MS = 60 * 60_000

/** Against common sense, against the files of this home, and against the clock of a server that is used anyway. */
export async function checkClock(
  platform: Platform,
  { config, paths }: { readonly config: Config | undefined; readonly paths: HomePaths },
  words: DoctorWords,
  signal: AbortSignal,
): Promise<DoctorCheck> {
  const now = platform.clock.now()
  if (now < EARLIEST) return warning('clock', words.clockWrong(new Date(now).toISOString()), words.setClock)
  for (const path of [paths.sessionsFile, paths.config, paths.journal]) {
    const stat = await platform.files.stat(path)
    if (stat !== undefined && stat.modifiedAt > now + FUTURE_MS)
      return warning('clock', words.clockBefore(path), words.setClock)
  }
  const server = config === undefined ? undefined : serverOf(config)
  const offset = server === undefined ? undefined : await offsetOf(platform, server, signal)
  if (server !== undefined && offset !== undefined && Math.abs(offset) > TOLERATED_MS)
    return warning('clock', words.clockOff(Math.round(Math.abs(offset) / 1000), server.host), words.setClock)
  return ok('clock', words.clockFine)
}

function serverOf({ model: [first], providers }: Config): URL | undefined {
  const name = first.slice(0, Math.max(0, first.indexOf('/')))
  const settings = Object.hasOwn(providers, name) ? providers[name] : undefined
  if (settings === undefined) return undefined
  const { wireApi, baseUrl } = resolveConfig(name, toProviderSettings(settings))
  return new URL('/', endpointOf(wireApi, baseUrl, name)('x'))
}

async function offsetOf({ http, clock }: Platform, url: URL, signal: AbortSignal): Promise<number | undefined> {
  try {
    const times = { connectTimeoutMs: 3_000, firstByteTimeoutMs: 3_000, idleTimeoutMs: 3_000 }
    const { headers } = await http.request({ method: 'HEAD', url: url.href, headers: {}, ...times }, signal)
    const theirs = Date.parse(headers.get('date') ?? '')
    return Number.isNaN(theirs) ? undefined : theirs - clock.now()
  } catch {
    // Whether it can be reached is another check's business.
    return undefined
  }
}
