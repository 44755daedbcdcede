import { errnoOf } from '../base/files.ts'
import type { JournalFailed } from '../storage/files/journal.ts'
import type { Log } from '../base/log.ts'
import { GatewayError } from '../core/errors.ts'

export interface StorageWatch {
  /** Rejects once nothing may be acknowledged any more; never resolves. */
  readonly failed: Promise<never>
  journalFailed(error: JournalFailed): void
  homeLost(error: GatewayError): void
}

/** A journal that cannot make data durable, or a home that another process owns, ends the program. */
export function createStorageWatch(log: Log): StorageWatch {
  let reject: (error: Error) => void = () => undefined
  const failed = new Promise<never>((_resolve, rejectFailed) => {
    reject = rejectFailed
  })
  // A command that never waits for the failure must not end on an unhandled rejection.
  failed.catch(() => undefined)
  let isLost = false
  const homeLost = (error: GatewayError): void => {
    // The renewal and the journal both notice.
    if (isLost) return
    isLost = true
    log.error('another process owns the home; nothing more is acknowledged', { code: error.code })
    reject(error)
  }
  return {
    failed,
    homeLost,
    journalFailed: (error) => {
      if (error.cause instanceof GatewayError) return homeLost(error.cause)
      log.error('the journal failed; nothing more is acknowledged', { errno: errnoOf(error.cause) })
      return reject(
        new GatewayError(
          'STORAGE_FAILED',
          'the disk could not make data durable; the gateway stops so that nothing is acknowledged that could be lost',
          {},
          { cause: error },
        ),
      )
    },
  }
}
