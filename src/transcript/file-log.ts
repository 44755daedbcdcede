import type { Clock } from '../base/clock.ts'
import { errnoOf, type FileHandle, type Files } from '../base/files.ts'
import type { Ids } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import { NEVER } from '../base/async.ts'
import type { Processes } from '../base/processes.ts'
import type { Entry, SessionHeader } from '../core/entry.ts'
import { GatewayError } from '../core/errors.ts'
import type { EntryId, RunId, SessionId } from '../core/ids.ts'
import { EMPTY_PATH, type ActivePath } from './context.ts'
import { EntryIndex } from './entry-index.ts'
import { FileTree } from './file-tree.ts'
import type { TranscriptLimits } from './limits.ts'
import { encodeHeader, FORMAT_VERSION } from './line.ts'
import { loadByScan, type Loaded } from './load.ts'
import { loadTail } from './load-tail.ts'
import type { EncodedEntry, EntryLog, LogState, Together } from './log.ts'
import { repairFile, rewriteAfterFailedSync } from './repair-file.ts'
import { reconcile } from './reconcile.ts'
import { toStorageError } from './storage-error.ts'
import { appendRecord, type AppendRecord, goneRecord, requireStorage, type TranscriptJournal } from './topic.ts'
import { TranscriptFile } from './transcript-file.ts'
import { writeLockOf, type WriteLock } from './write-lock.ts'

const SMALL_FILE_BYTES = 1024 * 1024

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
  readonly journal: TranscriptJournal | undefined
  /** Files whose last sync failed: what they show may not be on the disk. */
  readonly unsyncedPaths: Set<string>
  /** A file got its name, which needs a sync of the folder. */
  onCreated(): void
  /** This log holds a descriptor now, or used it again … */
  onOpened(log: FileLog): void
  /** … and holds none any more. */
  onClosed(log: FileLog): void
}

/** Lines that are durable in the journal and could not be written to the file. */
interface Backlog {
  text: string
  records: AppendRecord[]
}

/**
 * One session's file: an append is committed to the journal, then written to the file. Every method but the readers
 * needs the lock, which `beginWrite` takes and which stays with this log until it rests or is closed.
 */
export class FileLog implements EntryLog {
  readonly #context: FileLogContext
  readonly #sessionId: SessionId
  readonly #file: TranscriptFile
  readonly #tree: FileTree
  #header: SessionHeader
  #lock: WriteLock | undefined
  #isWriting = false
  #backlog: Backlog = { text: '', records: [] }
  /** Writes the backlog at this moment. */
  #catchingUp: Promise<void> | undefined
  /** What was read and has to be repaired before anything is added. Undefined when nothing stands in the way. */
  #toRepair: Loaded | undefined
  #failed: GatewayError | undefined
  /** Also a file that was there may be one that another process created a moment ago and named in a journal only. */
  #isNameDurable = false
  /** The last write, which may be on its way from the journal to the file. */
  #lastWrite: Promise<unknown> = Promise.resolve()

  constructor(context: FileLogContext, sessionId: SessionId, path: string) {
    this.#context = context
    this.#sessionId = sessionId
    this.#file = new TranscriptFile(context.files, path, (cause) => void this.#fail(cause))
    this.#header = this.#newHeader()
    this.#tree = new FileTree({
      maxLineBytes: context.limits.maxLineBytes,
      open: () => this.#openForReading(),
      size: () => this.#file.size,
      header: () => this.#header,
    })
  }

  get heldBytes(): number {
    return this.#tree.heldBytes + this.#backlog.text.length
  }

  /** Nothing more is acknowledged here; the store opens the file anew. */
  get hasFailed(): boolean {
    return this.#failed !== undefined
  }

  /** Holds lines that are nowhere else but in the journal. */
  get isBehind(): boolean {
    return this.#backlog.text !== ''
  }

  get idDigits(): number {
    return this.#tree.idDigits
  }

  isIdFree(id: EntryId): boolean {
    return this.#tree.isIdFree(id)
  }

  async load(signal: AbortSignal): Promise<LogState> {
    signal.throwIfAborted()
    await this.#checkSize()
    await this.reconcile(signal)
    return this.#read()
  }

  /** A file that is shorter than it was, or gone, is said once; what is left of it is used. */
  async #checkSize(): Promise<void> {
    const { files, journal, log } = this.#context
    const expected = (await journal?.topic.leastSizeOf(this.#sessionId)) ?? 0
    const found = files.statSync(this.#file.path)?.size ?? 0
    if (journal === undefined || found >= expected) return
    log.error('a transcript lost its end, or is gone; what it held there is lost', {
      sessionId: this.#sessionId,
      lostBytes: expected - found,
    })
    journal.topic.hasSize(this.#sessionId, found)
  }

  /** Puts what the journal recovered into the file. */
  async reconcile(signal: AbortSignal): Promise<void> {
    const topic = this.#context.journal?.topic
    if (topic?.recoveredOf(this.#sessionId) === undefined) return
    const lock = await this.#enterLock(signal)
    try {
      // Another caller may have done it while we waited for the lock.
      const batches = topic.recoveredOf(this.#sessionId)
      if (batches === undefined) return
      const { files, ids, limits } = this.#context
      await reconcile({
        files,
        path: this.#file.path,
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
      await lock.leave()
      await lock.letGo(this)
    }
  }

  async #read(): Promise<LogState> {
    const handle = await this.#openForReading()
    if (handle === undefined) return this.#adopt(undefined, undefined)
    try {
      const { identity, size } = handle.stat()
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
      if (this.isBehind) await this.#catchUpForReaders().catch(this.#logLag)
      return await this.#file.openForReading()
    } catch (error) {
      throw toStorageError(error)
    }
  }

  #adopt(loaded: Loaded | undefined, identity: string | undefined): LogState {
    this.#toRepair = loaded !== undefined && needsMending(loaded) ? loaded : undefined
    this.#file.recordStat(identity, loaded?.size ?? 0)
    this.#tree.adopt(loaded === undefined ? new EntryIndex() : loaded.scan?.index)
    if (loaded !== undefined) this.#header = loaded.state.header
    return loaded?.state ?? { header: this.#header, leafId: null, active: EMPTY_PATH, repairs: [] }
  }

  async #enterLock(signal: AbortSignal): Promise<WriteLock> {
    const { files, clock, ids, processes, log, limits } = this.#context
    const { lockTimeoutMs: timeoutMs, lockStaleMs: staleMs } = limits
    const lock = writeLockOf(`${this.#file.path}.lock`, { files, clock, ids, processes, log, timeoutMs, staleMs })
    await lock.enter(this, signal)
    this.#lock = lock
    return lock
  }

  async beginWrite(signal: AbortSignal): Promise<LogState | undefined> {
    if (this.#failed !== undefined) throw this.#failed
    await this.#enterLock(signal)
    this.#isWriting = true
    try {
      if (this.isBehind) await this.#writeBacklog()
      if (this.#file.matchesLastStat()) return undefined
      await this.#file.close()
      return await this.#read()
    } catch (error) {
      await this.endWrite()
      throw toStorageError(error)
    }
  }

  write(batch: readonly EncodedEntry[], together: Together): Promise<readonly RunId[]> {
    const writing = this.#write(batch, together).catch((error: unknown) => {
      throw toStorageError(error)
    })
    this.#lastWrite = writing
    return writing
  }

  async #write(batch: readonly EncodedEntry[], { changes, owner }: Together): Promise<readonly RunId[]> {
    const { journal, durability, unsyncedPaths } = this.#context
    this.#heldLock.fence()
    if (this.#toRepair !== undefined || unsyncedPaths.has(this.#file.path)) await this.#repair()
    const storage = changes.length === 0 && owner === undefined ? journal?.storage : requireStorage(journal?.storage)
    if (batch.length === 0) return requireStorage(storage).commitWith([], changes, owner)
    const prefix = this.#isEmpty ? encodeHeader(this.#header) : ''
    const start = this.#file.size
    const text = prefix + batch.map(({ line }) => line).join('')
    let answered: readonly RunId[] = []
    if (journal === undefined || (durability === 'fast' && changes.length === 0)) {
      storage?.requireOwner(owner)
      await this.#append(text)
      if (durability === 'sync') await this.#sync()
    } else {
      const record = appendRecord(this.#sessionId, start, this.#isEmpty ? this.#header : undefined, batch)
      if (storage === undefined) await journal.journal.commit([record])
      else answered = await storage.commitWith([record], changes, owner)
      await this.#follow(text, record)
    }
    this.#tree.add(batch, prefix, start)
    return answered
  }

  /** Acknowledged whatever happens here: the journal has the entries, and the file gets them when it can be written. */
  async #follow(text: string, record: AppendRecord): Promise<void> {
    try {
      this.#heldLock.fence()
      await this.#append(text)
    } catch (error) {
      this.#backlog.text += text
      this.#backlog.records.push(record)
      // They will not stand where they were to stand.
      this.#tree.forget()
      this.#logLag(error)
    }
  }

  async #append(text: string): Promise<void> {
    const isNew = !this.#file.isThere
    await this.#file.append(text)
    if (isNew) this.#context.onCreated()
    this.#context.onOpened(this)
    this.#context.journal?.topic.hasSize(this.#sessionId, this.#file.size)
  }

  /** Others read at any time: what is being written is waited for, and nothing is begun in the middle of a write. */
  async #catchUpForReaders(): Promise<void> {
    if (this.#catchingUp !== undefined) return this.#catchingUp
    if (!this.#isWriting && this.#lock?.isHeld() === true) await this.#catchUp(NEVER)
  }

  async #catchUp(signal: AbortSignal): Promise<void> {
    const lock = await this.#enterLock(signal)
    try {
      if (this.isBehind) await this.#writeBacklog()
    } finally {
      await lock.leave()
    }
  }

  /** Inside the lock, so that there is one at a time. */
  async #writeBacklog(): Promise<void> {
    this.#catchingUp = this.#moveBacklog()
    try {
      await this.#catchingUp
    } finally {
      this.#catchingUp = undefined
    }
  }

  /** Behind whatever the file holds by now. Their order never changes: the last line is the leaf. */
  async #moveBacklog(): Promise<void> {
    const { text, records } = this.#backlog
    await this.#file.appendBehindOthers(text)
    // It may be the first that reaches the file at all, and the journal is about to forget what it says.
    this.#context.onCreated()
    this.#backlog = {
      text: this.#backlog.text.slice(text.length),
      records: this.#backlog.records.slice(records.length),
    }
  }

  readonly #logLag = (error: unknown): void => {
    this.#context.log.error('a transcript file is behind the journal until it can be written again', {
      sessionId: this.#sessionId,
      errno: errnoOf(error),
    })
  }

  async endWrite(): Promise<void> {
    this.#isWriting = false
    await this.#heldLock.leave()
  }

  get #heldLock(): WriteLock {
    if (this.#lock === undefined) throw new Error('the transcript is not being written')
    return this.#lock
  }

  /** A file that is damaged, torn, old or suspect is made sound before anything is added to it. */
  async #repair(): Promise<void> {
    const { unsyncedPaths, journal } = this.#context
    const { path } = this.#file
    if (unsyncedPaths.has(path)) {
      await this.#file.close()
      await rewriteAfterFailedSync({ ...this.#context, path })
      unsyncedPaths.delete(path)
      await this.#read()
    }
    const loaded = this.#toRepair
    if (loaded === undefined) return
    if (loaded.isSound && loaded.tornBytes === 0) {
      await this.#file.endLastLine()
      this.#toRepair = undefined
      return
    }
    await this.#file.close()
    const { maxBackups, maxLineBytes } = this.#context.limits
    const { isRewritten } = await repairFile({ ...this.#context, path, loaded, maxBackups, maxLineBytes })
    // The records of earlier appends name places in the old file; all of it is durable in the new one.
    if (isRewritten && journal !== undefined) await journal.journal.commit([goneRecord(this.#sessionId)])
    const handle = await this.#context.files.open(path, 'read')
    try {
      const { identity } = handle.stat()
      this.#adopt(await loadByScan({ handle, maxLineBytes, fallbackHeader: this.#header }), identity)
    } finally {
      await handle.close()
    }
  }

  /** Not there, or there with nothing in it: the header comes first. */
  get #isEmpty(): boolean {
    return this.#file.size === 0
  }

  /** After a failed sync it is unknown what is on the disk: this log stops here. */
  async #sync(): Promise<void> {
    try {
      await this.#file.sync()
      if (!this.#isNameDurable) await this.#file.syncName()
      this.#isNameDurable = true
    } catch (error) {
      this.#context.unsyncedPaths.add(this.#file.path)
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

  /** For the journal's checkpoint: everything committed before the call is in the file and durable afterwards. */
  async settle(signal: AbortSignal): Promise<void> {
    // Its caller hears of a failure.
    await this.#lastWrite.catch(() => undefined)
    if (this.isBehind) await this.#catchUp(signal)
  }

  activeAt(leafId: EntryId): Promise<ActivePath> {
    return this.#tree.activeAt(leafId)
  }

  path(from: EntryId): Promise<readonly Entry[] | undefined> {
    return this.#tree.path(from)
  }

  find(id: EntryId): Promise<Entry | undefined> {
    return this.#tree.find(id)
  }

  all(): AsyncIterable<Entry> {
    return this.#tree.all()
  }

  /** Gives lock and descriptor back; the next write takes them again. Does nothing in the middle of a write. */
  async rest(): Promise<void> {
    if (this.#isWriting) return
    this.#context.onClosed(this)
    await this.#file.close()
    await this.#lock?.letGo(this)
  }

  async close(): Promise<void> {
    try {
      await this.settle(NEVER)
    } catch {
      // The journal must not forget what only it has.
      this.#context.journal?.topic.carry(this.#sessionId, this.#backlog.records)
    }
    await this.rest()
  }

  #newHeader(): SessionHeader {
    const { cwd } = this.#context
    return { type: 'session', version: FORMAT_VERSION, id: this.#sessionId, timestamp: this.#now(), cwd }
  }

  #now(): string {
    return new Date(this.#context.clock.now()).toISOString()
  }
}

function needsMending({ isSound, tornBytes, endsWithNewline, size }: Loaded): boolean {
  return !isSound || tornBytes > 0 || (!endsWithNewline && size > 0)
}
