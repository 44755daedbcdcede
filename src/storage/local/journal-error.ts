import { JournalFailed, JournalRefused } from '../files/journal.ts'
import { GatewayError } from '../../core/errors.ts'
import { shortageOf } from '../../core/shortage.ts'

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
  const shortage = shortageOf(error.cause)
  if (shortage === 'TOO_MANY_OPEN_FILES')
    return new GatewayError(shortage, 'no more files can be opened; nothing was accepted', {}, { cause: error })
  if (shortage === 'STORAGE_FULL')
    return new GatewayError('STORAGE_FULL', 'the disk is full; nothing was accepted', {}, { cause: error })
  return new GatewayError('STORAGE_FAILED', 'the message could not be stored; try again later', {}, { cause: error })
}
