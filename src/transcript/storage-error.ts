import { errnoOf } from '../base/files.ts'
import { JournalRefused } from '../base/journal.ts'
import { GatewayError } from '../core/errors.ts'

/** A failure of the disk in the words of this house; what is one of ours already passes. */
export function toStorageError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  const cause = error instanceof JournalRefused ? error.cause : error
  const errno = errnoOf(cause)
  if (errno === 'ENOSPC' || errno === 'EDQUOT') {
    return new GatewayError('STORAGE_FULL', 'the disk is full; nothing was stored', { errno }, { cause: error })
  }
  return new GatewayError(
    'STORAGE_FAILED',
    'the transcript could not be stored durably',
    errno === undefined ? {} : { errno },
    { cause: error },
  )
}
