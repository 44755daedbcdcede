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

/** More lines than this are compared as a whole: the table grows with the product of both. */
const MAX_LINES = 2_000

/** Lines that are gone with `- ` in front, new ones with `+ `, the others with two blanks. Secrets are not shown. */
export function lineDifference(before: string, after: string): readonly string[] {
  const [old, fresh] = [linesOf(before), linesOf(after)]
  if (old.length > MAX_LINES || fresh.length > MAX_LINES)
    return [...old.map((line) => `- ${line}`), ...fresh.map((line) => `+ ${line}`)]
  const common = commonLengths(old, fresh)
  const shown: string[] = []
  let [at, to] = [0, 0]
  while (at < old.length || to < fresh.length) {
    if (at < old.length && to < fresh.length && old[at] === fresh[to]) {
      shown.push(`  ${old[at]}`)
      at++
      to++
    } else if (
      to >= fresh.length ||
      (at < old.length && lengthAt(common, at + 1, to) >= lengthAt(common, at, to + 1))
    ) {
      shown.push(`- ${old[at++]}`)
    } else shown.push(`+ ${fresh[to++]}`)
  }
  return shown
}

/** The length of the longest common part of what follows each pair of places. */
function commonLengths(old: readonly string[], fresh: readonly string[]): readonly Uint16Array[] {
  const rows = Array.from({ length: old.length + 1 }, () => new Uint16Array(fresh.length + 1))
  for (let at = old.length - 1; at >= 0; at--) {
    for (let to = fresh.length - 1; to >= 0; to--) {
      const row = rows[at]
      if (row === undefined) continue
      row[to] =
        old[at] === fresh[to]
          ? lengthAt(rows, at + 1, to + 1) + 1
          : Math.max(lengthAt(rows, at + 1, to), lengthAt(rows, at, to + 1))
    }
  }
  return rows
}

function lengthAt(rows: readonly Uint16Array[], at: number, to: number): number {
  return rows[at]?.[to] ?? 0
}

function linesOf(text: string): readonly string[] {
  return text.trimEnd().split('\n').map(withoutSecrets)
}

const SECRET_NAME = /^(?:ak|sk)$|(?:key|token|secret|password|authorization|cookie)$/iu
const PASSWORD_IN_ADDRESS = /:\/\/[^\s"/@]{1,1000}@/gu

/** A reference to the environment is no secret. */
function withoutSecrets(line: string): string {
  // What stands at odd places was between quotation marks.
  const pieces = line.split('"')
  const shown = pieces.map((piece, at) => {
    const isValue = at % 2 === 1 && pieces[at - 1]?.trim() === ':' && SECRET_NAME.test(pieces[at - 2] ?? '')
    return isValue && !piece.startsWith('$') ? '…' : piece
  })
  return shown.join('"').replaceAll(PASSWORD_IN_ADDRESS, '://…@')
}
