import { DatabaseError } from '../base/database.ts'
import { errnoOf } from '../base/files.ts'
import { JournalFailed } from '../storage/files/journal.ts'
import { GatewayError } from '../core/errors.ts'

/** A failure of the disk at start, with the path it is about, the system's code and what to do. Others pass. */
export function homeError(error: unknown, home: string): unknown {
  if (error instanceof GatewayError && (!WITHOUT_PATH.has(error.code) || error.cause instanceof DatabaseError))
    return error
  if (error instanceof JournalFailed && error.cause instanceof GatewayError) return error.cause
  const cause = causeWithErrno(error)
  const errno = errnoOf(cause)
  if (errno === undefined) return error
  const path = pathOf(cause) ?? home
  const facts = { home, path, errno }
  if (errno === 'ENOSPC' || errno === 'EDQUOT')
    return new GatewayError('STORAGE_FULL', `no space left on the disk of ${home} (${errno}, ${path})`, facts, {
      cause: error,
    })
  if (errno === 'EMFILE' || errno === 'ENFILE') return tooManyOpenFiles(errno, path, error)
  const remedy = REMEDIES[errno]
  if (remedy === undefined) {
    return new GatewayError('STORAGE_FAILED', `cannot use ${path} (${errno}); check the disk`, facts, { cause: error })
  }
  return new GatewayError('HOME_UNWRITABLE', `cannot use ${path} (${errno}); ${remedy}`, facts, { cause: error })
}

export function tooManyOpenFiles(errno: string, path: string | undefined, cause: unknown): GatewayError {
  const where = path === undefined ? errno : `${errno}, ${path}`
  return new GatewayError(
    'TOO_MANY_OPEN_FILES',
    `the system lets this process open no more files (${where}); raise the limit to 1024 or more (ulimit -n, or LimitNOFILE= of the service)`,
    path === undefined ? { errno } : { errno, path },
    { cause },
  )
}

/** What the transcript store says of a disk; here the path belongs to it. */
const WITHOUT_PATH = new Set(['STORAGE_FAILED', 'STORAGE_FULL'])

const OTHER_HOME = 'choose another --home'
const REMEDIES: Readonly<Record<string, string>> = {
  EACCES: `give this user the right to write there, or ${OTHER_HOME}`,
  EPERM: `give this user the right to write there, or ${OTHER_HOME}`,
  EROFS: `the disk is read-only; ${OTHER_HOME}`,
  ENOTDIR: `a file stands where a folder belongs; move it away, or ${OTHER_HOME}`,
  EISDIR: `a folder stands where a file belongs; move it away, or ${OTHER_HOME}`,
  EEXIST: `something else stands there, most likely a link to nothing; remove it, or ${OTHER_HOME}`,
  ENOENT: `a folder above it is missing, or it is a link to nothing; remove the link, or ${OTHER_HOME}`,
  ELOOP: `it is a link that leads to itself; remove it, or ${OTHER_HOME}`,
  ENAMETOOLONG: `the path is too long; ${OTHER_HOME}`,
  ENOSYS: `this file system takes no files; ${OTHER_HOME}`,
  EINVAL: `this file system refuses it; ${OTHER_HOME}`,
}

function causeWithErrno(error: unknown): unknown {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth++) {
    if (errnoOf(at) !== undefined && !(at instanceof GatewayError)) return at
  }
  return undefined
}

function pathOf(error: unknown): string | undefined {
  return error instanceof Error && 'path' in error && typeof error.path === 'string' ? error.path : undefined
}
