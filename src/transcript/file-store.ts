import type { Clock } from '../base/clock.ts'
import { makeDurableDirectory, openIfThere, type Files } from '../base/files.ts'
import type { Ids } from '../base/ids.ts'
import type { Log } from '../base/log.ts'
import type { Processes } from '../base/processes.ts'
import { NEVER } from '../base/async.ts'
import type { Entry } from '../core/entry.ts'
import { GatewayError } from '../core/errors.ts'
import type { SessionId } from '../core/ids.ts'
import { createFileBlobs } from './blobs.ts'
import { FileLog, type FileLogContext } from './file-log.ts'
import type { WriteHooks } from './guard.ts'
import { createHandle, OpenTranscripts, type OpenTranscript } from './open-transcripts.ts'
import { DEFAULT_LIMITS, type TranscriptLimits, capOf } from './limits.ts'
import { rewriteAfterFailedSync } from './repair-file.ts'
import { OpenFiles } from './transcript-file.ts'
import { toStorageError } from './storage-error.ts'
import type { Transcript, TranscriptStore } from './store.ts'
import { goneRecord, type TranscriptJournal } from './topic.ts'
import { LogTranscript } from './transcript.ts'

export interface FileStoreOptions {
  readonly files: Files
  readonly clock: Clock
  readonly ids: Ids
  readonly processes: Processes
  readonly log: Log
  /** `<home>/sessions`; made when missing. */
  readonly directory: string
  /** Appends become durable through this journal, together with everybody else's. Without it each file is synced. */
  readonly journal?: TranscriptJournal
  /** `sync`: acknowledged means on the disk. `fast`: acknowledged means handed to the system; a power cut can take it. */
  readonly durability?: 'sync' | 'fast'
  readonly cwd?: string
  readonly hooks?: WriteHooks
  readonly limits?: Partial<TranscriptLimits>
  readonly onAppended?: (sessionId: SessionId, entries: readonly Entry[]) => void
}

export async function openFileStore(options: FileStoreOptions): Promise<FileTranscriptStore> {
  const { files, directory, journal } = options
  try {
    await makeDurableDirectory(files, directory)
    const store = new FileTranscriptStore(options, await files.realPath(directory))
    journal?.topic.attach(store)
    return store
  } catch (error) {
    throw toStorageError(error)
  }
}

/** A file `<sessionId>.jsonl` per session, in pi's format. Names that could leave the folder are refused. */
export class FileTranscriptStore implements TranscriptStore {
  readonly #options: FileStoreOptions
  readonly #limits: TranscriptLimits
  readonly #directory: string
  readonly #context: FileLogContext
  readonly #open: OpenTranscripts
  readonly #openFiles: OpenFiles
  #hasNewNames = false
  #closed = false

  constructor(options: FileStoreOptions, directory: string) {
    this.#options = options
    this.#limits = { ...DEFAULT_LIMITS, ...options.limits }
    this.#directory = directory
    const { maxOpenFiles: max, restAfterMs } = this.#limits
    this.#openFiles = new OpenFiles({ clock: options.clock, log: options.log, max, restAfterMs })
    this.#open = new OpenTranscripts({
      clock: options.clock,
      log: options.log,
      limits: this.#limits,
      open: (sessionId, signal) => this.#openFile(sessionId, signal),
    })
    const { files, clock, ids, processes, log, cwd = directory, durability = 'sync', journal } = options
    this.#context = {
      files,
      clock,
      ids,
      processes,
      log,
      cwd,
      durability,
      journal,
      limits: this.#limits,
      unsyncedPaths: new Set(),
      onCreated: () => {
        this.#hasNewNames = true
      },
      onOpened: (file) => this.#openFiles.use(file),
      onClosed: (file) => this.#openFiles.forget(file),
    }
  }

  async open(sessionId: SessionId, signal: AbortSignal): Promise<Transcript> {
    signal.throwIfAborted()
    if (this.#closed) throw new GatewayError('TRANSCRIPT_CLOSED', 'the transcript store was closed', {})
    const { transcript, blobs, release } = await this.#open.use(sessionId, signal)
    return createHandle(transcript, blobs, release)
  }

  async exists(sessionId: SessionId): Promise<boolean> {
    if (this.#options.journal?.topic.recoveredOf(sessionId) !== undefined) return true
    // A reset waits for this: through the thread pool it would stand in line behind syncs under way.
    return this.#options.files.statSync(this.#path(sessionId)) !== undefined
  }

  /** Memory of the transcripts that are open. */
  get heldBytes(): number {
    return this.#open.heldBytes
  }

  async archive(sessionId: SessionId): Promise<void> {
    const path = this.#path(sessionId)
    const { files, clock } = this.#options
    await this.#letGo(sessionId)
    if ((await files.stat(path)) === undefined) return
    await this.#forgetRecords(sessionId)
    // Two resets within a millisecond must not share a name.
    let at = clock.now()
    while ((await files.stat(`${path}.archived-${at}`)) !== undefined) at++
    await files.rename(path, `${path}.archived-${at}`)
    await files.syncDirectory(this.#directory)
  }

  async restore(sessionId: SessionId): Promise<void> {
    const path = this.#path(sessionId)
    const { files } = this.#options
    const latest = (await this.#archivesOf(sessionId)).at(-1)
    if (latest === undefined) {
      throw new GatewayError('ARCHIVE_NOT_FOUND', 'no archived transcript of this session', { sessionId })
    }
    await this.#letGo(sessionId)
    // What was written since moves out of the way instead of being lost.
    if ((await files.stat(path)) !== undefined) await this.archive(sessionId)
    await files.rename(latest, path)
    await files.syncDirectory(this.#directory)
  }

  async remove(sessionId: SessionId): Promise<void> {
    const path = this.#path(sessionId)
    const { files, journal } = this.#options
    await this.#open.end(sessionId)
    if (journal !== undefined) await journal.journal.commit([goneRecord(sessionId)])
    for (const name of await this.#archivesOf(sessionId)) await files.remove(name)
    await files.removeDirectory(`${path.slice(0, -'.jsonl'.length)}.blobs`)
    const base = path.slice(this.#directory.length + 1)
    const isItsFile = (name: string): boolean =>
      name === base || /^\.(bak-|tmp-|lock\.claim-|v[12]\.bak$)/.test(name.slice(base.length))
    for (const name of await files.list(this.#directory)) {
      if (name.startsWith(base) && isItsFile(name)) await files.remove(`${this.#directory}/${name}`)
    }
    await files.syncDirectory(this.#directory)
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#open.close()
    await this.#openFiles.close()
  }

  /** @internal for the journal's topic */
  async reconcile(sessionId: SessionId): Promise<void> {
    const log = new FileLog(this.#context, sessionId, this.#path(sessionId))
    await log.reconcile(NEVER)
  }

  /** @internal for the journal's topic */
  async sync(sessionId: SessionId): Promise<void> {
    const path = this.#path(sessionId)
    const open = await this.#open.peek(sessionId)
    await open?.log.settle(NEVER)
    await this.#syncFile(path)
  }

  /** @internal for the journal's topic */
  async syncNames(): Promise<void> {
    if (!this.#hasNewNames) return
    this.#hasNewNames = false
    try {
      await this.#options.files.syncDirectory(this.#directory)
    } catch (error) {
      this.#hasNewNames = true
      throw error
    }
  }

  async #syncFile(path: string): Promise<void> {
    const { files } = this.#options
    const handle = await openIfThere(files, path, 'update')
    // Removed or archived meanwhile; both made their own arrangements.
    if (handle === undefined) return
    try {
      await handle.sync()
    } catch {
      // Syncing again would report success for pages the system has given up: only new ones can be trusted.
      await rewriteAfterFailedSync({ ...this.#context, path })
    } finally {
      await handle.close()
    }
  }

  async #openFile(sessionId: SessionId, signal: AbortSignal): Promise<OpenTranscript> {
    const { clock, ids, log, hooks = {}, onAppended } = this.#options
    const limits = this.#limits
    const file = new FileLog(this.#context, sessionId, this.#path(sessionId))
    const blobs = this.#blobs(sessionId)
    const guard = { sessionId, clock, log, blobs, hooks, hookTimeoutMs: limits.hookTimeoutMs, cap: capOf(limits) }
    const { maxLineBytes } = limits
    const transcript = await LogTranscript.open(
      {
        sessionId,
        log: file,
        clock,
        ids,
        guard,
        maxLineBytes,
        ...(onAppended === undefined ? {} : { onAppended }),
      },
      signal,
    )
    return { log: file, blobs, transcript }
  }

  #blobs(sessionId: SessionId): ReturnType<typeof createFileBlobs> {
    const { files, ids } = this.#options
    const directory = `${this.#path(sessionId).slice(0, -'.jsonl'.length)}.blobs`
    return createFileBlobs({ files, ids, directory, maxBlobBytes: this.#limits.maxBlobBytes })
  }

  /** Ends the shared transcript: what was asked of it is finished, and its file can be moved. */
  async #letGo(sessionId: SessionId): Promise<void> {
    await this.#open.end(sessionId)
    await this.reconcile(sessionId)
  }

  /** Before a file moves away: it is durable, and no record of the journal brings a second one back. */
  async #forgetRecords(sessionId: SessionId): Promise<void> {
    const { journal } = this.#options
    if (journal === undefined) return
    await this.sync(sessionId)
    await this.#options.files.syncDirectory(this.#directory)
    await journal.journal.commit([goneRecord(sessionId)])
  }

  async #archivesOf(sessionId: SessionId): Promise<string[]> {
    const prefix = `${sessionId}.jsonl.archived-`
    const names = (await this.#options.files.list(this.#directory)).filter((name) => name.startsWith(prefix))
    return names
      .sort((a, b) => Number(a.slice(prefix.length)) - Number(b.slice(prefix.length)))
      .map((name) => `${this.#directory}/${name}`)
  }

  #path(sessionId: SessionId): string {
    if (!/^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,198}[A-Za-z0-9])?$/.test(sessionId)) {
      throw new GatewayError('FIELD_INVALID', 'a session id has letters, digits, dot, dash and underscore only', {
        field: 'sessionId',
      })
    }
    return `${this.#directory}/${sessionId}.jsonl`
  }
}
