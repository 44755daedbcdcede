import type { Clock } from '../../base/clock.ts'
import { removeUnfinished, UNFINISHED_AFTER_MS } from '../../base/atomic-write.ts'
import type { Files } from '../../base/files.ts'
import type { Ids } from '../../base/ids.ts'
import { openJournal, type Journal, type JournalFailed, type JournalRecovery } from '../../base/journal.ts'
import type { Log } from '../../base/log.ts'
import type { Processes } from '../../base/processes.ts'
import type { WriteHooks } from '../../transcript/guard.ts'
import { openFileStore } from '../../transcript/file-store.ts'
import { lostTranscripts, type TranscriptFolder } from '../../transcript/lost-transcripts.ts'
import { TranscriptTopic } from '../../transcript/topic.ts'
import { LocalStorage } from '../local/local-storage.ts'
import type { DeliveryLimits } from '../local/run-table.ts'
import type { LedgerLimits } from '../local/usage-ledger.ts'
import type { Storage } from '../storage.ts'
import { FileArchivedRows } from './archived-rows.ts'
import { JournalHead, readJournalHead } from './journal-head.ts'
import { ExportHistory, SessionsFile } from './sessions-file.ts'

export interface FilesStorageOptions {
  readonly files: Files
  readonly clock: Clock
  readonly ids: Ids
  readonly processes: Processes
  readonly log: Log
  readonly paths: FilesStoragePaths
  readonly limits: DeliveryLimits
  readonly usage: LedgerLimits
  /** Entries of a section of the state, by section. */
  readonly state: Readonly<Record<string, number>>
  readonly durability: 'sync' | 'fast'
  /** Bytes of transcripts kept open. */
  readonly cacheBytes: number
  /** The program before this one ended without closing its journal. */
  readonly wasAbandoned: boolean
  /** Says why this process may no longer write here. */
  readonly fence: () => Error | undefined
  /** The hooks of the append pipeline; they may look sessions up. */
  hooks(storage: Storage): WriteHooks
  onFailed(error: JournalFailed): void
}

export interface FilesStoragePaths {
  readonly journal: string
  readonly journalHead: string
  readonly transcripts: string
  readonly sessionsFile: string
  /** Rows that left the index. */
  readonly archive: string
  /** What transcripts name as their working directory. */
  readonly workspace: string
}

/** What was found missing or damaged when the files were opened. */
export interface StorageLosses extends Omit<JournalRecovery, 'records'> {
  /** Batches at the end of the journal that were durable and are gone. */
  readonly lostBatches: number
  /** Transcripts that are gone, or shorter than they were. */
  readonly lostTranscripts: number
}

export interface FilesStorage {
  readonly storage: Storage
  readonly losses: StorageLosses
  /** Entries of transcripts that are durable in the journal and not in their file yet. */
  unwrittenEntries(): Iterable<unknown>
  /** Memory of what is remembered, by kind, roughly. */
  heldBytes(): ReturnType<LocalStorage['heldBytes']> & { readonly transcripts: number }
  close(): Promise<void>
}

/**
 * The storage of one home: one journal makes everything durable, tables in memory answer, a file per transcript and
 * `sessions.json` follow. The caller holds the home's lock.
 */
export async function openFilesStorage(options: FilesStorageOptions): Promise<FilesStorage> {
  const { files, clock, ids, processes, log, paths, limits, usage, state, durability } = options
  const storage = new LocalStorage({ clock, log, limits, usage, state })
  const history = new ExportHistory()
  const topic = new TranscriptTopic()
  const recorded = await readJournalHead(files, paths.journalHead)
  // A gateway that was killed had its journal open, so there is at least one file of it.
  const isJournalGone = options.wasAbandoned && !(await hasJournal(files, paths.journal))
  const journal = await openJournal({
    files,
    ids,
    log,
    directory: paths.journal,
    topics: [...storage.topics, history, topic],
    fence: options.fence,
    onFailed: (error) => options.onFailed(error),
  })
  const transcripts = await openFileStore({
    files,
    clock,
    ids,
    processes,
    log,
    directory: paths.transcripts,
    cwd: paths.workspace,
    journal: { journal, topic, storage },
    durability,
    limits: { cacheBytes: options.cacheBytes },
    hooks: options.hooks(storage),
  })
  storage.attach(journal, transcripts, await FileArchivedRows.open({ files, ids, directory: paths.archive }))
  const { rows } = storage
  const sessionsFile = new SessionsFile({
    files,
    clock,
    ids,
    log,
    path: paths.sessionsFile,
    journal,
    directory: rows,
    history,
  })
  const { adopted } = await sessionsFile.adopt()
  if (adopted > 0) log.info('took over sessions from sessions.json', { sessions: adopted })
  storage.watch(({ kind }) => {
    if (kind === 'session' || kind === 'message') sessionsFile.changed()
  })
  const losses = await findLosses(options, { recorded, journal, topic, isJournalGone })
  const head = new JournalHead({ files, clock, ids }, paths.journalHead, journal, recorded)
  return {
    storage,
    losses,
    unwrittenEntries: () => topic.unwritten(),
    heldBytes: () => ({ ...storage.heldBytes(), transcripts: transcripts.heldBytes }),
    async close() {
      await storage.close()
      await sessionsFile.close()
      await transcripts.close()
      await journal.close()
      await head.close()
    },
  }
}

async function hasJournal(files: Files, directory: string): Promise<boolean> {
  const names = await files.list(directory).catch(() => [])
  return names.some((name) => /\.(?:log|snap)$/u.test(name))
}

interface Found {
  readonly recorded: number
  readonly journal: Journal
  readonly topic: TranscriptTopic
  readonly isJournalGone: boolean
}

/** A loss is reported although the gateway cannot undo it: the operator's backup may have what is gone. */
async function findLosses(options: FilesStorageOptions, found: Found): Promise<StorageLosses> {
  const { files, log } = options
  const { records: _, ...recovery } = found.journal.recovery
  const lostBatches = Math.max(JournalHead.lostBatches(found.recorded, found.journal), found.isJournalGone ? 1 : 0)
  if (lostBatches > 0) log.error('the end of the journal is gone; what it held is lost', { lostBatches })
  const lost = lostTranscripts(files, await transcriptNames(options), found.topic)
  if (lost.length > 0)
    log.error('transcripts are gone, or shorter than they were; a backup may have them', {
      transcripts: lost.length,
      sessionIds: lost.slice(0, 10),
    })
  return { ...recovery, lostBatches, lostTranscripts: lost.length }
}

/** What is in the folder of the transcripts, without what repairs did not finish; another program may be repairing now. */
async function transcriptNames({ files, clock, paths }: FilesStorageOptions): Promise<TranscriptFolder> {
  const directory = paths.transcripts
  const names = await files.list(directory)
  await removeUnfinished(files, { directory, names, writtenBefore: clock.now() - UNFINISHED_AFTER_MS })
  return { directory, names }
}
