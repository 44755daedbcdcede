import { directoryOf, type FileHandle, type Files } from './files.ts'
import type { Ids } from './ids.ts'

export interface AtomicWriteDeps {
  readonly files: Files
  readonly ids: Ids
}

export interface AtomicWriteOptions {
  readonly permissions?: number
  /** Runs when the new content is durable and does not have its name yet; what it throws keeps the old content. */
  readonly beforeRename?: () => void | Promise<void>
}

/** Bytes, or a function that writes them piece by piece. */
export type NewContent = Uint8Array | string | ((file: FileHandle) => Promise<void>)

/** Hexadecimal digits: a name that another user of the machine cannot guess, and so cannot plant a link under. */
const RANDOM_DIGITS = 16
const TEMPORARY_NAME = /\.tmp-[0-9a-f]{16}$/u
/** The disk takes names of 255 bytes; a longer name than this has no room for the rest. */
const MAX_KEPT_NAME_BYTES = 200

/** New content or the old one, never a mixture: temporary file under a random name, sync, rename, sync of the folder. */
export async function writeAtomically(
  { files, ids }: AtomicWriteDeps,
  path: string,
  content: NewContent,
  { permissions, beforeRename }: AtomicWriteOptions = {},
): Promise<void> {
  const temporary = temporaryPath(path, ids)
  // Created exclusively: what stands at the name, file or link, is never written to.
  const handle = await files.open(temporary, 'create', permissions)
  try {
    try {
      if (typeof content === 'function') await content(handle)
      else await handle.write(content)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await beforeRename?.()
    await files.rename(temporary, path)
  } catch (error) {
    await files.remove(temporary).catch(() => undefined)
    throw error
  }
  await files.syncDirectory(directoryOf(path))
}

/** Whether a file has a name that it only has until it is written. */
export function isTemporary(path: string): boolean {
  return TEMPORARY_NAME.test(path)
}

export interface Unfinished {
  readonly directory: string
  /** What is in the folder, where that is known already. */
  readonly names?: readonly string[]
  /** Only those of the file with this name. */
  readonly name?: string
  /** Unix time. Only those that were last written before; for folders that another process may be writing to. */
  readonly writtenBefore?: number
}

/** Before a temporary file of another process counts as unfinished; writing one takes seconds at most. */
export const UNFINISHED_AFTER_MS = 3_600_000

/** Removes the temporary files that a crash kept from getting their name. Returns how many there were. */
export async function removeUnfinished(files: Files, unfinished: Unfinished): Promise<number> {
  const { directory, name, writtenBefore } = unfinished
  let removed = 0
  for (const found of unfinished.names ?? (await files.list(directory))) {
    if (!isTemporary(found) || (name !== undefined && !found.startsWith(`${name}.tmp-`))) continue
    const path = `${directory}/${found}`
    if (writtenBefore !== undefined && !(await isOlder(files, path, writtenBefore))) continue
    await files.remove(path)
    removed++
  }
  return removed
}

/** The same in a folder that several may write to, after the file at `path` was written: whatever is an hour older. */
export async function removeUnfinishedBeside(files: Files, path: string): Promise<void> {
  const written = await files.stat(path)
  if (written === undefined) return
  await removeUnfinished(files, {
    directory: directoryOf(path),
    writtenBefore: written.modifiedAt - UNFINISHED_AFTER_MS,
  })
}

async function isOlder(files: Files, path: string, time: number): Promise<boolean> {
  const stat = await files.stat(path)
  return stat !== undefined && stat.modifiedAt < time
}

function temporaryPath(path: string, ids: Ids): string {
  const directory = directoryOf(path)
  const name = path.slice(path.lastIndexOf('/') + 1)
  const kept = Buffer.byteLength(name) <= MAX_KEPT_NAME_BYTES ? name : ''
  return `${directory === '/' ? '' : directory}/${kept}.tmp-${ids.hex(RANDOM_DIGITS)}`
}
