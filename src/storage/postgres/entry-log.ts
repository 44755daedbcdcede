import type { Database } from '../../base/database.ts'
import { isRecord } from '../../base/json.ts'
import type { Entry, SessionHeader } from '../../core/entry.ts'
import { GatewayError } from '../../core/errors.ts'
import type { EntryId, RunId } from '../../core/ids.ts'
import { toActivePath } from '../../transcript/context.ts'
import { encodeHeader, freezeEntry, isHeader, toEntry, toHeader } from '../../transcript/line.ts'
import { pointedLeaf } from '../../transcript/load.ts'
import { EntriesInMemory } from '../../transcript/memory-log.ts'
import type { EncodedEntry, EntryLog, LogState, Together } from '../../transcript/log.ts'
import { fromColumn, toColumn } from './column-text.ts'
import type { CommitAppend } from './postgres-storage.ts'

const HEAD = { name: 'transcript_head', text: 'select header, entries from transcripts where session_id = $1' }
const LINES = {
  name: 'transcript_lines',
  text: 'select position, id, line from entries where session_id = $1 and position > $2 order by position limit 1000',
}

interface LineRow {
  readonly position: number
  readonly id: string
  readonly line: string
}

/** The lines of one transcript in the database, and their entries in memory while it is open. */
export class PostgresLog extends EntriesInMemory implements EntryLog {
  readonly #sessionId: string
  readonly #database: Pick<Database, 'query'>
  readonly #commit: CommitAppend
  #header: SessionHeader
  /** Lines that we know of. */
  #count = 0
  #isStale = false
  readonly #isNew: boolean

  constructor(deps: {
    readonly sessionId: string
    readonly database: Pick<Database, 'query'>
    readonly commit: CommitAppend
    /** For a transcript that begins. */
    readonly header: SessionHeader
    /** It is known to have no lines. */
    readonly isNew: boolean
  }) {
    super()
    this.#sessionId = toColumn(deps.sessionId)
    this.#database = deps.database
    this.#commit = deps.commit
    this.#header = deps.header
    this.#isNew = deps.isNew
  }

  async load(): Promise<LogState> {
    if (this.#isNew) return this.#state()
    const [head] = await this.#database.query<{ header: string; entries: number }>(HEAD, [this.#sessionId])
    const header: unknown = head === undefined ? undefined : JSON.parse(head.header)
    if (isHeader(header)) this.#header = toHeader(header)
    await this.#readFurther()
    return this.#state()
  }

  async beginWrite(): Promise<LogState | undefined> {
    if (!this.#isStale) return undefined
    this.#isStale = false
    await this.#readFurther()
    return this.#state()
  }

  async write(batch: readonly EncodedEntry[], { changes, owner }: Together): Promise<readonly RunId[]> {
    const append = {
      sessionId: this.#sessionId,
      header: encodeHeader(this.#header),
      after: this.#count,
      lines: batch.map(({ entry, line }) => [toColumn(entry.id), parentOf(entry), line] as const),
    }
    let answered: readonly RunId[] | undefined
    try {
      answered = await this.#commit(append, changes, owner)
    } finally {
      // One that failed may have been done after all.
      this.#isStale = answered === undefined
    }
    if (answered === undefined)
      throw new GatewayError(
        // Only the owner writes: what it does not know of is an append of its own whose result was lost.
        owner === undefined ? 'SESSION_LOCK_LOST' : 'STORAGE_UNAVAILABLE',
        'the transcript has other lines than were known here; try again',
        {},
      )
    for (const { entry, line } of batch) this.#keep(entry, line)
    return answered
  }

  async endWrite(): Promise<void> {}

  /** Whether the database has as many lines as we know of; `entries` is how many it has, when that is known. */
  async isCurrent(entries: number | undefined): Promise<boolean> {
    if (this.#isStale) return false
    if (entries === this.#count) return true
    const [head] = await this.#database.query<{ entries: number }>(HEAD, [this.#sessionId])
    return (head?.entries ?? 0) === this.#count
  }

  async close(): Promise<void> {}

  async #readFurther(): Promise<void> {
    for (;;) {
      const rows = await this.#database.query<LineRow>(LINES, [this.#sessionId, this.#count])
      for (const { id, line } of rows) this.#read(fromColumn(id) as EntryId, line)
      if (rows.length < 1_000) return
    }
  }

  /** A line that an operator spoiled is passed over, as a damaged line of a file is. */
  #read(id: EntryId, line: string): void {
    const raw = parse(line)
    if (raw === undefined) {
      this.#count++
      return
    }
    const parentId = typeof raw['parentId'] === 'string' ? (raw['parentId'] as EntryId) : null
    this.#keep(freezeEntry(toEntry(raw, id, parentId)), line)
  }

  #keep(entry: Entry, line: string): void {
    this.keep(entry, line)
    this.#count++
  }

  async #state(): Promise<LogState> {
    const { last } = this
    const pointed = last === undefined ? null : pointedLeaf(last)
    const leafId = pointed === undefined ? (last?.id ?? null) : pointed
    const active = leafId === null ? toActivePath([]) : await this.activeAt(leafId)
    return { header: this.#header, leafId, active, repairs: [] }
  }
}

function parentOf({ parentId }: Entry): string | null {
  return parentId === null ? null : toColumn(parentId)
}

function parse(line: string): Record<string, unknown> | undefined {
  try {
    const raw: unknown = JSON.parse(line)
    return isRecord(raw) ? raw : undefined
  } catch {
    return undefined
  }
}
