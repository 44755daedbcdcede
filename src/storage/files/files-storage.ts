import type { Clock } from '../../base/clock.ts'
import { removeUnfinished, UNFINISHED_AFTER_MS } from '../../base/atomic-write.ts'
import { errnoOf, type Files } from '../../base/files.ts'
import type { Ids } from '../../base/ids.ts'
import { openJournal, type Journal, type JournalFailed, type JournalRecovery } from './journal.ts'
import type { Log } from '../../base/log.ts'
import type { Processes } from '../../base/processes.ts'
import type { WriteHooks } from '../../transcript/guard.ts'
import { openFileStore } from '../../transcript/file-store.ts'
import { lostTranscripts } from '../../transcript/lost-transcripts.ts'
import { TranscriptTopic } from '../../transcript/topic.ts'
import { LocalStorage } from '../local/local-storage.ts'
import type { DeliveryLimits } from '../local/message-rows.ts'
import type { LedgerLimits } from '../local/usage-ledger.ts'
import type { Storage } from '../storage.ts'
import { TableFile, type TableLosses } from '../tables/table-file.ts'
import { FileArchivedRows } from './archived-rows.ts'
import { fileSizes } from './file-sizes.ts'
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
  /** Rows that were not changed lately. */
  readonly rows: string
  /** Rows that left the index. */
  readonly archive: string
  /** What transcripts name as their working directory. */
  readonly workspace: string
}

/** What was found missing or damaged when the files were opened. */
export interface StorageLosses extends Omit<JournalRecovery, 'records'> {
  /** Batches at the end of the journal that were durable and are gone. */
  readonly lostBatches: number
  /** Transcripts that are gone, or shorter than they were; they are looked at a second after the start. */
  lostTranscripts: number
  /** Known rows that are damaged; one at least when their file is gone or shorter than it was. */
  readonly lostRows: number
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

/** A folder of more files takes too long to list at every start. */
const LISTED_SESSIONS = 10_000
const LOOK_AFTER_MS = 1_000

/**
 * The storage of one home: one journal makes everything durable, tables in memory answer, a file per transcript and
 * `sessions.json` follow. The caller holds the home's lock.
 */
export async function openFilesStorage(options: FilesStorageOptions): Promise<FilesStorage> {
  const { files, clock, ids, processes, log, paths, limits, usage, state, durability } = options
  const kept = new TableFile({ files, ids, log, directory: paths.rows, fence: options.fence })
  const storage = new LocalStorage({ clock, log, limits, usage, state, tables: kept })
  const history = new ExportHistory(storage.rows)
  const topic = new TranscriptTopic(fileSizes(kept))
  await kept.open()
  const recorded = await readJournalHead(files, paths.journalHead)
  // A gateway that was killed had its journal open, so there is at least one file of it.
  const isJournalGone = options.wasAbandoned && !(await hasJournal(files, paths.journal))
  const journal = await openJournal({
    files,
    ids,
    log,
    directory: paths.journal,
    topics: [...storage.topics, history, topic, kept],
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
  const lostRows = await kept.start()
  const { adopted } = await sessionsFile.adopt({ isLost: lostRows.isCut })
  if (adopted > 0) log.info('took over sessions from sessions.json', { sessions: adopted })
  storage.watch(({ kind }) => {
    if (kind === 'session' || kind === 'message') sessionsFile.changed()
  })
  const losses = findLosses(options, { recorded, journal, isJournalGone, lostRows })
  const look = lookLater(options, async () => {
    losses.lostTranscripts = await countLostTranscripts(options, topic)
    if (storage.rows.size <= LISTED_SESSIONS) await removeUnfinishedRepairs(options)
  })
  const head = new JournalHead({ files, clock, ids }, paths.journalHead, journal, recorded)
  return {
    storage,
    losses,
    unwrittenEntries: () => topic.unwritten(),
    heldBytes: () => ({ ...storage.heldBytes(), transcripts: transcripts.heldBytes }),
    async close() {
      await look.end()
      await storage.close()
      await sessionsFile.close()
      await transcripts.close()
      await journal.close()
      await kept.close()
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
  readonly isJournalGone: boolean
  readonly lostRows: TableLosses
}

/** A loss is reported although the gateway cannot undo it: the operator's backup may have what is gone. */
function findLosses({ log }: FilesStorageOptions, found: Found): StorageLosses {
  const { records: _, ...recovery } = found.journal.recovery
  const lostBatches = Math.max(JournalHead.lostBatches(found.recorded, found.journal), found.isJournalGone ? 1 : 0)
  if (lostBatches > 0) log.error('the end of the journal is gone; what it held is lost', { lostBatches })
  const { isCut, damagedRows } = found.lostRows
  return { ...recovery, lostBatches, lostTranscripts: 0, lostRows: Math.max(damagedRows, isCut ? 1 : 0) }
}

async function countLostTranscripts(
  { files, log, paths }: FilesStorageOptions,
  topic: TranscriptTopic,
): Promise<number> {
  const lost = await lostTranscripts(files, paths.transcripts, topic)
  if (lost.length > 0)
    log.error('transcripts are gone, or shorter than they were; a backup may have them', {
      transcripts: lost.length,
      sessionIds: lost.slice(0, 10),
    })
  return lost.length
}

/** What it finds is only reported, so no start waits for it. */
function lookLater({ clock, log }: FilesStorageOptions, look: () => Promise<void>): { end(): Promise<void> } {
  let looking: Promise<void> | undefined
  const timer = clock.after(LOOK_AFTER_MS, () => {
    looking = look().catch((error: unknown) =>
      log.warn('the files of transcripts could not be checked', { errno: errnoOf(error) }),
    )
  })
  return {
    async end() {
      timer.cancel()
      await looking
    },
  }
}

/** What repairs did not finish; another program may be repairing now. */
async function removeUnfinishedRepairs({ files, clock, paths }: FilesStorageOptions): Promise<void> {
  await removeUnfinished(files, { directory: paths.transcripts, writtenBefore: clock.now() - UNFINISHED_AFTER_MS })
}
