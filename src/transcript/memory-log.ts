import type { Change, Owner } from '../core/change.ts'
import type { Entry, SessionHeader } from '../core/entry.ts'
import type { EntryId, RunId } from '../core/ids.ts'
import { EMPTY_PATH, toActivePath, type ActivePath } from './context.ts'
import { isAlone, type EncodedEntry, type EntryLog, type LogState, type Together } from './log.ts'
import { requireStorage } from './topic.ts'

/** Makes the changes that come with entries durable, or throws; resolves with the messages that they gave their answer. */
export type CommitChanges = (changes: readonly Change[], owner: Owner | undefined) => Promise<readonly RunId[]>

/** The entries of one transcript in memory, and every way to read them. */
export class EntriesInMemory {
  readonly idDigits = 8
  heldBytes = 0
  readonly #entries: Entry[] = []
  readonly #byId = new Map<EntryId, Entry>()

  isIdFree(id: EntryId): boolean {
    return !this.#byId.has(id)
  }

  async activeAt(leafId: EntryId): Promise<ActivePath> {
    return toActivePath((await this.path(leafId)) ?? [])
  }

  async path(from: EntryId): Promise<readonly Entry[] | undefined> {
    const path: Entry[] = []
    // A parent that an operator changed may lead back.
    const seen = new Set<EntryId>()
    for (let entry = this.#byId.get(from); entry !== undefined && !seen.has(entry.id); entry = this.#parentOf(entry)) {
      seen.add(entry.id)
      path.push(entry)
    }
    return path.length === 0 ? undefined : path.toReversed()
  }

  async find(id: EntryId): Promise<Entry | undefined> {
    return this.#byId.get(id)
  }

  async *all(): AsyncIterable<Entry> {
    yield* [...this.#entries]
  }

  protected get last(): Entry | undefined {
    return this.#entries.at(-1)
  }

  protected keep(entry: Entry, line: string): void {
    this.#entries.push(entry)
    this.#byId.set(entry.id, entry)
    this.heldBytes += line.length
  }

  #parentOf(entry: Entry): Entry | undefined {
    return entry.parentId === null ? undefined : this.#byId.get(entry.parentId)
  }
}

/** Everything in memory; lives as long as the store. */
export class MemoryLog extends EntriesInMemory implements EntryLog {
  readonly #header: SessionHeader
  readonly #commit: CommitChanges | undefined

  constructor(header: SessionHeader, commit?: CommitChanges) {
    super()
    this.#header = header
    this.#commit = commit
  }

  async load(): Promise<LogState> {
    return { header: this.#header, leafId: null, active: EMPTY_PATH, repairs: [] }
  }

  async beginWrite(): Promise<undefined> {}

  async write(batch: readonly EncodedEntry[], together: Together): Promise<readonly RunId[]> {
    const answered = isAlone(together) ? [] : await requireStorage(this.#commit)(together.changes, together.owner)
    for (const { entry, line } of batch) this.keep(entry, line)
    return answered
  }

  async endWrite(): Promise<void> {}

  async close(): Promise<void> {}
}
