import { createHash } from 'node:crypto'
import type { Clock, Timer } from '../../base/clock.ts'
import { writeAtomically } from '../../base/atomic-write.ts'
import { errnoOf, type FileHandle, type Files, type FileStat } from '../../base/files.ts'
import type { Ids } from '../../base/ids.ts'
import type { JournalTopic } from '../../base/journal.ts'
import type { Journal } from './journal.ts'
import type { Log } from '../../base/log.ts'
import type { SessionRecord } from '../../core/inbound.ts'
import type { SessionKey } from '../../core/ids.ts'
import type { SessionDirectory } from '../local/directory.ts'
import type { SessionRow } from '../storage.ts'
import { readIfThere, readRows } from './sessions-json.ts'

const TOPIC = 'index-export'
const EXPORT_DELAY_MS = 1_500
/** Up to here the file is at most two seconds old; a larger one follows as far as its share of the processor allows. */
const PROMPT_SESSIONS = 1_000
/** Times the duration of an export that pass before the next one: it takes at most a hundredth of a core. */
const PAUSE_PER_EXPORT = 100
/** What a row takes until an export of this run has shown it. */
const EXPECTED_MS_PER_ROW = 0.005
const ADOPT_BATCH = 1_000
/** More than what a disk writes without a wait, so that there is one behind each slice; little enough to be quick. */
const SLICE_CHARS = 96 * 1024
/** The export before the newest one may still be on disk when the program died between the commit and the rename. */
const KEPT_EXPORTS = 2

/** Files kept aside in one run: a program that writes old rows again and again must not fill the disk. */
const MAX_ASIDES = 20
const NO_FILE = ''
const NO_REVISION = -1

/** An export of ours: what it holds, and how the disk knows the file. */
interface Export {
  readonly hash: string
  readonly stamp: string
}

type ExportRecord = readonly [hash: string, stamp: string, isExact: boolean]

/** Remembers which `sessions.json` we wrote ourselves, so that a file of another program is recognised at start. */
export class ExportHistory implements JournalTopic<ExportRecord> {
  readonly name = TOPIC
  readonly #rows: Pick<SessionDirectory, 'revision'>
  #exports: readonly Export[] = []
  /** The revision of the rows that the latest export holds; while they have it, the file is exact. */
  revision = NO_REVISION

  constructor(rows: Pick<SessionDirectory, 'revision'>) {
    this.#rows = rows
  }

  /** Earlier versions noted the hash alone. */
  read(data: unknown): ExportRecord | undefined {
    const [hash, stamp, isExact] = Array.isArray(data) ? (data as readonly unknown[]) : [data, NO_FILE]
    return typeof hash === 'string' && typeof stamp === 'string' ? [hash, stamp, isExact === true] : undefined
  }

  apply([hash, stamp, isExact]: ExportRecord): void {
    const others = this.#exports.filter((known) => known.hash !== hash)
    this.#exports = [...others, { hash, stamp }].slice(-KEPT_EXPORTS)
    if (isExact) this.revision = this.#rows.revision
  }

  *snapshot(): Iterable<ExportRecord> {
    const isExact = this.revision === this.#rows.revision
    for (const [at, { hash, stamp }] of this.#exports.entries())
      yield [hash, stamp, isExact && at === this.#exports.length - 1]
  }

  hasHash(hash: string): boolean {
    return this.#exports.some((known) => known.hash === hash)
  }

  /** A long file is recognised without being read. */
  hasStamp(stamp: string): boolean {
    return stamp !== NO_FILE && this.#exports.some((known) => known.stamp === stamp)
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
  /** The time of the newest row when we last wrote the file; an unknown row that is older was deleted since. */
  #exportedAt = -1
  /** The file as we left it. */
  #seen = NO_FILE
  #asides = 0
  #timer: Timer | undefined
  #exporting: Promise<void> | undefined
  #isClosed = false
  /** How long the latest export took. */
  #exportMs: number | undefined

  constructor(deps: SessionsFileDeps) {
    this.#deps = deps
  }

  /**
   * Adopts rows of a foreign file: unknown keys, and known ones that are newer there. Nothing is ever removed by it; a
   * file with rows that were not adopted is kept aside before ours takes its place.
   */
  async adopt({ isLost = false } = {}): Promise<{ readonly adopted: number; readonly quarantined?: string }> {
    const { files, path, directory, history, journal } = this.#deps
    this.#seen = stampOf(await files.stat(path))
    // Our own copy is all there is when the rows themselves are lost.
    if (!isLost && history.hasStamp(this.#seen)) return { adopted: 0 }
    history.revision = NO_REVISION
    const bytes = await readIfThere(files, path)
    if (bytes === undefined || (!isLost && history.hasHash(sha256(bytes)))) return { adopted: 0 }
    const { rows, damaged } = await readRows(bytes, () => files.stat(path))
    const quarantined = damaged ? await this.#quarantine(bytes) : undefined
    const newer: [SessionKey, SessionRecord][] = []
    let lost = 0
    for (const [key, record] of rows) {
      const ours = await directory.get(key)
      // Another program's time that is still to come would be that of every later change: none is before the latest.
      const updatedAt = isLost ? record.updatedAt : Math.min(record.updatedAt, directory.now())
      if (record.updatedAt > (ours?.updatedAt ?? this.#exportedAt)) newer.push([key, { ...record, updatedAt }])
      else if (!isSame(ours, record)) lost++
    }
    newer.sort(([, a], [, b]) => a.updatedAt - b.updatedAt)
    for (let start = 0; start < newer.length; start += ADOPT_BATCH) {
      await journal.commit(
        newer
          .slice(start, start + ADOPT_BATCH)
          .map(([key, record]) => directory.recordOf({ kind: 'put-session', key, record })),
      )
    }
    if (lost > 0 && !damaged) await this.#keepAside(bytes, lost)
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
    const exportMs = this.#exportMs ?? size * EXPECTED_MS_PER_ROW
    return size <= PROMPT_SESSIONS ? EXPORT_DELAY_MS : Math.max(EXPORT_DELAY_MS, exportMs * PAUSE_PER_EXPORT)
  }

  #export(): Promise<void> {
    const { clock } = this.#deps
    const startedAt = clock.monotonic()
    this.#exporting ??= this.#write().finally(() => {
      this.#exportMs = clock.monotonic() - startedAt
      this.#exporting = undefined
      if (this.#deps.history.revision !== this.#deps.directory.revision && this.#timer === undefined) this.changed()
    })
    return this.#exporting
  }

  async #write(): Promise<void> {
    const { files, path, directory, journal, history } = this.#deps
    if (history.revision === directory.revision) return
    await this.#adoptChanges()
    const revision = directory.revision
    const exportedAt = directory.newestTime
    let written: ExportRecord = ['', NO_FILE, false]
    await writeAtomically(
      this.#deps,
      path,
      async (file) => {
        const hash = await this.#writeRows(file)
        written = [hash, stampOf(file.stat()), false]
      },
      // Durable before the file has its name, so that a crash in between cannot make our own copy look foreign.
      { beforeRename: () => journal.commit([{ topic: TOPIC, data: written }]) },
    )
    history.revision = revision
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
      return log.warn(
        'rows that another program wrote into sessions.json are older than the stored ones and were dropped',
        {
          rows,
        },
      )
    const aside = `${path}.foreign-${clock.now()}`
    await writeAtomically(this.#deps, aside, bytes)
    log.warn('rows that another program wrote into sessions.json were not taken over; its file was kept aside', {
      rows,
      aside,
    })
  }

  /** A row a line, in slices, between which everybody else gets a turn: a million rows are hundreds of megabytes. */
  async #writeRows(file: FileHandle): Promise<string> {
    const hash = createHash('sha256')
    let slice = '{'
    let rows = 0
    const write = async (): Promise<void> => {
      const bytes = Buffer.from(slice)
      slice = ''
      hash.update(bytes)
      await file.write(bytes)
    }
    const add = ([key, record]: readonly [key: string, record: string]): void => {
      slice += `${rows++ === 0 ? '\n' : ',\n'}  ${key}: ${record}`
    }
    const held: SessionRow[] = []
    await this.#deps.directory.scan((row) => {
      if (typeof row === 'string') add(partsOf(row))
      else held.push(row)
    }, write)
    for (const { key, record } of held) {
      add([JSON.stringify(key), JSON.stringify(record)])
      if (slice.length >= SLICE_CHARS) await write()
    }
    slice += rows === 0 ? '}\n' : '\n}\n'
    await write()
    return hash.digest('hex')
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

/** The two texts in `["key",{…}]`. */
function partsOf(text: string): readonly [key: string, record: string] {
  let end = text.indexOf('"', 2)
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1)
  return [text.slice(1, end + 1), text.slice(end + 2, -1)]
}

function isEscaped(text: string, quote: number): boolean {
  let backslashes = 0
  while (text[quote - 1 - backslashes] === '\\') backslashes++
  return backslashes % 2 === 1
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
