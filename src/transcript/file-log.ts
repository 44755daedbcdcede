import type { Clock } from '../base/clock.ts'
import { deferred } from '../base/deferred.ts'
import { errnoOf, type FileHandle, type Files, type FileStat } from '../base/files.ts'
import type { Ids } from '../base/ids.ts'
import type { Journal, JournalRecord } from '../base/journal.ts'
import type { Log } from '../base/log.ts'
import type { Processes } from '../base/processes.ts'
import type { Entry, SessionHeader } from '../core/entry.ts'
import { GatewayError } from '../core/errors.ts'
import type { EntryId, SessionId } from '../core/ids.ts'
import { EMPTY_PATH, type ActivePath } from './context.ts'
import { EntryIndex } from './entry-index.ts'
import { kindOf } from './head.ts'
import type { TranscriptLimits } from './limits.ts'
import { encodeHeader, FORMAT_VERSION } from './line.ts'
import { loadByScan, type Loaded } from './load.ts'
import { loadTail } from './load-tail.ts'
import { lockOf, type WriteLock } from './lock.ts'
import type { EncodedEntry, EntryLog, LogState } from './log.ts'
import { requireJournal } from './memory-log.ts'
import { makeSound, makeSuspectSound } from './mend.ts'
import { reconcile } from './reconcile.ts'
import { toStorageError } from './storage-error.ts'
import { appendRecord, goneRecord, type TranscriptTopic } from './topic.ts'
import { TreeReader } from './tree-reader.ts'

const SMALL_FILE_BYTES = 1024 * 1024
const NEVER = new AbortController().signal

/** What all file logs of one store share. */
export interface FileLogContext {
  readonly files: Files
  readonly clock: Clock
  readonly ids: Ids
  readonly processes: Processes
  readonly log: Log
  readonly limits: TranscriptLimits
  readonly cwd: string
  readonly durability: 'sync' | 'fast'
  readonly journal: { readonly journal: Pick<Journal, 'commit'>; readonly topic: TranscriptTopic } | undefined
  /** Files whose last sync failed: what they show may not be on the disk. */
  readonly suspects: Set<string>
  /** Told of names that need a sync of the folder. */
  onCreated(): void
}

/** One session's file. Every method but the readers needs the lock, which `beginWrite` takes. */
export class FileLog implements EntryLog {
  readonly #context: FileLogContext
  readonly #sessionId: SessionId
  readonly #path: string
  readonly #lock: WriteLock
  #header: SessionHeader
  #loaded: Loaded | undefined
  #identity: string | undefined
  #size = 0
  #index: EntryIndex | undefined
  #handle: FileHandle | undefined
  #failed: GatewayError | undefined
  /** Lines that are durable in the journal and could not be written to the file yet. */
  #unwritten = ''
  #unwrittenRecords: JournalRecord[] = []
  /** Ends when a commit under way has reached the file. */
  #inFlight: Promise<void> = Promise.resolve()

  constructor(context: FileLogContext, sessionId: SessionId, path: string) {
    this.#context = context
    this.#sessionId = sessionId
    this.#path = path
    const { limits, ...ports } = context
    this.#lock = lockOf(`${path}.lock`, {
      ...ports,
      timeoutMs: limits.lockTimeoutMs,
      staleMs: limits.lockStaleMs,
      lingerMs: limits.lockLingerMs,
    })
    this.#header = this.#newHeader()
  }

  get heldBytes(): number {
    return (this.#index?.heldBytes ?? 0) + this.#unwritten.length
  }

  /** Nothing more is acknowledged here; the store opens the file anew. */
  get hasFailed(): boolean {
    return this.#failed !== undefined
  }

  /** Holds lines that are nowhere else but in the journal. */
  get isBehind(): boolean {
    return this.#unwritten !== ''
  }

  get idDigits(): number {
    return this.#index === undefined ? 16 : 8
  }

  isIdFree(id: EntryId): boolean {
    return this.#index === undefined || this.#index.ids.get(id) < 0
  }

  async load(signal: AbortSignal): Promise<LogState> {
    signal.throwIfAborted()
    await this.reconcile(signal)
    return this.#read()
  }

  /** Puts what the journal recovered into the file. */
  async reconcile(signal: AbortSignal): Promise<void> {
    const topic = this.#context.journal?.topic
    if (topic?.recoveredOf(this.#sessionId) === undefined) return
    await this.#lock.enter(signal)
    try {
      // Another caller may have done it while we waited for the lock.
      const batches = topic.recoveredOf(this.#sessionId)
      if (batches === undefined) return
      const { files, ids, limits } = this.#context
      await reconcile({
        files,
        path: this.#path,
        batches,
        headerLine: encodeHeader(this.#header),
        maxLineBytes: limits.maxLineBytes,
        newId: () => ids.hex(16),
        timestamp: this.#now(),
      })
      this.#context.onCreated()
      topic.reconciled(this.#sessionId)
    } catch (error) {
      throw toStorageError(error)
    } finally {
      await this.#lock.leave()
    }
  }

  async #read(): Promise<LogState> {
    const handle = await this.#openForReading()
    if (handle === undefined) return this.#adopt(undefined, undefined)
    try {
      const { identity, size } = await handle.stat()
      const options = { handle, maxLineBytes: this.#context.limits.maxLineBytes, fallbackHeader: this.#header }
      // A small file is read whole either way, and then every id in it is known.
      const tail = size > SMALL_FILE_BYTES ? await loadTail(options) : undefined
      return this.#adopt(tail ?? (await loadByScan(options)), identity)
    } finally {
      await handle.close()
    }
  }

  async #openForReading(): Promise<FileHandle | undefined> {
    try {
      return await this.#context.files.open(this.#path, 'read')
    } catch (error) {
      if (errnoOf(error) === 'ENOENT') return undefined
      throw toStorageError(error)
    }
  }

  #adopt(loaded: Loaded | undefined, identity: string | undefined): LogState {
    this.#loaded = loaded
    this.#identity = identity
    this.#size = loaded?.size ?? 0
    this.#index = loaded === undefined ? new EntryIndex() : loaded.scan?.index
    if (loaded !== undefined) this.#header = loaded.state.header
    return loaded?.state ?? { header: this.#header, leafId: null, active: EMPTY_PATH, repairs: [] }
  }

  async beginWrite(signal: AbortSignal): Promise<LogState | undefined> {
    if (this.#failed !== undefined) throw this.#failed
    await this.#lock.enter(signal)
    try {
      await this.#writeUnwritten()
      return await this.#refresh()
    } catch (error) {
      await this.endWrite()
      throw toStorageError(error)
    }
  }

  /** Others may have appended, replaced or removed the file, with the lock or, as pi does, without. */
  async #refresh(): Promise<LogState | undefined> {
    const stat = await this.#statFile()
    if (stat?.identity === this.#identity && (stat?.size ?? 0) === this.#size) return undefined
    await this.#closeHandle()
    return this.#read()
  }

  /** While we hold the lock and the file open, nobody who respects the lock replaces it: its size tells enough. */
  async #statFile(): Promise<FileStat | undefined> {
    const { files } = this.#context
    if (this.#handle !== undefined) return this.#handle.stat()
    return files.statNow === undefined ? files.stat(this.#path) : files.statNow(this.#path)
  }

  async write(batch: readonly EncodedEntry[], alongside: readonly JournalRecord[]): Promise<void> {
    const { journal, durability } = this.#context
    try {
      await this.#lock.fence()
      await this.#mend()
      if (alongside.length > 0) requireJournal(journal)
      if (batch.length === 0) return await journal?.journal.commit(alongside)
      const isThroughJournal = journal !== undefined && (durability === 'sync' || alongside.length > 0)
      if (isThroughJournal) await this.#writeThroughJournal(batch, alongside, journal.journal)
      else await this.#writeDirectly(batch, durability === 'sync')
    } catch (error) {
      throw toStorageError(error)
    }
  }

  async endWrite(): Promise<void> {
    await this.#lock.leave()
    if (!this.#lock.isOwned) await this.#closeHandle()
  }

  /** A file that is damaged, torn, old or suspect is made sound before anything is added to it. */
  async #mend(): Promise<void> {
    const { files, suspects, journal } = this.#context
    if (suspects.has(this.#path)) {
      await this.#closeHandle()
      await makeSuspectSound({ ...this.#context, path: this.#path })
      suspects.delete(this.#path)
      await this.#read()
    }
    const loaded = this.#loaded
    if (loaded === undefined) return
    if (loaded.isSound && loaded.tornBytes === 0) return this.#endLastLine(loaded)
    await this.#closeHandle()
    const { maxBackups, maxLineBytes } = this.#context.limits
    const { isRewritten } = await makeSound({ ...this.#context, path: this.#path, loaded, maxBackups, maxLineBytes })
    // The records of earlier appends name places in the old file; all of it is durable in the new one.
    if (isRewritten && journal !== undefined) await journal.journal.commit([goneRecord(this.#sessionId)])
    const handle = await files.open(this.#path, 'read')
    try {
      const { identity } = await handle.stat()
      this.#adopt(await loadByScan({ handle, maxLineBytes, fallbackHeader: this.#header }), identity)
    } finally {
      await handle.close()
    }
  }

  /**
   * A last line without its newline gets one, and that is made durable before anything follows: a power cut that keeps
   * a later write and loses this one would glue somebody's entry to what comes after it.
   */
  async #endLastLine(loaded: Loaded): Promise<void> {
    if (loaded.endsWithNewline || this.#size === 0) return
    const handle = await this.#context.files.open(this.#path, 'update')
    try {
      await handle.write('\n', this.#size)
      await handle.sync()
    } finally {
      await handle.close()
    }
    this.#loaded = { ...loaded, endsWithNewline: true, size: loaded.size + 1 }
    this.#size++
  }

  async #writeThroughJournal(
    batch: readonly EncodedEntry[],
    alongside: readonly JournalRecord[],
    journal: Pick<Journal, 'commit'>,
  ): Promise<void> {
    const prefix = this.#prefix()
    const offset = this.#size + (this.#isEmpty ? 0 : prefix.length)
    const record = appendRecord(this.#sessionId, offset, this.#isEmpty ? this.#header : undefined, batch)
    const inFlight = deferred()
    this.#inFlight = inFlight.promise
    try {
      await journal.commit([record, ...alongside])
      await this.#writeCommitted(batch, prefix, record)
    } finally {
      inFlight.resolve()
    }
  }

  /** The entries are acknowledged whatever happens here: the journal has them. */
  async #writeCommitted(batch: readonly EncodedEntry[], prefix: string, record: JournalRecord): Promise<void> {
    const text = prefix + textOf(batch)
    try {
      if (!(await this.#lock.isHeld())) throw new Error('the lock was lost')
      await this.#appendText(text)
      this.#indexBatch(batch, prefix)
    } catch (error) {
      this.#unwritten += text
      this.#unwrittenRecords.push(record)
      this.#index = undefined
      this.#context.log.error('a transcript file is behind the journal until it can be written again', {
        sessionId: this.#sessionId,
        errno: errnoOf(error),
      })
    }
  }

  async #writeDirectly(batch: readonly EncodedEntry[], isSynced: boolean): Promise<void> {
    const isNew = this.#identity === undefined
    const prefix = this.#prefix()
    await this.#appendText(prefix + textOf(batch))
    if (isSynced) await this.#sync(isNew)
    this.#indexBatch(batch, prefix)
  }

  /** Not there, or there with nothing in it: the header comes first. */
  get #isEmpty(): boolean {
    return this.#size === 0
  }

  /** What has to stand between the end of the file and the first new line. */
  #prefix(): string {
    return this.#isEmpty ? encodeHeader(this.#header) : ''
  }

  async #appendText(text: string): Promise<void> {
    const bytes = Buffer.from(text)
    const handle = await this.#openForWriting()
    try {
      await handle.write(bytes)
    } catch (error) {
      // A part of a batch must not stay: the next one would be glued to it.
      await handle.truncate(this.#size).catch((failure: unknown) => this.#fail(failure))
      throw error
    }
    this.#size += bytes.length
    if (this.#loaded !== undefined) this.#loaded = { ...this.#loaded, endsWithNewline: true }
  }

  async #openForWriting(): Promise<FileHandle> {
    if (this.#handle !== undefined) return this.#handle
    const handle = await this.#context.files.open(this.#path, 'append')
    this.#handle = handle
    this.#lock.onRelease(() => void this.#closeHandle())
    const { identity } = await handle.stat()
    if (this.#identity === undefined) this.#context.onCreated()
    this.#identity = identity
    return handle
  }

  /** After a failed sync nobody knows what is on the disk: this log stops here. */
  async #sync(isNew: boolean): Promise<void> {
    const { files, suspects } = this.#context
    try {
      await this.#handle?.sync()
      if (isNew) await files.syncDirectory(this.#path.slice(0, this.#path.lastIndexOf('/')))
    } catch (error) {
      suspects.add(this.#path)
      throw this.#fail(error)
    }
  }

  #fail(cause: unknown): GatewayError {
    this.#failed = toStorageError(cause)
    if (this.#failed.code !== 'STORAGE_FAILED') {
      this.#failed = new GatewayError('STORAGE_FAILED', 'the transcript file is in an unknown state', {}, { cause })
    }
    return this.#failed
  }

  async #writeUnwritten(): Promise<void> {
    if (this.#unwritten === '') return
    await this.#closeHandle()
    const { files } = this.#context
    const handle = await files.open(this.#path, 'append')
    try {
      const { size } = await handle.stat()
      const last = size === 0 ? undefined : (await handle.read(size - 1, 1))[0]
      try {
        await handle.write((last === undefined || last === 10 ? '' : '\n') + this.#unwritten)
      } catch (error) {
        await handle.truncate(size)
        throw error
      }
    } finally {
      await handle.close()
    }
    this.#unwritten = ''
    this.#unwrittenRecords = []
    this.#identity = 'to be read again'
  }

  /** For the journal's checkpoint: everything committed before the call is in the file and durable afterwards. */
  async settle(signal: AbortSignal): Promise<void> {
    await this.#inFlight
    if (!this.isBehind) return
    await this.#lock.enter(signal)
    try {
      await this.#writeUnwritten()
    } finally {
      await this.endWrite()
    }
  }

  #indexBatch(batch: readonly EncodedEntry[], prefix: string): void {
    const index = this.#index
    if (index === undefined) return
    const bytes = batch.map(({ line }) => Buffer.byteLength(line))
    let offset = this.#size - bytes.reduce((sum, length) => sum + length, 0)
    let line = index.count === 0 ? (prefix === '' ? 1 : 2) : index.lineAt(index.count - 1) + 1
    for (const [i, { entry }] of batch.entries()) {
      const length = (bytes[i] ?? 1) - 1
      const { id, parentId } = entry
      index.add({ offset, length, line: line++, kind: kindOf(entry.type), id, parentId })
      offset += length + 1
    }
  }

  async activeAt(leafId: EntryId): Promise<ActivePath> {
    return this.#withTree(EMPTY_PATH, (reader, index) => reader.activeAt(index.find(leafId)))
  }

  async path(from: EntryId): Promise<readonly Entry[] | undefined> {
    return this.#withTree(undefined, async (reader, index) => {
      const at = index.find(from)
      return at < 0 ? undefined : reader.path(at)
    })
  }

  async find(id: EntryId): Promise<Entry | undefined> {
    return this.#withTree(undefined, async (reader, index) => {
      const at = index.find(id)
      return at < 0 ? undefined : reader.readOne(at)
    })
  }

  async *all(): AsyncIterable<Entry> {
    const handle = await this.#openForReading()
    if (handle === undefined) return
    try {
      const index = await this.#wholeIndex(handle)
      const reader = new TreeReader(handle, index, this.#header.version)
      for (let from = 0; from < index.count; from += 256) {
        const positions = Array.from({ length: Math.min(256, index.count - from) }, (_, i) => from + i)
        yield* await reader.read(positions.filter((at) => !index.isDead(at)))
      }
    } finally {
      await handle.close()
    }
  }

  async #withTree<T>(missing: T, read: (reader: TreeReader, index: EntryIndex) => Promise<T>): Promise<T> {
    const handle = await this.#openForReading()
    if (handle === undefined) return missing
    try {
      const index = await this.#wholeIndex(handle)
      return await read(new TreeReader(handle, index, this.#header.version), index)
    } finally {
      await handle.close()
    }
  }

  async #wholeIndex(handle: FileHandle): Promise<EntryIndex> {
    if (this.#index !== undefined) return this.#index
    const { maxLineBytes } = this.#context.limits
    const { scan } = await loadByScan({ handle, maxLineBytes, fallbackHeader: this.#header })
    // What others appended meanwhile is left to the next look at the file's size.
    this.#index = scan?.index ?? new EntryIndex()
    return this.#index
  }

  async close(): Promise<void> {
    try {
      await this.settle(NEVER)
    } catch {
      // The journal must not forget what only it has.
      this.#context.journal?.topic.carry(this.#sessionId, this.#unwrittenRecords)
    }
    await this.#closeHandle()
    await this.#lock.releaseNow()
  }

  async #closeHandle(): Promise<void> {
    const handle = this.#handle
    this.#handle = undefined
    await handle?.close()
  }

  #newHeader(): SessionHeader {
    const { cwd } = this.#context
    return { type: 'session', version: FORMAT_VERSION, id: this.#sessionId, timestamp: this.#now(), cwd }
  }

  #now(): string {
    return new Date(this.#context.clock.now()).toISOString()
  }
}

function textOf(batch: readonly EncodedEntry[]): string {
  return batch.map(({ line }) => line).join('')
}
