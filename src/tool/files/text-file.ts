import { removeUnfinishedBeside, writeAtomically } from '../../base/atomic-write.ts'
import { directoryOf, type Files, makeDurableDirectory } from '../../base/files.ts'
import type { Ids } from '../../base/ids.ts'
import { isStillAt, PathRefused, type WorkspacePath } from './workspace.ts'

export interface FileLimits {
  /** Of a file that is read or written, in bytes. */
  readonly maxFileBytes: number
  /** Of the text one call returns. */
  readonly maxReadChars: number
  readonly maxListed: number
}

export const FILE_LIMITS: FileLimits = { maxFileBytes: 4 * 1024 * 1024, maxReadChars: 50_000, maxListed: 500 }

export async function readTextFile(files: Files, at: WorkspacePath, limits: FileLimits): Promise<string> {
  if (at.stat === undefined) throw new PathRefused(`"${at.name}" does not exist`)
  if (at.stat.kind === 'directory') throw new PathRefused(`"${at.name}" is a folder; use the action "list"`)
  const handle = await files.open(at.path, 'read')
  try {
    const stat = handle.stat()
    if (stat.kind !== 'file' || !(await isStillAt(files, at.path, stat))) {
      throw new PathRefused(`"${at.name}" changed while it was opened`)
    }
    if (stat.size > limits.maxFileBytes) {
      throw new PathRefused(`"${at.name}" has ${stat.size} bytes; at most ${limits.maxFileBytes} can be read`)
    }
    return decodeText(await handle.read(0, stat.size), at.name)
  } finally {
    await handle.close()
  }
}

/** New content or the old one, never a mixture; folders on the way are created. */
export async function writeTextFile(
  deps: { readonly files: Files; readonly ids: Ids },
  at: WorkspacePath,
  text: string,
  limits: FileLimits,
): Promise<void> {
  if (at.name === '.' || at.stat?.kind === 'directory') throw new PathRefused(`"${at.name}" is a folder`)
  const bytes = Buffer.byteLength(text)
  if (bytes > limits.maxFileBytes) {
    throw new PathRefused(`the text has ${bytes} bytes; a file may have ${limits.maxFileBytes}`)
  }
  const { files } = deps
  const directory = directoryOf(at.path)
  await makeDurableDirectory(files, directory)
  if ((await files.realPath(directory)) !== directory) throw new PathRefused(`"${at.name}" changed while it was opened`)
  await writeAtomically(deps, at.path, text, { permissions: at.stat?.permissions ?? 0o644 })
  await removeUnfinishedBeside(files, at.path)
}

function decodeText(bytes: Uint8Array, name: string): string {
  try {
    if (bytes.includes(0)) throw new TypeError('binary')
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new PathRefused(`"${name}" is not a text file (${bytes.length} bytes)`)
  }
}
