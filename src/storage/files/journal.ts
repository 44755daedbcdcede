import { deferred, type Deferred } from '../../base/async.ts'
import { removeUnfinished, writeAtomically } from '../../base/atomic-write.ts'
import { errnoOf, makeDurableDirectory, type FileHandle, type Files } from '../../base/files.ts'
import type { Ids } from '../../base/ids.ts'
import { encodeCommit, encodeJournalLines, JournalReader } from './journal-lines.ts'
import type { JournalRecord, JournalTopic } from '../../base/journal.ts'
import { JournalSegments } from './journal-segments.ts'
import type { Log } from '../../base/log.ts'

/**
 * The one write-ahead log of a home directory. A commit is durable when it resolves; its records stay together, over
 * several topics: after a crash all of them are there or none. Commits that arrive while a sync is under way share the
 * next one.
 *
 * State changes only through `JournalTopic.apply`, called in commit order, live and at recovery alike, so what a
 * restart rebuilds is what the program had.
 */
export interface Journal {
  commit(records: readonly JournalRecord[]): Promise<void>
  /** Moves everything committed so far out of the log: snapshots are written, old segments removed. */
  checkpoint(): Promise<void>
  /** Finishes the commits under way, checkpoints if it can, closes. */
  close(): Promise<void>
  readonly recovery: JournalRecovery
  /** The number of the last durable batch: it only grows, over restarts too. */
  readonly lastBatch: number
}

export interface JournalRecovery {
  readonly records: number
  /** Lines that could not be read and stood before readable ones: damage, not a torn tail. Kept in `*.damaged`. */
  readonly damagedLines: number
  /** Batches that are nowhere although later ones are there: files were removed or cut. */
  readonly missingBatches: number
  /** Files that hold something and no line that can be read. */
  readonly unreadableSegments: number
  /** Records that no topic can use, each skipped alone. Kept in `*.damaged`, with the file they stood in. */
  readonly rejectedRecords: number
  /** Lines at the very end that were dropped as an unfinished write. */
  readonly unfinishedLines: number
}

export interface JournalOptions {
  readonly files: Files
  readonly directory: string
  readonly topics: readonly JournalTopic[]
  readonly log: Log
  /** For the name of a snapshot that is being written. */
  readonly ids: Ids
  /** A checkpoint starts when the log has grown by this much, or by the size of the last snapshot if that is more. */
  readonly checkpointBytes?: number
  /** Size of the files the log is divided into, once it is in use. */
  readonly segmentBytes?: number
  /** Bytes committed before it counts as in use: until then no file is made ready ahead. */
  readonly prepareAfterBytes?: number
  /** Most bytes written between two syncs. */
  readonly maxBatchBytes?: number
  /** Commits waiting beyond this fail with `JournalBusy`. */
  readonly maxQueuedBytes?: number
  /**
   * Says why this process may no longer write here, or undefined while it may. Looked at before anything is changed and,
   * for a batch, again before it is acknowledged: what another owner reads after it took over is then everything that
   * was acknowledged. Cheap and synchronous.
   */
  readonly fence?: () => Error | undefined
  /** Reports the failure to the owner, which must stop acknowledging. Called once. */
  readonly onFailed?: (error: JournalFailed) => void
}

/** The log can no longer promise durability: nothing more is acknowledged until the program is restarted. */
export class JournalFailed extends Error {
  constructor(cause: unknown) {
    super('the journal could not be made durable', { cause })
    this.name = 'JournalFailed'
  }
}

/** This commit was not written and left nothing behind; later ones may succeed. `cause` says why (disk full …). */
export class JournalRefused extends Error {
  constructor(cause: unknown) {
    super('the journal refused a commit', { cause })
    this.name = 'JournalRefused'
  }
}

interface Waiting {
  readonly commit: string
  readonly records: readonly JournalRecord[]
  readonly done: Deferred<void>
}

interface Rotation {
  /** The last segment before it, and the last batch. */
  readonly covered: number
  readonly batch: number
}

const FLUSH_NOW_BYTES = 16 * 1024
/** Promises that may lie between two commits of one thing. All of them together take about a microsecond. */
const COALESCE_MICROTASKS = 8
const SNAPSHOT_SLICE_LENGTH = 256 * 1024
const MAX_DAMAGED_KEPT = 10

export async function openJournal(options: JournalOptions): Promise<Journal> {
  const journal = new FileJournal(options)
  await journal.recover()
  return journal
}

class FileJournal implements Journal {
  readonly #options: Required<Omit<JournalOptions, 'onFailed'>> & Pick<JournalOptions, 'onFailed'>
  readonly #topics: ReadonlyMap<string, JournalTopic>
  readonly #segments: JournalSegments
  /** The number of the last batch. */
  #batch = 0
  /** Written since the last checkpoint began. */
  #grownBytes = 0
  #snapshotBytes = 0
  #queue: Waiting[] = []
  #queuedBytes = 0
  #isGathering = false
  #writing: Promise<void> | undefined
  #rotation: Deferred<Rotation> | undefined
  #checkpointing: Promise<void> | undefined
  #failed: JournalFailed | undefined
  #closed = false
  /** Files with lines that could not be read, or records that could not be used. */
  readonly #damaged = new Set<string>()
  /** Records that could not be used, by topic. */
  readonly #rejected = new Map<string, number>()
  recovery: JournalRecovery = {
    records: 0,
    damagedLines: 0,
    missingBatches: 0,
    unreadableSegments: 0,
    rejectedRecords: 0,
    unfinishedLines: 0,
  }

  constructor(options: JournalOptions) {
    this.#options = {
      checkpointBytes: 64 * 1024 * 1024,
      segmentBytes: 4 * 1024 * 1024,
      prepareAfterBytes: 64 * 1024,
      maxBatchBytes: 4 * 1024 * 1024,
      maxQueuedBytes: 256 * 1024 * 1024,
      fence: () => undefined,
      ...options,
    }
    this.#segments = new JournalSegments(this.#options)
    this.#topics = new Map(options.topics.map((topic) => [topic.name, topic]))
  }

  async recover(): Promise<void> {
    const { files, directory } = this.#options
    this.#requireOwnership()
    await makeDurableDirectory(files, directory)
    await removeUnfinished(files, { directory })
    const names = await files.list(directory)
    const snapshot = numbered(names, '.snap').at(-1) ?? 0
    const segments = numbered(names, '.log')
    const reader = new JournalReader((records, path) => this.#takeBack(records, path))
    if (snapshot > 0) {
      this.#snapshotBytes = (await reader.read(files, this.#path(snapshot, 'snap'))).size
      reader.confirm()
      // A snapshot stands for all batches before it.
      reader.missingBatches = 0
    }
    const ends: { readonly path: string; readonly end: number }[] = []
    let unreadableSegments = 0
    for (const path of segments.filter((number) => number > snapshot).map((number) => this.#path(number, 'log'))) {
      const { end, isBlank, isUnreadable } = await reader.read(files, path)
      if (isUnreadable) unreadableSegments++
      // The owner of the home alone may say that a segment is unused: a living one is about to write to its own.
      this.#requireOwnership()
      if (isBlank) await files.remove(path)
      else ends.push({ path, end })
    }
    const last = ends.at(-1)
    this.#requireOwnership()
    for (const segment of ends) await makeFinal(files, segment, segment === last)
    await files.syncDirectory(directory)
    this.#batch = reader.lastTaken
    for (const path of reader.damage.keys()) this.#damaged.add(path)
    const damagedLines = [...reader.damage.values()].reduce((sum, lines) => sum + lines, 0)
    const { records, missingBatches, unfinishedLines } = reader
    const rejectedRecords = [...this.#rejected.values()].reduce((sum, count) => sum + count, 0)
    this.recovery = { records, damagedLines, missingBatches, unreadableSegments, rejectedRecords, unfinishedLines }
    this.#logLosses()
    await this.#segments.start(Math.max(snapshot, segments.at(-1) ?? 0) + 1)
  }

  get lastBatch(): number {
    return this.#batch
  }

  #logLosses(): void {
    const { log } = this.#options
    const { damagedLines, missingBatches, unreadableSegments, unfinishedLines } = this.recovery
    if (damagedLines > 0) log.error('the journal has damaged lines; what they held is lost', { damagedLines })
    if (missingBatches > 0) log.error('parts of the journal are missing; what they held is lost', { missingBatches })
    if (unreadableSegments > 0)
      log.error(
        'a file of the journal holds nothing that can be read; unless a crash cut its first write, it is lost',
        {
          unreadableSegments,
        },
      )
    for (const [topic, rejected] of this.#rejected)
      log.error('the journal holds records that this version cannot use; they are skipped, and their file is kept', {
        topic,
        rejected,
      })
    if (unfinishedLines > 0) log.warn('an unfinished write at the end of the journal was dropped', { unfinishedLines })
  }

  commit(records: readonly JournalRecord[]): Promise<void> {
    if (this.#failed) return Promise.reject(this.#failed)
    if (this.#closed) return Promise.reject(new JournalRefused(new Error('the journal is closed')))
    const commit = encodeCommit(records)
    if (this.#queuedBytes + commit.length > this.#options.maxQueuedBytes) {
      return Promise.reject(new JournalRefused(new Error('too many commits are waiting')))
    }
    const done = deferred()
    this.#queue.push({ commit, records, done })
    this.#queuedBytes += commit.length
    this.#startWriting()
    return done.promise
  }

  checkpoint(): Promise<void> {
    this.#checkpointing ??= this.#runCheckpoint().finally(() => {
      this.#checkpointing = undefined
    })
    return this.#checkpointing
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#writeNow()
    await this.#writing
    await this.#checkpointing?.catch(() => undefined)
    // Without a checkpoint, on a full disk for instance, the next start reads the segments instead.
    if (this.#failed === undefined) await this.#runCheckpoint().catch((error: unknown) => this.#logCheckpoint(error))
    await this.#segments.close({ keepFiles: this.#failed !== undefined })
  }

  #requireOwnership(): void {
    const lost = this.#options.fence()
    if (lost !== undefined) throw new JournalFailed(lost)
  }

  /**
   * A moment later everything that the callers of this moment commit is in the queue. What is enough for a sync of its
   * own starts at once: the rest is put together while the disk works.
   */
  #startWriting(): void {
    if (this.#writing !== undefined) return
    if (this.#queuedBytes >= FLUSH_NOW_BYTES) return this.#writeNow()
    if (this.#isGathering) return
    this.#isGathering = true
    void this.#gather()
  }

  async #gather(): Promise<void> {
    for (let turn = 0; turn < COALESCE_MICROTASKS; turn++) await Promise.resolve()
    this.#writeNow()
  }

  #writeNow(): void {
    this.#isGathering = false
    const isIdle = this.#writing === undefined
    if (isIdle && (this.#queue.length > 0 || this.#rotation !== undefined)) this.#writing = this.#writeAll()
  }

  async #writeAll(): Promise<void> {
    while (this.#queue.length > 0 || this.#rotation !== undefined) {
      if (this.#rotation !== undefined) await this.#rotate(this.#rotation)
      const batch = this.#takeBatch()
      if (batch.length === 0) continue
      try {
        await this.#writeBatch(batch)
      } catch (error) {
        for (const waiting of batch) waiting.done.reject(error)
        if (error instanceof JournalFailed) this.#fail(error)
      }
      if (this.#isDueForCheckpoint()) void this.checkpoint().catch((error: unknown) => this.#logCheckpoint(error))
    }
    // In the same turn as the last look at the queue: a record that comes later starts a new writer.
    this.#writing = undefined
  }

  #takeBatch(): Waiting[] {
    let bytes = 0
    let count = 0
    for (const waiting of this.#queue) {
      if (count > 0 && bytes + waiting.commit.length > this.#options.maxBatchBytes) break
      bytes += waiting.commit.length
      count++
    }
    this.#queuedBytes -= bytes
    return this.#queue.splice(0, count)
  }

  async #writeBatch(batch: readonly Waiting[]): Promise<void> {
    this.#requireOwnership()
    const commits = batch.map(({ commit }) => commit)
    const bytes = encodeJournalLines(++this.#batch, 0, commits)
    try {
      await this.#segments.write(bytes)
    } catch (error) {
      await this.#undoWrite()
      // Nothing of it is on the disk: a gap in the numbers would look like a loss.
      this.#batch--
      throw new JournalRefused(error)
    }
    try {
      await this.#segments.sync(bytes.length)
    } catch (error) {
      throw new JournalFailed(error)
    }
    this.#requireOwnership()
    this.#grownBytes += bytes.length
    for (const waiting of batch) {
      this.#apply(waiting.records)
      waiting.done.resolve()
    }
  }

  /** A part of a batch on disk would be glued to the next one; when it cannot be taken back nothing may follow it. */
  async #undoWrite(): Promise<void> {
    try {
      await this.#segments.undo()
    } catch (error) {
      throw new JournalFailed(error)
    }
  }

  /** The one place where records come back from a disk. A bad one costs only itself, and its file is kept. */
  #takeBack(records: readonly JournalRecord[], path: string): void {
    for (const { topic: name, data } of records) {
      const topic = this.#topics.get(name)
      const record = topic?.read(data)
      if (record !== undefined) topic?.apply(record)
      else {
        this.#damaged.add(path)
        // The name comes from the disk too: only ours are fit for a log.
        const known = topic?.name ?? 'unknown'
        this.#rejected.set(known, (this.#rejected.get(known) ?? 0) + 1)
      }
    }
  }

  #apply(records: readonly JournalRecord[]): void {
    for (const { topic, data } of records) this.#topics.get(topic)?.apply(data)
  }

  #fail(error: JournalFailed): void {
    this.#failed = error
    for (const waiting of this.#queue.splice(0)) waiting.done.reject(error)
    this.#queuedBytes = 0
    this.#options.onFailed?.(error)
  }

  #isDueForCheckpoint(): boolean {
    return (
      this.#failed === undefined &&
      this.#grownBytes > Math.max(this.#options.checkpointBytes, this.#snapshotBytes) &&
      this.#checkpointing === undefined
    )
  }

  async #runCheckpoint(): Promise<void> {
    try {
      await this.#writeCheckpoint()
    } catch (error) {
      if (error instanceof JournalFailed && this.#failed === undefined) this.#fail(error)
      throw error
    }
  }

  async #writeCheckpoint(): Promise<void> {
    if (this.#failed) throw this.#failed
    await this.#segments.settle()
    const rotation = deferred<Rotation>()
    this.#rotation = rotation
    this.#startWriting()
    const { covered, batch } = await rotation.promise
    for (const topic of this.#topics.values()) await topic.settle?.()
    await this.#writeSnapshot(covered, batch)
    await this.#removeCovered(covered)
  }

  /** Between two batches: everything in the old segments is applied, everything later goes to the new one. */
  async #rotate(rotation: Deferred<Rotation>): Promise<void> {
    this.#rotation = undefined
    try {
      this.#requireOwnership()
      const covered = await this.#segments.rotate()
      this.#grownBytes = 0
      // A snapshot before the first batch has a number too: lines without one are read as an older format's.
      this.#batch = Math.max(1, this.#batch)
      rotation.resolve({ covered, batch: this.#batch })
    } catch (error) {
      rotation.reject(error)
    }
  }

  async #writeSnapshot(covered: number, batch: number): Promise<void> {
    let total = 0
    const path = this.#path(covered, 'snap')
    await writeAtomically(this.#options, path, async (file) => void (total = await this.#writeTopics(file, batch)), {
      beforeRename: () => this.#requireOwnership(),
    })
    this.#snapshotBytes = total
  }

  /** Everything the topics hold, in slices. Returns how many bytes that was. */
  async #writeTopics(file: FileHandle, batch: number): Promise<number> {
    let total = 0
    let place = 0
    // An empty commit first: also a snapshot without a record says which batch it covers.
    let slice: string[] = ['[]']
    let sliceLength = 0
    const writeSlice = async (): Promise<void> => {
      const bytes = encodeJournalLines(batch, place, slice)
      await file.write(bytes)
      total += bytes.length
      place += slice.length
      slice = []
      sliceLength = 0
    }
    for (const topic of this.#topics.values()) {
      for (const data of topic.snapshot()) {
        const commit = encodeCommit([{ topic: topic.name, data }])
        slice.push(commit)
        sliceLength += commit.length
        if (sliceLength >= SNAPSHOT_SLICE_LENGTH) await writeSlice()
      }
    }
    await writeSlice()
    return total
  }

  async #removeCovered(covered: number): Promise<void> {
    const { files, directory } = this.#options
    const names = await files.list(directory)
    this.#requireOwnership()
    for (const segment of numbered(names, '.log').filter((number) => number <= covered)) {
      const path = this.#path(segment, 'log')
      if (this.#damaged.has(path)) await files.rename(path, `${directory}/${segment}.damaged`)
      else await files.remove(path)
    }
    for (const snapshot of numbered(names, '.snap').filter((number) => number < covered)) {
      const path = this.#path(snapshot, 'snap')
      if (this.#damaged.has(path)) await files.rename(path, `${directory}/${snapshot}.damaged`)
      else await files.remove(path)
    }
    this.#damaged.clear()
    const damaged = numbered(await files.list(directory), '.damaged')
    for (const number of damaged.slice(0, -MAX_DAMAGED_KEPT)) await files.remove(`${directory}/${number}.damaged`)
  }

  #logCheckpoint(error: unknown): void {
    // Try again only after as much growth again, instead of at every batch.
    this.#snapshotBytes = Math.max(this.#snapshotBytes, this.#grownBytes + this.#options.checkpointBytes)
    this.#options.log.error('a checkpoint of the journal failed; the log keeps growing until one succeeds', {
      errno: errnoOf(error),
    })
  }

  #path(number: number, ending: 'log' | 'snap'): string {
    return `${this.#options.directory}/${number}.${ending}`
  }
}

/**
 * A killed process leaves lines that were written and not synced. Having been applied they are facts that later commits
 * build on, so a power cut must not be able to take them back. What was dropped must not come back either: it is cut
 * off before anything follows that would make it look complete.
 */
async function makeFinal(
  files: Files,
  { path, end }: { readonly path: string; readonly end: number },
  isLast: boolean,
): Promise<void> {
  const handle = await files.open(path, 'update')
  try {
    if (isLast && handle.stat().size > end) await handle.truncate(end)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** The numbers of the files with this ending, ascending. */
function numbered(names: readonly string[], ending: string): number[] {
  return names
    .filter((name) => name.endsWith(ending))
    .map((name) => Number(name.slice(0, -ending.length)))
    .filter((number) => Number.isSafeInteger(number) && number > 0)
    .sort((a, b) => a - b)
}
