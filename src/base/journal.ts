import type { FileHandle, Files } from './files.ts'
import { errnoOf, makeDurableDirectory } from './files.ts'
import type { Log } from './log.ts'
import { deferred, type Deferred } from './deferred.ts'
import { encodeJournalLine, readJournalLines } from './journal-lines.ts'

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
  /** Finishes the commits under way, checkpoints, closes. */
  close(): Promise<void>
  readonly recovery: JournalRecovery
}

export interface JournalRecord {
  readonly topic: string
  /** JSON-serialisable. */
  readonly data: unknown
  /** `data` as JSON, from whoever has encoded it already. */
  readonly json?: string
}

export interface JournalTopic {
  readonly name: string
  /** Must be idempotent when a run of records is applied again in order: snapshots may already contain some of them. */
  apply(data: unknown): void
  /** The whole state as records; read in slices while later records are being applied. */
  snapshot(): Iterable<unknown>
  /** Makes what `apply` caused elsewhere durable there, before the records that describe it are removed. */
  settle?(): Promise<void>
}

export interface JournalRecovery {
  readonly records: number
  /** Lines that could not be read and stood before readable ones: damage, not a torn tail. Kept in `*.damaged`. */
  readonly damagedLines: number
}

export interface JournalOptions {
  readonly files: Files
  readonly directory: string
  readonly topics: readonly JournalTopic[]
  readonly log: Log
  /** A checkpoint starts when the log has grown by this much, or by the size of the last snapshot if that is more. */
  readonly checkpointBytes?: number
  /** Most bytes written between two syncs. */
  readonly maxBatchBytes?: number
  /** Commits waiting beyond this fail with `JournalBusy`. */
  readonly maxQueuedBytes?: number
  /** Makes the failure known to whoever must stop acknowledging. Called once. */
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
  readonly line: string
  readonly records: readonly JournalRecord[]
  readonly done: Deferred<void>
}

const SNAPSHOT_SLICE_BYTES = 256 * 1024
const MAX_DAMAGED_KEPT = 10

export async function openJournal(options: JournalOptions): Promise<Journal> {
  const journal = new FileJournal(options)
  await journal.recover()
  return journal
}

class FileJournal implements Journal {
  readonly #options: Required<Omit<JournalOptions, 'onFailed'>> & Pick<JournalOptions, 'onFailed'>
  readonly #topics: ReadonlyMap<string, JournalTopic>
  #segment = 0
  #handle: FileHandle | undefined
  #segmentBytes = 0
  #snapshotBytes = 0
  #queue: Waiting[] = []
  #queuedBytes = 0
  #writing: Promise<void> | undefined
  #rotation: Deferred<number> | undefined
  #checkpointing: Promise<void> | undefined
  #failed: JournalFailed | undefined
  #closed = false
  #damaged = new Set<number>()
  recovery: JournalRecovery = { records: 0, damagedLines: 0 }

  constructor(options: JournalOptions) {
    this.#options = {
      checkpointBytes: 64 * 1024 * 1024,
      maxBatchBytes: 4 * 1024 * 1024,
      maxQueuedBytes: 256 * 1024 * 1024,
      ...options,
    }
    this.#topics = new Map(options.topics.map((topic) => [topic.name, topic]))
  }

  async recover(): Promise<void> {
    const { files, directory, log } = this.#options
    await makeDurableDirectory(files, directory)
    const names = await files.list(directory)
    for (const name of names) if (name.endsWith('.tmp')) await files.remove(`${directory}/${name}`)
    const snapshot = numbered(names, '.snap').at(-1) ?? 0
    const segments = numbered(names, '.log')
    let records = 0
    let damagedLines = 0
    if (snapshot > 0) {
      const read = await readJournalLines(files, this.#path(snapshot, 'snap'), (batch) => {
        records += this.#apply(batch)
      })
      damagedLines += read.damagedLines + (read.tornBytes > 0 ? 1 : 0)
      this.#snapshotBytes = read.bytes
      if (read.damagedLines > 0 || read.tornBytes > 0) this.#damaged.add(snapshot)
    }
    for (const segment of segments) {
      if (segment <= snapshot) continue
      const read = await readJournalLines(files, this.#path(segment, 'log'), (batch) => {
        records += this.#apply(batch)
      })
      damagedLines += read.damagedLines
      if (read.damagedLines > 0) this.#damaged.add(segment)
      await syncFile(files, this.#path(segment, 'log'))
    }
    await files.syncDirectory(directory)
    this.recovery = { records, damagedLines }
    if (damagedLines > 0) log.error('the journal has damaged lines; what they held is lost', { damagedLines })
    this.#segment = Math.max(snapshot, segments.at(-1) ?? 0)
    await this.#startSegment()
  }

  commit(records: readonly JournalRecord[]): Promise<void> {
    if (this.#failed) return Promise.reject(this.#failed)
    if (this.#closed) return Promise.reject(new JournalRefused(new Error('the journal is closed')))
    const line = encodeJournalLine(records)
    if (this.#queuedBytes + line.length > this.#options.maxQueuedBytes) {
      return Promise.reject(new JournalRefused(new Error('too many commits are waiting')))
    }
    const done = deferred()
    this.#queue.push({ line, records, done })
    this.#queuedBytes += line.length
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
    while (this.#writing !== undefined) await this.#writing
    await this.#checkpointing?.catch(() => undefined)
    if (this.#failed === undefined) await this.#runCheckpoint()
    await this.#handle?.close()
  }

  #startWriting(): void {
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined
      if (this.#queue.length > 0 || this.#rotation !== undefined) this.#startWriting()
    })
  }

  async #writeAll(): Promise<void> {
    // One microtask later, everything that was committed in the same turn of the event loop is in the queue.
    await Promise.resolve()
    while (this.#queue.length > 0 || this.#rotation !== undefined) {
      await this.#rotateIfAsked()
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
  }

  #takeBatch(): Waiting[] {
    let bytes = 0
    let count = 0
    for (const waiting of this.#queue) {
      if (count > 0 && bytes + waiting.line.length > this.#options.maxBatchBytes) break
      bytes += waiting.line.length
      count++
    }
    this.#queuedBytes -= bytes
    return this.#queue.splice(0, count)
  }

  async #writeBatch(batch: readonly Waiting[]): Promise<void> {
    const handle = this.#handle
    if (handle === undefined) throw new JournalFailed(new Error('no segment is open'))
    const bytes = Buffer.from(batch.map((waiting) => waiting.line).join(''))
    try {
      await handle.write(bytes)
    } catch (error) {
      await this.#undoWrite(handle)
      throw new JournalRefused(error)
    }
    try {
      await handle.sync()
    } catch (error) {
      throw new JournalFailed(error)
    }
    this.#segmentBytes += bytes.length
    for (const waiting of batch) {
      this.#apply(waiting.records)
      waiting.done.resolve()
    }
  }

  /** A part of a batch on disk would be glued to the next one; when it cannot be taken back nothing may follow it. */
  async #undoWrite(handle: FileHandle): Promise<void> {
    try {
      await handle.truncate(this.#segmentBytes)
    } catch (error) {
      throw new JournalFailed(error)
    }
  }

  #apply(records: readonly JournalRecord[]): number {
    for (const { topic, data } of records) this.#topics.get(topic)?.apply(data)
    return records.length
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
      this.#segmentBytes > Math.max(this.#options.checkpointBytes, this.#snapshotBytes) &&
      this.#checkpointing === undefined
    )
  }

  async #runCheckpoint(): Promise<void> {
    if (this.#failed) throw this.#failed
    const rotation = deferred<number>()
    this.#rotation = rotation
    this.#startWriting()
    const covered = await rotation.promise
    for (const topic of this.#topics.values()) await topic.settle?.()
    await this.#writeSnapshot(covered)
    await this.#removeCovered(covered)
  }

  /** Between two batches: everything in the old segments is applied, everything later goes to the new one. */
  async #rotateIfAsked(): Promise<void> {
    const rotation = this.#rotation
    if (rotation === undefined) return
    this.#rotation = undefined
    const covered = this.#segment
    const previous = this.#handle
    try {
      await this.#startSegment()
      await previous?.close()
      rotation.resolve(covered)
    } catch (error) {
      rotation.reject(error)
    }
  }

  async #startSegment(): Promise<void> {
    const { files, directory } = this.#options
    const handle = await files.open(this.#path(this.#segment + 1, 'log'), 'create')
    await files.syncDirectory(directory)
    this.#segment++
    this.#segmentBytes = 0
    this.#handle = handle
  }

  async #writeSnapshot(covered: number): Promise<void> {
    const { files, directory } = this.#options
    const temporary = `${directory}/${covered}.tmp`
    const handle = await files.open(temporary, 'replace')
    let total = 0
    try {
      let slice: string[] = []
      let bytes = 0
      for (const topic of this.#topics.values()) {
        for (const data of topic.snapshot()) {
          const line = encodeJournalLine([{ topic: topic.name, data }])
          slice.push(line)
          bytes += line.length
          if (bytes < SNAPSHOT_SLICE_BYTES) continue
          await handle.write(Buffer.from(slice.join('')))
          total += bytes
          slice = []
          bytes = 0
        }
      }
      await handle.write(Buffer.from(slice.join('')))
      total += bytes
      await handle.sync()
    } finally {
      await handle.close()
    }
    await files.rename(temporary, this.#path(covered, 'snap'))
    await files.syncDirectory(directory)
    this.#snapshotBytes = total
  }

  async #removeCovered(covered: number): Promise<void> {
    const { files, directory } = this.#options
    const names = await files.list(directory)
    for (const segment of numbered(names, '.log').filter((number) => number <= covered)) {
      const path = this.#path(segment, 'log')
      if (this.#damaged.has(segment)) await files.rename(path, `${directory}/${segment}.damaged`)
      else await files.remove(path)
    }
    for (const snapshot of numbered(names, '.snap').filter((number) => number < covered)) {
      const path = this.#path(snapshot, 'snap')
      if (this.#damaged.has(snapshot)) await files.rename(path, `${directory}/${snapshot}.damaged`)
      else await files.remove(path)
    }
    this.#damaged.clear()
    const damaged = numbered(await files.list(directory), '.damaged')
    for (const number of damaged.slice(0, -MAX_DAMAGED_KEPT)) await files.remove(`${directory}/${number}.damaged`)
  }

  #logCheckpoint(error: unknown): void {
    // Try again only after as much growth again, instead of at every batch.
    this.#snapshotBytes = Math.max(this.#snapshotBytes, this.#segmentBytes + this.#options.checkpointBytes)
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
 * build on, so a power cut must not be able to take them back.
 */
async function syncFile(files: Files, path: string): Promise<void> {
  const handle = await files.open(path, 'update')
  try {
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
