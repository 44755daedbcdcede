import { createHash } from 'node:crypto'
import type { Clock, Timer } from '../../base/clock.ts'
import { writeAtomically } from '../../base/atomic-write.ts'
import { errnoOf, type FileHandle, type Files, type FileStat } from '../../base/files.ts'
import type { Ids } from '../../base/ids.ts'
import type { Journal, JournalTopic } from '../../base/journal.ts'
import type { Log } from '../../base/log.ts'
import type { SessionRecord } from '../../core/inbound.ts'
import type { SessionDirectory } from '../local/directory.ts'
import { readIfThere, readRows } from './sessions-json.ts'

const TOPIC = 'index-export'
const EXPORT_DELAY_MS = 1_500
/** Up to here the file is at most two seconds old; a larger one follows as far as its share of the processor allows. */
const PROMPT_SESSIONS = 1_000
/** Times the duration of an export that pass before the next one: it takes at most a hundredth of a core. */
const PAUSE_PER_EXPORT = 100
const ADOPT_BATCH = 1_000
/** More than what a disk writes without a wait, so that there is one behind each slice; little enough to be quick. */
const SLICE_CHARS = 96 * 1024
/** The export before the newest one may still be on disk when the program died between the commit and the rename. */
const KEPT_HASHES = 2

/** Files kept aside in one run: a program that writes old rows again and again must not fill the disk. */
const MAX_ASIDES = 20
const NO_FILE = ''

/** Remembers which `sessions.json` we wrote ourselves, so that a file of another program is recognised at start. */
export class ExportHistory implements JournalTopic {
  readonly name = TOPIC
  #hashes: string[] = []

  apply(data: unknown): void {
    if (typeof data !== 'string' || this.#hashes.includes(data)) return
    this.#hashes = [...this.#hashes, data].slice(-KEPT_HASHES)
  }

  snapshot(): Iterable<string> {
    return this.#hashes
  }

  isOurs(hash: string): boolean {
    return this.#hashes.includes(hash)
  }
}

export interface SessionsFileDeps {
  readonly files: Files
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly path: string
  readonly journal: Journal
  readonly directory: SessionDirectory
  readonly history: ExportHistory
}

/**
 * `sessions.json`, the map other programs read. The journal is the truth; this file is a copy, exact after a clean
 * stop. While the gateway runs it is at most two seconds old up to 1,000 sessions; of more, so old that writing it costs
 * at most a hundredth of a core. What another program wrote into it is taken over, at start and
 * before each export; what cannot be is kept aside.
 */
export class SessionsFile {
  readonly #deps: SessionsFileDeps
  /** Text of a row by the row itself: rows are replaced, never changed, so only new ones are serialised again. */
  readonly #texts = new WeakMap<SessionRecord, string>()
  #exportedRevision = -1
  /** The time of the newest row when we last wrote the file; an unknown row that is older was deleted since. */
  #exportedAt = -1
  /** The file as we left it. */
  #seen = NO_FILE
  #asides = 0
  #timer: Timer | undefined
  #exporting: Promise<void> | undefined
  #isClosed = false
  /** How long the latest export took. */
  #exportMs = 0

  constructor(deps: SessionsFileDeps) {
    this.#deps = deps
  }

  /**
   * Adopts rows of a foreign file: unknown keys, and known ones that are newer there. Nothing is ever removed by it; a
   * file with rows that were not adopted is kept aside before ours takes its place.
   */
  async adopt(): Promise<{ readonly adopted: number; readonly quarantined?: string }> {
    const { files, path, directory, history, journal } = this.#deps
    const bytes = await readIfThere(files, path)
    this.#seen = stampOf(await files.stat(path))
    if (bytes === undefined || history.isOurs(sha256(bytes))) return { adopted: 0 }
    const { rows, damaged } = readRows(bytes)
    const quarantined = damaged ? await this.#quarantine(bytes) : undefined
    const newer = rows.filter(([key, record]) => record.updatedAt > (directory.get(key)?.updatedAt ?? this.#exportedAt))
    const adopted = new Set(newer.map(([key]) => key))
    const lost = rows.filter(([key, record]) => !adopted.has(key) && !isSame(directory.get(key), record))
    newer.sort(([, a], [, b]) => a.updatedAt - b.updatedAt)
    for (let start = 0; start < newer.length; start += ADOPT_BATCH) {
      await journal.commit(
        newer
          .slice(start, start + ADOPT_BATCH)
          .map(([key, record]) => directory.recordOf({ kind: 'put-session', key, record })),
      )
    }
    if (lost.length > 0 && !damaged) await this.#keepAside(bytes, lost.length)
    return { adopted: newer.length, ...(quarantined === undefined ? {} : { quarantined }) }
  }

  /** Call after every change. */
  changed(): void {
    if (this.#isClosed) return
    this.#timer ??= this.#deps.clock.after(this.#delayMs(), () => {
      this.#timer = undefined
      void this.#export().catch((error: unknown) => this.#logFailure(error))
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    this.#timer = undefined
    await this.#exporting?.catch(() => undefined)
    await this.#export().catch((error: unknown) => this.#logFailure(error))
  }

  #delayMs(): number {
    const { size } = this.#deps.directory
    return size <= PROMPT_SESSIONS ? EXPORT_DELAY_MS : Math.max(EXPORT_DELAY_MS, this.#exportMs * PAUSE_PER_EXPORT)
  }

  #export(): Promise<void> {
    const { clock } = this.#deps
    const startedAt = clock.monotonic()
    this.#exporting ??= this.#write().finally(() => {
      this.#exportMs = clock.monotonic() - startedAt
      this.#exporting = undefined
      if (this.#exportedRevision !== this.#deps.directory.revision && this.#timer === undefined) this.changed()
    })
    return this.#exporting
  }

  async #write(): Promise<void> {
    const { files, path, directory, journal } = this.#deps
    if (this.#exportedRevision === directory.revision) return
    await this.#adoptChanges()
    const revision = directory.revision
    const exportedAt = directory.newestTime
    let hash = ''
    await writeAtomically(this.#deps, path, async (file) => void (hash = await this.#writeSlices(file)), {
      // Durable before the file has its name, so that a crash in between cannot make our own copy look foreign.
      beforeRename: () => journal.commit([{ topic: TOPIC, data: hash }]),
    })
    this.#exportedRevision = revision
    this.#exportedAt = exportedAt
    this.#seen = stampOf(await files.stat(path))
  }

  /** Another program may have written the file since we did. */
  async #adoptChanges(): Promise<void> {
    const { files, path, log } = this.#deps
    const stat = await files.stat(path)
    if (stat === undefined || stampOf(stat) === this.#seen) return
    const { adopted } = await this.adopt()
    log.info('another program changed sessions.json; its new rows were taken over', { adopted })
  }

  async #keepAside(bytes: Uint8Array, rows: number): Promise<void> {
    const { path, clock, log } = this.#deps
    if (this.#asides++ >= MAX_ASIDES)
      return log.warn('rows that another program wrote into sessions.json are older than ours and were dropped', {
        rows,
      })
    const aside = `${path}.foreign-${clock.now()}`
    await writeAtomically(this.#deps, aside, bytes)
    log.warn('rows that another program wrote into sessions.json were not taken over; its file was kept aside', {
      rows,
      aside,
    })
  }

  /** In slices, between which everybody else gets a turn: with 100 000 sessions the file has tens of megabytes. */
  async #writeSlices(file: FileHandle): Promise<string> {
    const hash = createHash('sha256')
    for (const slice of this.#slices()) {
      const bytes = Buffer.from(slice)
      hash.update(bytes)
      await file.write(bytes)
    }
    return hash.digest('hex')
  }

  /** All rows as they are at the call, whatever changes while they are written. */
  *#slices(): Iterable<string> {
    const rows = [...this.#deps.directory.rows()]
    let slice = rows.length === 0 ? '{' : '{\n'
    for (const [index, [key, record]] of rows.entries()) {
      slice += `  ${JSON.stringify(key)}: ${this.#textOf(record)}${index === rows.length - 1 ? '\n' : ',\n'}`
      if (slice.length < SLICE_CHARS) continue
      yield slice
      slice = ''
    }
    yield `${slice}}\n`
  }

  #textOf(record: SessionRecord): string {
    let text = this.#texts.get(record)
    if (text === undefined) {
      text = JSON.stringify(record, null, 2).replaceAll('\n', '\n  ')
      this.#texts.set(record, text)
    }
    return text
  }

  async #quarantine(bytes: Uint8Array): Promise<string> {
    const { path, clock, log } = this.#deps
    const aside = `${path}.corrupt-${clock.now()}`
    await writeAtomically(this.#deps, aside, bytes)
    log.error('sessions.json is damaged; the original was kept aside and every readable row taken over', { aside })
    return aside
  }

  #logFailure(error: unknown): void {
    const cause = error instanceof Error && errnoOf(error) === undefined ? error.cause : error
    this.#deps.log.error('sessions.json could not be written; the sessions themselves are safe in the journal', {
      reason: error instanceof Error ? error.name : 'unknown',
      errno: errnoOf(cause),
    })
  }
}

function sha256(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex')
}

function stampOf(stat: FileStat | undefined): string {
  return stat === undefined ? NO_FILE : `${stat.identity} ${stat.size} ${stat.modifiedAt}`
}

function isSame(ours: SessionRecord | undefined, theirs: SessionRecord): boolean {
  return ours !== undefined && JSON.stringify(ours) === JSON.stringify(theirs)
}
