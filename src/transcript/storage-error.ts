import { errnoOf } from '../base/files.ts'
import { GatewayError } from '../core/errors.ts'
import { shortageOf } from '../core/shortage.ts'

/** A failure of the disk as a `GatewayError`; an error that is one already passes. */
export function toStorageError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  const errno = errnoOf(error) ?? (error instanceof Error ? errnoOf(error.cause) : undefined)
  const facts = errno === undefined ? {} : { errno }
  const shortage = shortageOf(error)
  if (shortage === 'STORAGE_FULL')
    return new GatewayError(shortage, 'the disk is full; nothing was stored', facts, { cause: error })
  if (shortage === 'TOO_MANY_OPEN_FILES')
    return new GatewayError(shortage, 'no more files can be opened; nothing was stored', facts, { cause: error })
  return new GatewayError('STORAGE_FAILED', 'the transcript could not be stored durably', facts, { cause: error })
}
