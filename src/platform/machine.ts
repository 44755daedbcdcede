import { access, constants, readFile, stat, statfs } from 'node:fs/promises'
import { createServer } from 'node:net'
import { dirname } from 'node:path'
import { errnoOf } from '../base/files.ts'

/** Of the disk that holds the path, or will hold it; undefined where the system does not tell. */
export async function freeDiskBytes(path: string): Promise<number | undefined> {
  try {
    const { bavail, bsize } = await statfs(path)
    return bavail * bsize
  } catch (error) {
    return errnoOf(error) === 'ENOENT' && path !== dirname(path) ? freeDiskBytes(dirname(path)) : undefined
  }
}

/** Whether a folder that is not there can be made: where its path begins there is one in which this user may write. */
export async function canMakeFolder(path: string): Promise<boolean> {
  const parent = dirname(path)
  try {
    if (!(await stat(parent)).isDirectory()) return false
    await access(parent, constants.W_OK | constants.X_OK)
    return true
  } catch (error) {
    return errnoOf(error) === 'ENOENT' && parent !== dirname(parent) && canMakeFolder(parent)
  }
}

/** How many files this process may hold open; undefined where the system does not tell. */
export async function openFilesLimit(): Promise<number | undefined> {
  const limits = await readFile('/proc/self/limits', 'utf8').catch(() => '')
  const soft = /^Max open files +(\d+)/mu.exec(limits)?.[1]
  return soft === undefined ? undefined : Number(soft)
}

/** Undefined when the address is free, else the system's code, `EADDRINUSE` for example. */
export function listenFailure(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', (error) => resolve(errnoOf(error) ?? 'UNKNOWN'))
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(undefined)))
  })
}
