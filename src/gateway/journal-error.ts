import { errnoOf } from '../base/files.ts'
import { JournalFailed, JournalRefused } from '../base/journal.ts'
import { GatewayError } from '../core/errors.ts'

/** What a journal that could not take a commit means to the one who sent the message. Anything else passes. */
export function journalError(error: unknown): unknown {
  if (error instanceof JournalFailed)
    return new GatewayError(
      'STORAGE_FAILED',
      'the message could not be stored; nothing was accepted',
      {},
      { cause: error },
    )
  if (!(error instanceof JournalRefused)) return error
  const errno = errnoOf(error.cause)
  if (errno === 'ENOSPC' || errno === 'EDQUOT')
    return new GatewayError('STORAGE_FULL', 'the disk is full; nothing was accepted', {}, { cause: error })
  return new GatewayError('STORAGE_FAILED', 'the message could not be stored; try again later', {}, { cause: error })
}
