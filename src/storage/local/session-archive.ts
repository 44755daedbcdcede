import type { RecordLog } from '../../base/journal.ts'
import { Mailbox } from '../../base/async.ts'
import type { ArchivedPage, SessionRow } from '../storage.ts'
import type { SessionKey } from '../../core/ids.ts'
import type { SessionDirectory } from './directory.ts'

/** Rows of the index that are kept out of memory. Each method is durable when it resolves. */
export interface ArchivedRows {
  /** True: there is certainly none at all. */
  readonly isEmpty: boolean
  /** False: there is certainly none. Costs no wait. */
  mayHold(key: string): boolean
  /** The rows whose key is this one, apart from case. */
  find(key: string): Promise<readonly SessionRow[]>
  put(row: SessionRow): Promise<void>
  remove(key: SessionKey): Promise<void>
  /** In an order of its own that does not change, behind the cursor. */
  list(page: { readonly limit: number; readonly after?: string }): Promise<ArchivedPage>
}

export interface SessionArchiveDeps {
  readonly journal: RecordLog
  readonly directory: SessionDirectory
  readonly rows: ArchivedRows
  /** After every durable change of the row of a key. */
  onChanged(key: SessionKey): void
}

/**
 * Conversations whose row left the index because they were not used for long. Their transcripts stay where they are, and
 * naming one brings its row back: a row is written to the archive before it leaves the index and the other way round, so
 * that after a crash it is in one of them or in both, and then the index counts.
 */
export class SessionArchive {
  readonly #deps: SessionArchiveDeps
  /** Moves happen one after the other, in the order they were asked for. */
  readonly #moves = new Mailbox()
  /** Keys, folded, of moves asked for and not ended, with their number. */
  readonly #moving = new Map<string, number>()

  constructor(deps: SessionArchiveDeps) {
    this.#deps = deps
  }

  /** No key is in it or on its way. */
  get isEmpty(): boolean {
    return this.#deps.rows.isEmpty && this.#moving.size === 0
  }

  /** Whether `bringBack` has to come first. Without it the index says all there is to say about this key. */
  async isWanted(key: string): Promise<boolean> {
    if (this.#moving.has(fold(key))) return true
    return this.#deps.rows.mayHold(key) && (await this.#deps.directory.resolve(key)) === undefined
  }

  /** Puts the row of this key into the index again; resolves with whether there was one. */
  bringBack(key: string): Promise<boolean> {
    return this.#move([key], async () => {
      const { journal, directory, rows, onChanged } = this.#deps
      if ((await directory.resolve(key)) !== undefined) return false
      const found = await rows.find(key)
      const exact = found.filter((row) => row.key === key.trim())
      const [row] = exact.length > 0 ? exact : found
      if (row === undefined) return false
      await journal.commit([directory.recordOf({ kind: 'put-session', key: row.key, record: row.record })])
      onChanged(row.key)
      await rows.remove(row.key)
      return true
    })
  }

  /** Takes rows out of the index; one that was changed meanwhile stays. Resolves with how many went. */
  archive(going: readonly SessionRow[]): Promise<number> {
    return this.#move(
      going.map(({ key }) => key),
      async () => {
        const { journal, directory, rows, onChanged } = this.#deps
        for (const row of going) await rows.put(row)
        await journal.commit(going.map(({ key, record }) => directory.removeUnchanged(key, record)))
        for (const { key } of going) onChanged(key)
        let stayed = 0
        for (const { key } of going) {
          if ((await directory.get(key)) === undefined) continue
          stayed++
          await rows.remove(key)
        }
        return going.length - stayed
      },
    )
  }

  /** For a row that is in the index and about to go for good: what a crash left of it here must not bring it back. */
  forget(key: SessionKey): Promise<void> {
    return this.#move([key], async () => {
      const { rows } = this.#deps
      if ((await rows.find(key)).some((row) => row.key === key)) await rows.remove(key)
    })
  }

  list(page: { readonly limit: number; readonly after?: string }): Promise<ArchivedPage> {
    return this.#deps.rows.list(page)
  }

  async #move<T>(keys: readonly string[], task: () => Promise<T>): Promise<T> {
    const folded = keys.map(fold)
    for (const key of folded) this.#moving.set(key, (this.#moving.get(key) ?? 0) + 1)
    try {
      return await this.#moves.run(task)
    } finally {
      for (const key of folded) {
        const others = (this.#moving.get(key) ?? 1) - 1
        if (others === 0) this.#moving.delete(key)
        else this.#moving.set(key, others)
      }
    }
  }
}

function fold(key: string): string {
  return key.trim().toLowerCase()
}

/** Archived rows of a storage that keeps everything in memory. */
export class MemoryArchivedRows implements ArchivedRows {
  readonly #rows = new Map<SessionKey, SessionRow>()

  get isEmpty(): boolean {
    return this.#rows.size === 0
  }

  mayHold(): boolean {
    return this.#rows.size > 0
  }

  async find(key: string): Promise<readonly SessionRow[]> {
    return [...this.#rows.values()].filter((row) => fold(row.key) === fold(key))
  }

  async put(row: SessionRow): Promise<void> {
    this.#rows.set(row.key, row)
  }

  async remove(key: SessionKey): Promise<void> {
    this.#rows.delete(key)
  }

  async list({ limit, after = '' }: { readonly limit: number; readonly after?: string }): Promise<ArchivedPage> {
    const later = [...this.#rows.values()].filter(({ key }) => key > after).toSorted((a, b) => (a.key < b.key ? -1 : 1))
    const rows = later.slice(0, limit)
    const last = rows.at(-1)
    return later.length > limit && last !== undefined ? { rows, next: last.key } : { rows }
  }
}
