import type { JournalFailed } from '../base/journal.ts'
import type { Log } from '../base/log.ts'
import { GatewayError } from '../core/errors.ts'

export interface JournalWatch {
  /** Rejects once the journal failed; never resolves. */
  readonly failed: Promise<never>
  readonly report: (error: JournalFailed) => void
}

/** A journal that cannot make data durable ends the program: nothing more may be acknowledged. */
export function createJournalWatch(log: Log): JournalWatch {
  let reject: (error: Error) => void = () => undefined
  const failed = new Promise<never>((_resolve, rejectFailed) => {
    reject = rejectFailed
  })
  // A command that never waits for the failure must not end on an unhandled rejection.
  failed.catch(() => undefined)
  return {
    failed,
    report: (error) => {
      log.error('the journal failed; nothing more is acknowledged', {
        cause: error.cause instanceof Error ? error.cause.name : 'unknown',
      })
      reject(
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
