import { readLockHolder, isAbandoned } from '../../base/lock-file.ts'
import type { Config } from '../../config/config.ts'
import { freeDiskBytes, listenFailure, openFilesLimit } from '../../platform/machine.ts'
import type { Contact } from '../contact.ts'
import { homeAccessProblems } from '../home-access.ts'
import type { HomePaths } from '../home.ts'
import type { Platform } from '../platform.ts'
import { ok, problem, warning, type DoctorCheck } from './check.ts'
import type { DoctorWords } from './words.ts'

const MEGABYTE = 1024 * 1024
const LEAST_FREE_BYTES = 50 * MEGABYTE
const LITTLE_FREE_BYTES = 1024 * MEGABYTE
const ENOUGH_DESCRIPTORS = 1_024

export async function checkHome(platform: Platform, paths: HomePaths, words: DoctorWords): Promise<DoctorCheck[]> {
  const { files, ids } = platform
  const stat = await files.stat(paths.home)
  if (stat === undefined) return [ok('home', words.noHome(paths.home))]
  const probe = `${paths.home}/.doctor-${ids.hex(8)}`
  try {
    await (await files.open(probe, 'create')).close()
    await files.remove(probe)
  } catch {
    return [problem('home', words.homeUnwritable(paths.home), words.makeWritable)]
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
