import { removeUnfinished, writeAtomically, type AtomicWriteDeps } from '../../base/atomic-write.ts'
import { makeDurableDirectory, readWhole, type Files } from '../../base/files.ts'

const MAX_BYTES = 1024 * 1024
const MAX_BACKUPS = 1_000
const OWNER_ONLY = 0o600

/** The text of the file that is there; undefined when there is none. */
export async function readBridge(files: Files, path: string): Promise<string | undefined> {
  const bytes = await readWhole(files, path, MAX_BYTES)
  return bytes === undefined ? undefined : new TextDecoder().decode(bytes)
}

/** Writes the file for its owner only; one that was there is kept, and its new path returned. */
export async function writeBridge(
  deps: AtomicWriteDeps,
  { home, path, text }: { readonly home: string; readonly path: string; readonly text: string },
): Promise<string | undefined> {
  const { files } = deps
  await makeDurableDirectory(files, home)
  await removeUnfinished(files, { directory: home, name: path.slice(home.length + 1) })
  const before = await readBridge(files, path)
  const backup = before === undefined ? undefined : await freeName(files, path)
  if (before !== undefined && backup !== undefined) await writePrivately(deps, backup, before)
  await writePrivately(deps, path, text)
  return backup
}

function writePrivately(deps: AtomicWriteDeps, path: string, text: string): Promise<void> {
  return writeAtomically(deps, path, text, { permissions: OWNER_ONLY })
}

async function freeName(files: Files, path: string): Promise<string> {
  for (let number = 1; number <= MAX_BACKUPS; number++) {
    const name = `${path}.bak-${number}`
    if ((await files.stat(name)) === undefined) return name
  }
  throw new Error(`${path} has ${MAX_BACKUPS} backups; remove some`)
}
