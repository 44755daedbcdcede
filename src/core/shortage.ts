import { errnoOf } from '../base/files.ts'
import { GatewayError } from './errors.ts'

export type Shortage = 'STORAGE_FULL' | 'TOO_MANY_OPEN_FILES'

/** What passes by itself: space or descriptors that are in use. */
export function shortageOf(error: unknown): Shortage | undefined {
  if (error instanceof GatewayError)
    return error.code === 'STORAGE_FULL' || error.code === 'TOO_MANY_OPEN_FILES' ? error.code : undefined
  const errno = errnoOf(error) ?? (error instanceof Error ? errnoOf(error.cause) : undefined)
  if (errno === 'ENOSPC' || errno === 'EDQUOT') return 'STORAGE_FULL'
  return errno === 'EMFILE' || errno === 'ENFILE' ? 'TOO_MANY_OPEN_FILES' : undefined
}
