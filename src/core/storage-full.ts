import { sleep, type Clock } from '../base/clock.ts'
import { errnoOf } from '../base/files.ts'
import type { Log } from '../base/log.ts'
import { GatewayError } from './errors.ts'

export interface StorageFullDeps {
  readonly clock: Clock
  readonly log: Log
  /** Ends the waiting: then the call rejects with the signal's reason. */
  readonly signal: AbortSignal
}

const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 30_000

/**
 * For what belongs to a message that was accepted: while the disk is full, `work` is tried again with growing pauses, so
 * that the message is answered when space returns. Any other failure passes. `work` must leave nothing behind when it
 * fails for lack of space.
 */
export async function retryWhileStorageFull<T>(work: () => Promise<T>, deps: StorageFullDeps): Promise<T> {
  const { clock, log, signal } = deps
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2)) {
    try {
      return await work()
    } catch (error) {
      if (!isStorageFull(error)) throw error
      if (pauseMs === FIRST_PAUSE_MS)
        log.error('the disk is full; an accepted message waits until there is space again', { code: 'STORAGE_FULL' })
      await sleep(clock, pauseMs, signal)
    }
  }
}

function isStorageFull(error: unknown): boolean {
  if (error instanceof GatewayError) return error.code === 'STORAGE_FULL'
  const errno = errnoOf(error) ?? (error instanceof Error ? errnoOf(error.cause) : undefined)
  return errno === 'ENOSPC' || errno === 'EDQUOT'
}
