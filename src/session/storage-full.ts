import { sleep } from '../base/async.ts'
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import { GatewayError } from '../core/errors.ts'
import { shortageOf, type Shortage } from '../core/shortage.ts'

export interface StorageFullDeps {
  readonly clock: Clock
  readonly log: Log
  /** Ends the waiting: then the call rejects with the signal's reason. */
  readonly signal: AbortSignal
  /** `work` may be done twice: it is tried again too while the database is away, when it may have been done or not. */
  readonly isRepeatable?: true
}

const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 30_000
/** A database comes back by itself, and many wait for it. */
const LONGEST_PAUSE_AWAY_MS = 2_000

/**
 * For what belongs to a message that was accepted: while the disk is full, or no file can be opened, `work` is tried
 * again with growing pauses, so that the message is answered when that is over. Any other failure passes. `work` must
 * leave nothing behind when it fails so.
 */
export async function retryWhileStorageFull<T>(work: () => Promise<T>, deps: StorageFullDeps): Promise<T> {
  const { clock, log, signal, isRepeatable = false } = deps
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)) {
    try {
      return await work()
    } catch (error) {
      const shortage = shortageOf(error)
      const isAway = isRepeatable && error instanceof GatewayError && error.code === 'STORAGE_UNAVAILABLE'
      if (shortage === undefined && !isAway) throw error
      if (shortage !== undefined && pauseMs === FIRST_PAUSE_MS) log.error(WAITING[shortage], { code: shortage })
      await sleep(clock, isAway ? Math.min(pauseMs, LONGEST_PAUSE_AWAY_MS) : pauseMs, signal)
    }
  }
}

const WAITING: Readonly<Record<Shortage, string>> = {
  STORAGE_FULL: 'the disk is full; an accepted message waits until there is space again',
  TOO_MANY_OPEN_FILES:
    'no more files can be opened; an accepted message waits. Raise the limit: ulimit -n, or LimitNOFILE= of the service',
}
