import type { Timer } from '../base/clock.ts'
import {
  createLockFile,
  isAbandoned,
  readLockHolder,
  sweepClaims,
  takeOver,
  type IsStale,
  type LockHolder,
  type OwnedLockFile,
} from '../base/lock-file.ts'
import { GatewayError } from '../core/errors.ts'
import type { Platform } from './platform.ts'

type LockDeps = Pick<Platform, 'files' | 'clock' | 'ids' | 'processes' | 'log'>

const ATTEMPTS = 5
/** A pid means nothing on another host; there only a lock that is being renewed has a living owner. */
const RENEW_MS = 15_000
const FOREIGN_STALE_MS = 60_000

export interface HomeLock {
  /** The gateway before us ended without stopping in order. */
  readonly wasAbandoned: boolean
  /** A look at the lock file, for a fence: the error when another process owns the home by now. */
  lost(): GatewayError | undefined
  release(): Promise<void>
}

/**
 * One gateway per home, also inside one process. The lock names its process by pid and start time, so a gateway that was
 * killed leaves nothing behind that counts; one on another host (a container that was replaced) counts until its lock
 * has not been renewed for a minute. Fails at once with `HOME_IN_USE`. `onLost` is called once, when a renewal finds
 * that another process owns the home.
 */
export async function lockHome(
  deps: LockDeps,
  home: string,
  path: string,
  onLost: (error: GatewayError) => void,
): Promise<HomeLock> {
  const isStale = staleRule(deps)
  let found: LockHolder | undefined
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const created = await createLockFile(path, deps)
    if (created !== undefined) return new RenewedHomeLock(created, home, deps, onLost, false)
    const holder = await readLockHolder(path, deps)
    if (holder === undefined) continue
    found = holder
    if (!isAbandoned(holder, isStale, deps)) throw inUse(home, holder)
    const taken = await takeOver(path, holder, isStale, deps)
    if (taken === undefined) continue
    deps.log.info('recovered a home folder whose gateway did not shut down cleanly')
    await sweepClaims(path, isStale, deps)
    return new RenewedHomeLock(taken, home, deps, onLost, true)
  }
  if (found !== undefined) throw inUse(home, undefined)
  throw new GatewayError(
    'HOME_UNWRITABLE',
    `cannot use ${path} (ENOENT): something stands there that cannot be read, most likely a link to nothing; remove it`,
    { home, path, errno: 'ENOENT' },
  )
}

class RenewedHomeLock implements HomeLock {
  readonly wasAbandoned: boolean
  readonly #file: OwnedLockFile
  readonly #home: string
  readonly #deps: LockDeps
  readonly #onLost: (error: GatewayError) => void
  #timer: Timer | undefined

  constructor(
    file: OwnedLockFile,
    home: string,
    deps: LockDeps,
    onLost: (error: GatewayError) => void,
    wasAbandoned: boolean,
  ) {
    this.wasAbandoned = wasAbandoned
    this.#file = file
    this.#home = home
    this.#deps = deps
    this.#onLost = onLost
    this.#renewLater()
  }

  lost(): GatewayError | undefined {
    if (this.#file.isHeld()) return undefined
    return new GatewayError(
      'HOME_LOCK_LOST',
      `another process took over ${this.#home}, or removed its gateway.lock; this gateway stops, and nothing more is accepted`,
      { home: this.#home },
    )
  }

  async release(): Promise<void> {
    this.#timer?.cancel()
    await this.#file.release()
  }

  #renewLater(): void {
    this.#timer = this.#deps.clock.after(RENEW_MS, () => {
      const lost = this.lost()
      if (lost !== undefined) return this.#onLost(lost)
      // A disk that takes no more writes shows in the journal; the lock has nothing to add.
      void this.#file.renew().catch(() => undefined)
      this.#renewLater()
    })
  }
}

function staleRule({ clock, processes }: LockDeps): IsStale {
  return ({ stat }, { host }) => host !== processes.self.host && clock.now() - stat.modifiedAt >= FOREIGN_STALE_MS
}

function inUse(home: string, holder: LockHolder | undefined): GatewayError {
  const pid = holder?.owner?.pid
  return new GatewayError(
    'HOME_IN_USE',
    `another gateway${pid === undefined ? '' : ` (pid ${pid})`} already runs in ${home}; stop it, or use another --home`,
    pid === undefined ? {} : { pid },
  )
}
