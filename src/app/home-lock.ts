import type { Clock, Timer } from '../base/clock.ts'
import { errnoOf, readWhole, type Files } from '../base/files.ts'
import { isRecord, parseJson } from '../base/json.ts'
import type { ProcessIdentity } from '../base/processes.ts'
import { GatewayError } from '../core/errors.ts'
import type { Platform } from './platform.ts'

type LockPorts = Pick<Platform, 'files' | 'clock' | 'ids' | 'processes' | 'log'>

/** A lock whose owner died between creating and filling it says nothing; this old it belongs to nobody. */
const EMPTY_LOCK_MS = 3_000
const ATTEMPTS = 5
/** A pid means nothing on another host; there only a lock that is being renewed has a living owner. */
const RENEW_MS = 15_000
const FOREIGN_STALE_MS = 60_000

/**
 * One gateway per home, also inside one process. The lock names its process by pid and start time, so one that was
 * killed leaves nothing behind that counts; one on another host (a container that was replaced) counts until its lock
 * has not been renewed for a minute. Resolves with the release; fails at once with `HOME_IN_USE`.
 */
export async function lockHome(ports: LockPorts, home: string, path: string): Promise<() => Promise<void>> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const release = await tryCreate(ports, path)
    if (release !== undefined) return release
    const owner = await livingOwner(ports, path)
    if (owner !== undefined) throw inUse(home, owner)
    await takeAway(ports, path)
  }
  throw inUse(home, undefined)
}

async function tryCreate(
  { files, clock, processes, ids }: LockPorts,
  path: string,
): Promise<(() => Promise<void>) | undefined> {
  const handle = await files.open(path, 'create').catch((error: unknown) => {
    if (errnoOf(error) === 'EEXIST') return undefined
    throw error
  })
  if (handle === undefined) return undefined
  try {
    const content = `${JSON.stringify({ ...processes.self, token: ids.hex(16) })}\n`
    await handle.write(content, 0)
    const { identity } = handle.stat()
    const forgetExit = processes.onExit(path, identity)
    const stopRenewing = renew(clock, async () => handle.write(content, 0))
    return async () => {
      stopRenewing()
      forgetExit()
      await handle.close()
      if ((await files.stat(path))?.identity === identity) await files.remove(path)
    }
  } catch (error) {
    await handle.close()
    await files.remove(path).catch(() => undefined)
    throw error
  }
}

/** Writing the same again moves the time of the last change, and nothing else. */
function renew(clock: Clock, write: () => Promise<void>): () => void {
  let timer: Timer | undefined
  const arm = (): void => {
    timer = clock.after(RENEW_MS, () => {
      // A disk that takes no more writes shows in the journal; the lock has nothing to add.
      void write().catch(() => undefined)
      arm()
    })
  }
  arm()
  return () => timer?.cancel()
}

/** Undefined when the lock may be taken away. */
async function livingOwner(
  { files, clock, processes }: LockPorts,
  path: string,
): Promise<ProcessIdentity | 'unknown' | undefined> {
  const stat = await files.stat(path)
  if (stat === undefined) return undefined
  const owner = await readOwner(files, path)
  const age = clock.now() - stat.modifiedAt
  if (owner !== undefined && owner.host !== processes.self.host) return age < FOREIGN_STALE_MS ? owner : undefined
  if (owner !== undefined) return processes.isAlive(owner) ? owner : undefined
  return age > EMPTY_LOCK_MS ? undefined : 'unknown'
}

async function readOwner(files: Files, path: string): Promise<ProcessIdentity | undefined> {
  const bytes = await readWhole(files, path, 64 * 1024)
  const owner = bytes === undefined ? undefined : parseJson(new TextDecoder().decode(bytes))
  if (!isRecord(owner)) return undefined
  const { pid, startedAt, host } = owner
  if (typeof pid !== 'number' || typeof startedAt !== 'string' || typeof host !== 'string') return undefined
  return { pid, startedAt, host }
}

/** By renaming, which only one of several starters can win. */
async function takeAway({ files, ids, log }: LockPorts, path: string): Promise<void> {
  const aside = `${path}.stale-${ids.hex(8)}`
  try {
    await files.rename(path, aside)
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return
    throw error
  }
  await files.remove(aside)
  log.info('took over the home of a gateway that ended without saying so')
}

function inUse(home: string, owner: ProcessIdentity | 'unknown' | undefined): GatewayError {
  const who = typeof owner === 'object' ? ` (pid ${owner.pid})` : ''
  const facts = typeof owner === 'object' ? { pid: owner.pid } : {}
  return new GatewayError(
    'HOME_IN_USE',
    `another gateway${who} already runs in ${home}; stop it, or use another --home`,
    facts,
  )
}
