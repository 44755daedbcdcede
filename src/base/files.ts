/**
 * The disk, as little of it as we need. Durability is explicit: data survives a power cut only after `sync`,
 * a created, renamed or removed name only after `syncDirectory` of its folder. `MemoryFiles` in `clew/testing`
 * implements exactly this weak promise and can crash at every call.
 *
 * Failures are Node's `ErrnoException`s (`code` is `ENOENT`, `EEXIST`, `ENOSPC` …).
 */
export interface Files {
  open(path: string, mode: OpenMode, permissions?: number): Promise<FileHandle>
  /** Undefined when nothing is there. Follows symbolic links. */
  stat(path: string): Promise<FileStat | undefined>
  /**
   * The same without leaving the current turn of the event loop: for fences that stand directly before a write, and for
   * callers that must not wait behind syncs under way. A few microseconds on a local disk.
   */
  statSync(path: string): FileStat | undefined
  /** Names, not paths, sorted. Empty when the folder does not exist. */
  list(directory: string): Promise<readonly string[]>
  /** Creates parents too; existing folders are fine. Durable names need `syncDirectory` of the parent. */
  makeDirectory(path: string, permissions?: number): Promise<void>
  /** Atomic replacement. */
  rename(from: string, to: string): Promise<void>
  /** A file that is not there is fine. */
  remove(path: string): Promise<void>
  removeDirectory(path: string): Promise<void>
  syncDirectory(path: string): Promise<void>
  /** Resolves symbolic links; the path must exist. */
  realPath(path: string): Promise<string>
}

/**
 * `read`: must exist · `append`: created when missing, every write goes to the end · `create`: must not exist, not even
 * as a link · `update`: must exist, read and write at positions.
 */
export type OpenMode = 'read' | 'append' | 'create' | 'update'

export interface FileStat {
  readonly kind: 'file' | 'directory' | 'other'
  readonly size: number
  readonly modifiedAt: number
  readonly permissions: number
  /** Its owner is neither this process's user nor root. */
  readonly belongsToOthers: boolean
  /** Tells two files at one path apart (device and inode). */
  readonly identity: string
}

export interface FileHandle {
  readonly path: string
  /** Fewer bytes than asked only at the end of the file. */
  read(position: number, length: number): Promise<Uint8Array>
  /** `read` without leaving the current turn of the event loop: of a few bytes, which the system most likely has in memory. */
  readNow(position: number, length: number): Uint8Array
  /**
   * `read` into memory the caller owns, for callers that read large files block by block: fresh memory for each
   * block costs more than the read. Returns how many bytes were read. Optional; callers fall back to `read`.
   */
  readInto?(target: Uint8Array, position: number): Promise<number>
  /** Writes all bytes at the end (or at `position`) or fails; a failure may leave a part behind. */
  write(bytes: Uint8Array | string, position?: number): Promise<void>
  truncate(size: number): Promise<void>
  /** `fdatasync`. After a failure the handle's unsynced data must be taken as lost. */
  sync(): Promise<void>
  /** Of an open file the system knows all this already: nothing to wait for. */
  stat(): FileStat
  close(): Promise<void>
}

export function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}

/** Undefined when there is no such file. */
export async function openIfThere(
  files: Files,
  path: string,
  mode: 'read' | 'update',
): Promise<FileHandle | undefined> {
  try {
    return await files.open(path, mode)
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined
    throw error
  }
}

/** Reads a whole small file. Undefined when it does not exist. */
export async function readWhole(files: Files, path: string, maxBytes: number): Promise<Uint8Array | undefined> {
  const handle = await openIfThere(files, path, 'read')
  if (handle === undefined) return undefined
  try {
    const { size } = handle.stat()
    if (size > maxBytes) throw new Error(`${path} has ${size} bytes, over the limit of ${maxBytes}`)
    return await handle.read(0, size)
  } finally {
    await handle.close()
  }
}

export function directoryOf(path: string): string {
  const slash = path.lastIndexOf('/')
  return slash <= 0 ? '/' : path.slice(0, slash)
}

/** Creates a folder and its missing parents so that their names survive a power cut. */
export async function makeDurableDirectory(files: Files, path: string): Promise<void> {
  const stat = await files.stat(path)
  // Existing is not durable: the process that created it may have died before it synced the parent.
  if (stat === undefined) {
    if (path !== '/') await makeDurableDirectory(files, directoryOf(path))
    await files.makeDirectory(path)
  }
  if (path !== '/') await files.syncDirectory(directoryOf(path))
}
