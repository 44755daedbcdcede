import {
  closeSync,
  constants,
  fdatasync,
  fstatSync,
  fsync,
  ftruncate,
  open,
  read,
  readSync,
  statSync,
  write,
  writeSync,
  type Stats,
} from 'node:fs'
import { mkdir, readdir, realpath, rename, rm, stat, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { errnoOf, type FileHandle, type Files, type FileStat, type OpenMode } from '../base/files.ts'

const openFile = promisify(open)
const readAt = promisify(read)
const writeAt = promisify(write)
const truncateTo = promisify(ftruncate)
const syncData = promisify(fdatasync)
const syncAll = promisify(fsync)

/** Undefined on systems without users: there nothing belongs to others. */
const USER_ID = process.getuid?.()

/** A synchronous write into the page cache costs about 2 µs, a trip through the thread pool 30; above this the copy itself counts. */
const SYNC_WRITE_BYTES = 64 * 1024

const FLAGS: Record<OpenMode, number> = {
  read: constants.O_RDONLY,
  append: constants.O_RDWR | constants.O_CREAT | constants.O_APPEND,
  create: constants.O_RDWR | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
  update: constants.O_RDWR,
}

/** The disk of this machine. */
export const nodeFiles: Files = {
  async open(path, mode, permissions = 0o600) {
    return createHandle(path, await openFile(path, FLAGS[mode], permissions))
  },
  async stat(path) {
    try {
      return toFileStat(await stat(path))
    } catch (error) {
      if (isMissing(error)) return undefined
      throw error
    }
  },
  statSync(path) {
    const stats = statSync(path, { throwIfNoEntry: false })
    return stats === undefined ? undefined : toFileStat(stats)
  },
  async list(directory) {
    try {
      return (await readdir(directory)).sort()
    } catch (error) {
      if (isMissing(error)) return []
      throw error
    }
  },
  async makeDirectory(path, permissions = 0o700) {
    try {
      await mkdir(path, { mode: permissions })
    } catch (error) {
      const code = errnoOf(error)
      if (code === 'EEXIST' && statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return
      // Node's own recursion never ends where the parent exists and takes no folders, as in /proc.
      const parent = dirname(path)
      if (code !== 'ENOENT' || parent === path || statSync(parent, { throwIfNoEntry: false }) !== undefined) throw error
      await nodeFiles.makeDirectory(parent, permissions)
      await nodeFiles.makeDirectory(path, permissions)
    }
  },
  rename,
  async remove(path) {
    try {
      await unlink(path)
    } catch (error) {
      if (!isMissing(error)) throw error
    }
  },
  async removeDirectory(path) {
    await rm(path, { recursive: true, force: true })
  },
  async syncDirectory(path) {
    const descriptor = await openFile(path, constants.O_RDONLY)
    try {
      await syncAll(descriptor)
    } finally {
      closeSync(descriptor)
    }
  },
  realPath: (path) => realpath(path),
}

function createHandle(path: string, descriptor: number): FileHandle {
  let closed = false
  /** The system names no path when a call on an open file fails. */
  const named = <T>(working: Promise<T>): Promise<T> =>
    working.catch((error: unknown) => {
      throw withPath(error, path)
    })
  const writeNow = (buffer: Uint8Array, position: number | undefined): number => {
    try {
      return writeSync(descriptor, buffer, 0, buffer.length, position ?? null)
    } catch (error) {
      throw withPath(error, path)
    }
  }
  return {
    path,
    async read(position, length) {
      const buffer = Buffer.allocUnsafe(length)
      return buffer.subarray(0, await named(readFully(descriptor, buffer, position)))
    },
    readNow(position, length) {
      const buffer = Buffer.allocUnsafe(length)
      try {
        return buffer.subarray(0, readSync(descriptor, buffer, 0, length, position))
      } catch (error) {
        throw withPath(error, path)
      }
    },
    readInto: (target, position) => named(readFully(descriptor, target, position)),
    async write(bytes, position) {
      const buffer = typeof bytes === 'string' ? Buffer.from(bytes) : bytes
      const isSmall = buffer.length <= SYNC_WRITE_BYTES
      const written = isSmall ? writeNow(buffer, position) : 0
      if (written < buffer.length) await named(writeFully(descriptor, buffer, written, position))
    },
    truncate: (size) => named(truncateTo(descriptor, size)),
    sync: () => named(syncData(descriptor)),
    stat: () => toFileStat(fstatSync(descriptor)),
    async close() {
      if (closed) return
      closed = true
      closeSync(descriptor)
    },
  }
}

async function writeFully(
  descriptor: number,
  buffer: Uint8Array,
  from: number,
  position: number | undefined,
): Promise<void> {
  for (let written = from; written < buffer.length;) {
    const at = position === undefined ? null : position + written
    written += (await writeAt(descriptor, buffer, written, buffer.length - written, at)).bytesWritten
  }
}

async function readFully(descriptor: number, target: Uint8Array, position: number): Promise<number> {
  let filled = 0
  while (filled < target.length) {
    const { bytesRead } = await readAt(descriptor, target, filled, target.length - filled, position + filled)
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return filled
}

function toFileStat(stats: Stats): FileStat {
  return {
    kind: stats.isFile() ? 'file' : stats.isDirectory() ? 'directory' : 'other',
    size: stats.size,
    modifiedAt: stats.mtimeMs,
    permissions: stats.mode & 0o777,
    belongsToOthers: USER_ID !== undefined && stats.uid !== 0 && stats.uid !== USER_ID,
    identity: `${stats.dev}:${stats.ino}`,
  }
}

function withPath(error: unknown, path: string): unknown {
  return error instanceof Error && !('path' in error) ? Object.assign(error, { path }) : error
}

function isMissing(error: unknown): boolean {
  const code = errnoOf(error)
  return code === 'ENOENT' || code === 'ENOTDIR'
}
