import { readLockHolder, isAbandoned } from '../../base/lock-file.ts'
import type { Config } from '../../config/config.ts'
import { canMakeFolder, freeDiskBytes, listenFailure, openFilesLimit } from '../../platform/machine.ts'
import type { Contact } from '../contact.ts'
import { homeAccessProblems, type HomePaths } from '../home.ts'
import type { Platform } from '../platform.ts'
import { ok, problem, warning, type DoctorCheck } from './check.ts'
import type { DoctorWords } from './words.ts'
import { endpointOf } from '../../provider/endpoint.ts'
import { resolveConfig } from '../../provider/provider-config.ts'
import { toProviderSettings } from '../agent.ts'

const MEGABYTE = 1024 * 1024
const LEAST_FREE_BYTES = 50 * MEGABYTE
const LITTLE_FREE_BYTES = 1024 * MEGABYTE
const ENOUGH_DESCRIPTORS = 1_024

export async function checkHome(
  platform: Platform,
  paths: HomePaths,
  words: DoctorWords,
  canMake: typeof canMakeFolder = canMakeFolder,
): Promise<DoctorCheck[]> {
  const { files, ids } = platform
  const stat = await files.stat(paths.home)
  const unwritable = problem('home', words.homeUnwritable(paths.home), words.makeWritable)
  if (stat === undefined) return [(await canMake(paths.home)) ? ok('home', words.noHome(paths.home)) : unwritable]
  const probe = `${paths.home}/.doctor-${ids.hex(8)}`
  try {
    await (await files.open(probe, 'create')).close()
    await files.remove(probe)
  } catch {
    return [unwritable]
  }
  const shared = await homeAccessProblems(files, paths)
  return shared.length === 0
    ? [ok('home', words.homeFine(paths.home))]
    : shared.map((sentence) => warning('home', sentence))
}

export async function checkDisk(
  { home }: HomePaths,
  words: DoctorWords,
  measure: typeof freeDiskBytes = freeDiskBytes,
): Promise<DoctorCheck[]> {
  const bytes = await measure(home)
  if (bytes === undefined) return []
  const message = words.free(Math.floor(bytes / MEGABYTE))
  if (bytes < LEAST_FREE_BYTES) return [problem('disk', message, words.freeSpace)]
  return [bytes < LITTLE_FREE_BYTES ? warning('disk', message, words.freeSpace) : ok('disk', message)]
}

export async function checkPort(
  { listen: { host, port } }: Pick<Config, 'listen'>,
  contact: Contact | undefined,
  words: DoctorWords,
): Promise<DoctorCheck> {
  if (contact !== undefined) return ok('port', words.portOurs(`${contact.host}:${contact.port}`))
  const address = `${host}:${port}`
  const code = port === 0 ? undefined : await listenFailure(host, port)
  return code === undefined
    ? ok('port', words.portFree(address))
    : problem('port', words.portOther(address, code), words.otherPort)
}

export async function checkDescriptors(
  words: DoctorWords,
  measure: typeof openFilesLimit = openFilesLimit,
): Promise<DoctorCheck[]> {
  const limit = await measure()
  if (limit === undefined) return []
  const message = words.descriptors(limit)
  return [
    limit < ENOUGH_DESCRIPTORS ? warning('descriptors', message, words.raiseDescriptors) : ok('descriptors', message),
  ]
}

/** Lock files whose process is gone. They do no harm, but say that a gateway was killed. */
export async function checkLocks(platform: Platform, paths: HomePaths, words: DoctorWords): Promise<DoctorCheck> {
  const names = (await platform.files.list(paths.transcripts)).filter((name) => name.endsWith('.lock'))
  const candidates = [paths.lock, ...names.map((name) => `${paths.transcripts}/${name}`)]
  let old = 0
  for (const path of candidates) {
    const holder = await readLockHolder(path, platform).catch(() => undefined)
    if (holder !== undefined && isAbandoned(holder, () => false, platform)) old++
  }
  return old === 0 ? ok('locks', words.noLocks) : warning('locks', words.oldLocks(old), words.oldLocksHarmless)
}

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
