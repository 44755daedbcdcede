import type { Clock } from '../base/clock.ts'
import type { FileHandle, Files } from '../base/files.ts'
import type { Ids } from '../base/ids.ts'
import type { Journal, JournalRecord } from '../base/journal.ts'
import type { Log } from '../base/log.ts'
import { NEVER } from '../base/never.ts'
import type { Processes } from '../base/processes.ts'
import type { Entry, SessionHeader } from '../core/entry.ts'
import { GatewayError } from '../core/errors.ts'
import type { EntryId, SessionId } from '../core/ids.ts'
import { AppendedFile } from './appended-file.ts'
import type { Badge } from './badge.ts'
import { EMPTY_PATH, type ActivePath } from './context.ts'
import { EntryIndex } from './entry-index.ts'
import { FileTree } from './file-tree.ts'
import type { TranscriptLimits } from './limits.ts'
import { encodeHeader, FORMAT_VERSION } from './line.ts'
import { loadByScan, type Loaded } from './load.ts'
import { loadTail } from './load-tail.ts'
import { JournalFollower } from './journal-follower.ts'
import { lockOf, LOOK_MS, type WriteLock } from './lock.ts'
import type { EncodedEntry, EntryLog, LogState } from './log.ts'
import { requireJournal } from './memory-log.ts'
import { makeSound, makeSuspectSound } from './mend.ts'
import { reconcile } from './reconcile.ts'
import { toStorageError } from './storage-error.ts'
import { appendRecord, goneRecord, type TranscriptTopic } from './topic.ts'
import type { WriteBehind } from './write-behind.ts'

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
  readonly journal: { readonly journal: Pick<Journal, 'commit'>; readonly topic: TranscriptTopic } | undefined
  /** Files whose last sync failed: what they show may not be on the disk. */
  readonly suspects: Set<string>
  readonly writeBehind: WriteBehind
  readonly badge: Badge | undefined
  /** Told of names that need a sync of the folder. */
  onCreated(): void
}

/** One session's file. Every method but the readers needs the lock, which `beginWrite` takes. */
export class FileLog implements EntryLog {
  readonly #context: FileLogContext
  readonly #sessionId: SessionId
  readonly #file: AppendedFile
  readonly #lock: WriteLock
  readonly #follower: JournalFollower
  readonly #tree: FileTree
  #header: SessionHeader
  /** What was read and has to be mended before anything is added. Undefined when nothing stands in the way. */
  #toMend: Loaded | undefined
  #lookedAt = 0
  #failed: GatewayError | undefined
  /** Also a file that was there may be one that somebody else has created a moment ago and named in a journal only. */
  #isNameDurable = false
  /** The last write, which may be on its way from the journal to the file. */
  #lastWrite: Promise<void> = Promise.resolve()

  constructor(context: FileLogContext, sessionId: SessionId, path: string) {
    this.#context = context
    this.#sessionId = sessionId
    this.#file = new AppendedFile(context.files, path, (cause) => void this.#fail(cause))
    const { files, clock, ids, processes, log, limits, writeBehind, badge } = context
    this.#lock = lockOf(`${path}.lock`, {
      files,
      clock,
      ids,
      processes,
      log,
      timeoutMs: limits.lockTimeoutMs,
      staleMs: limits.lockStaleMs,
      lingerMs: limits.lockLingerMs,
      ...(badge === undefined ? {} : { badge }),
    })
    this.#follower = new JournalFollower({
      clock,
      log,
      writeBehind,
      sessionId,
      onCreated: () => context.onCreated(),
      file: this.#file,
      lock: this.#lock,
      writeBehindBytes: limits.writeBehindBytes,
      onMoved: () => this.#tree.forget(),
      onSeen: (at) => {
        this.#lookedAt = at
      },
    })
    this.#header = this.#newHeader()
    this.#tree = new FileTree({
      maxLineBytes: limits.maxLineBytes,
      open: () => this.#openForReading(),
      size: () => this.#file.size,
      header: () => this.#header,
    })
  }

  get heldBytes(): number {
    return this.#tree.heldBytes + this.#follower.heldBytes
  }

  /** Nothing more is acknowledged here; the store opens the file anew. */
  get hasFailed(): boolean {
    return this.#failed !== undefined
  }

  /** Holds lines that are nowhere else but in the journal. */
  get isBehind(): boolean {
    return this.#follower.isBehind
  }

  get idDigits(): number {
    return this.#tree.idDigits
  }

  isIdFree(id: EntryId): boolean {
    return this.#tree.isIdFree(id)
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
      await this.#lock.leave()
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
      await this.#follower.catchUpNow()
      return await this.#file.openForReading()
    } catch (error) {
      throw toStorageError(error)
    }
  }

  #adopt(loaded: Loaded | undefined, identity: string | undefined): LogState {
    this.#toMend = loaded !== undefined && needsMending(loaded) ? loaded : undefined
    this.#file.wasRead(identity, loaded?.size ?? 0)
    this.#tree.adopt(loaded === undefined ? new EntryIndex() : loaded.scan?.index)
    if (loaded !== undefined) this.#header = loaded.state.header
    return loaded?.state ?? { header: this.#header, leafId: null, active: EMPTY_PATH, repairs: [] }
  }

  tryBeginWrite(): boolean {
    const isReady = this.#failed === undefined && !this.#file.isOwedLines && this.#lock.isOwned
    return isReady && this.#isFresh() && this.#lock.tryEnter(this)
  }

  /**
   * In a burst of appends not every one looks at the file: somebody who writes without the lock in the middle of it
   * gets a branch either way.
   */
  #isFresh(): boolean {
    const now = this.#context.clock.monotonic()
    if (now - this.#lookedAt < LOOK_MS) return true
    try {
      if (!this.#file.isAsKnown()) return false
    } catch {
      // `beginWrite` finds out what is wrong.
      return false
    }
    this.#lookedAt = now
    return true
  }

  lookAgain(): void {
    this.#lookedAt = 0
  }

  async beginWrite(signal: AbortSignal): Promise<LogState | undefined> {
    if (this.#failed !== undefined) throw this.#failed
    await this.#lock.enter(signal, this)
    try {
      await this.#file.writing
      // Others wrote where the lines we kept were to go: then those go behind theirs.
      if (!this.#file.isAsKnown()) this.#follower.oweKept()
      await this.#follower.payOwed()
      if (this.#file.isAsKnown()) return undefined
      await this.#file.close()
      return await this.#read()
    } catch (error) {
      await this.endWrite()
      throw toStorageError(error)
    }
  }

  write(batch: readonly EncodedEntry[], alongside: readonly JournalRecord[]): Promise<void> {
    this.#lastWrite = this.#write(batch, alongside)
    return this.#lastWrite
  }

  async #write(batch: readonly EncodedEntry[], alongside: readonly JournalRecord[]): Promise<void> {
    const { journal, durability, suspects } = this.#context
    try {
      this.#lock.fence()
      if (this.#toMend !== undefined || suspects.has(this.#file.path)) await this.#mend()
      if (alongside.length > 0) requireJournal(journal)
      if (batch.length === 0) return await requireJournal(journal).journal.commit(alongside)
      const prefix = this.#prefix()
      const start = this.#file.size
      const text = prefix + textOf(batch)
      if (journal === undefined || (durability === 'fast' && alongside.length === 0)) {
        await this.#writeDirectly(text, durability === 'sync')
      } else {
        const record = this.#recordOf(batch)
        const records = alongside.length === 0 ? [record] : [record, ...alongside]
        await this.#follower.write(text, record, () => journal.journal.commit(records))
      }
      this.#tree.add(batch, prefix, start)
    } catch (error) {
      throw toStorageError(error)
    }
  }

  endWrite(): Promise<void> | undefined {
    if (!this.#lock.tryLeave()) return this.#leaveLock()
    return this.#lock.isOwned ? undefined : this.#file.close()
  }

  async #leaveLock(): Promise<void> {
    await this.#lock.leave()
    if (!this.#lock.isOwned) await this.#file.close()
  }

  /** A file that is damaged, torn, old or suspect is made sound before anything is added to it. */
  async #mend(): Promise<void> {
    const { suspects, journal } = this.#context
    const { path } = this.#file
    if (suspects.has(path)) {
      await this.#follower.writeKept()
      await this.#file.close()
      await makeSuspectSound({ ...this.#context, path })
      suspects.delete(path)
      await this.#read()
    }
    const loaded = this.#toMend
    if (loaded === undefined) return
    if (loaded.isSound && loaded.tornBytes === 0) {
      await this.#file.endLastLine()
      this.#toMend = undefined
      return
    }
    await this.#file.close()
    const { maxBackups, maxLineBytes } = this.#context.limits
    const { isRewritten } = await makeSound({ ...this.#context, path, loaded, maxBackups, maxLineBytes })
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

  #recordOf(batch: readonly EncodedEntry[]): JournalRecord {
    const header = this.#isEmpty ? this.#header : undefined
    return appendRecord(this.#sessionId, this.#file.size, header, batch)
  }

  async #writeDirectly(text: string, isSynced: boolean): Promise<void> {
    await this.#follower.append(text)
    if (isSynced) await this.#sync()
  }

  /** Not there, or there with nothing in it: the header comes first. */
  get #isEmpty(): boolean {
    return this.#file.size === 0
  }

  /** What has to stand between the end of the file and the first new line. */
  #prefix(): string {
    return this.#isEmpty ? encodeHeader(this.#header) : ''
  }

  /** After a failed sync nobody knows what is on the disk: this log stops here. */
  async #sync(): Promise<void> {
    try {
      await this.#file.sync()
      if (!this.#isNameDurable) await this.#file.syncName()
      this.#isNameDurable = true
    } catch (error) {
      this.#context.suspects.add(this.#file.path)
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
    await this.#follower.writeKept()
    if (!this.isBehind) return
    await this.#lock.enter(signal)
    try {
      await this.#follower.payOwed()
    } finally {
      await this.endWrite()
    }
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

  async close(): Promise<void> {
    try {
      await this.settle(NEVER)
    } catch {
      // The journal must not forget what only it has.
      this.#context.journal?.topic.carry(this.#sessionId, this.#follower.owedRecords)
    }
    await this.#file.close()
    await this.#lock.releaseNow()
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
  const [first] = batch
  return batch.length === 1 && first !== undefined ? first.line : batch.map(({ line }) => line).join('')
}

function needsMending({ isSound, tornBytes, endsWithNewline, size }: Loaded): boolean {
  return !isSound || tornBytes > 0 || (!endsWithNewline && size > 0)
}
