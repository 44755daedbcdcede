import { writeAtomically, type AtomicWriteDeps } from '../../base/atomic-write.ts'
import { readWhole, type Files } from '../../base/files.ts'

const MAX_LINES = 1_000
const MAX_BYTES = 4 * 1024 * 1024
const OWNER_ONLY = 0o600

/** What was typed before, newest first, as the line editor wants it. */
export async function readHistory(files: Files, path: string): Promise<string[]> {
  // A history that cannot be read is no reason not to talk.
  const bytes = await readWhole(files, path, MAX_BYTES).catch(() => undefined)
  if (bytes === undefined) return []
  const lines = new TextDecoder().decode(bytes).split('\n')
  return lines
    .filter((line) => line !== '')
    .slice(-MAX_LINES)
    .toReversed()
}

/** Newest first, as the line editor has them. */
export async function writeHistory(deps: AtomicWriteDeps, path: string, history: readonly string[]): Promise<void> {
  const text = history
    .slice(0, MAX_LINES)
    .toReversed()
    .map((line) => `${line}\n`)
    .join('')
  await writeAtomically(deps, path, text, { permissions: OWNER_ONLY })
}
