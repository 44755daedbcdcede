import { createHash } from 'node:crypto'
import { removeUnfinishedBeside, writeAtomically } from '../../base/atomic-write.ts'
import { directoryOf, makeDurableDirectory, readWhole, type Files } from '../../base/files.ts'
import type { Ids } from '../../base/ids.ts'
import { isRecord, parseJson } from '../../base/json.ts'
import type { SessionKey } from '../../core/ids.ts'
import { soundSessionRecord } from '../../core/sound-session.ts'
import type { ArchivedRows } from '../local/session-archive.ts'
import type { ArchivedPage, SessionRow } from '../storage.ts'

export interface FileRowsDeps {
  readonly files: Files
  readonly ids: Ids
  /** `<home>/archive`. */
  readonly directory: string
}

/** A row is below 10 KB; more is not one of ours. */
const MAX_BYTES = 4 * 1024 * 1024
const NAME = /^[0-9a-f]{64}\.json$/u

/**
 * A file for each key, named by its hash, in 256 folders. So memory does not grow with what is archived, and a look-up
 * reads one file.
 */
export class FileArchivedRows implements ArchivedRows {
  readonly #deps: FileRowsDeps
  readonly #folders: Set<string>

  private constructor(deps: FileRowsDeps, folders: Set<string>) {
    this.#deps = deps
    this.#folders = folders
  }

  static async open(deps: FileRowsDeps): Promise<FileArchivedRows> {
    return new FileArchivedRows(deps, new Set(await deps.files.list(deps.directory)))
  }

  get isEmpty(): boolean {
    return this.#folders.size === 0
  }

  mayHold(key: string): boolean {
    return this.#folders.size > 0 && this.#folders.has(hashOf(key).slice(0, 2))
  }

  async find(key: string): Promise<readonly SessionRow[]> {
    return this.mayHold(key) ? this.#read(this.#pathOf(hashOf(key))) : []
  }

  async put(row: SessionRow): Promise<void> {
    const path = this.#pathOf(hashOf(row.key))
    const others = (await this.#read(path)).filter(({ key }) => key !== row.key)
    await makeDurableDirectory(this.#deps.files, directoryOf(path))
    this.#folders.add(hashOf(row.key).slice(0, 2))
    await this.#write(path, [...others, row])
  }

  async remove(key: SessionKey): Promise<void> {
    const { files } = this.#deps
    const path = this.#pathOf(hashOf(key))
    const others = (await this.#read(path)).filter((row) => row.key !== key)
    if (others.length > 0) return this.#write(path, others)
    await files.remove(path)
    await files.syncDirectory(directoryOf(path))
  }

  async list({ limit, after = '' }: { readonly limit: number; readonly after?: string }): Promise<ArchivedPage> {
    const rows: SessionRow[] = []
    for (const folder of [...this.#folders].toSorted()) {
      if (folder < after.slice(0, 2)) continue
      for (const name of await this.#deps.files.list(`${this.#deps.directory}/${folder}`)) {
        const hash = name.slice(0, 64)
        if (!NAME.test(name) || hash <= after) continue
        rows.push(...(await this.#read(this.#pathOf(hash))))
        if (rows.length >= limit) return { rows, next: hash }
      }
    }
    return { rows }
  }

  #pathOf(hash: string): string {
    return `${this.#deps.directory}/${hash.slice(0, 2)}/${hash}.json`
  }

  async #read(path: string): Promise<readonly SessionRow[]> {
    const bytes = await readWhole(this.#deps.files, path, MAX_BYTES)
    const given = bytes === undefined ? undefined : parseJson(new TextDecoder().decode(bytes))
    return Array.isArray(given) ? given.flatMap((row: unknown) => soundRow(row) ?? []) : []
  }

  async #write(path: string, rows: readonly SessionRow[]): Promise<void> {
    await writeAtomically(this.#deps, path, `${JSON.stringify(rows)}\n`)
    await removeUnfinishedBeside(this.#deps.files, path)
  }
}

/** Keys that differ by case only are together, because a key that is given is also looked up without its case. */
function hashOf(key: string): string {
  return createHash('sha256').update(key.trim().toLowerCase()).digest('hex')
}

function soundRow(value: unknown): SessionRow | undefined {
  if (!isRecord(value) || typeof value['key'] !== 'string') return undefined
  const record = soundSessionRecord(value['record'])
  return record === undefined ? undefined : { key: value['key'] as SessionKey, record }
}
