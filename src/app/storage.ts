import { makeDurableDirectory, type Files } from '../base/files.ts'
import { openJournal, type Journal, type JournalFailed, type JournalRecovery } from '../base/journal.ts'
import { PushConfigs } from '../channel/a2a/push-configs.ts'
import { XiaoyiState } from '../channel/xiaoyi/state.ts'
import type { Config } from '../config/config.ts'
import type { GatewayError } from '../core/errors.ts'
import type { DeliveryFate, Reply } from '../core/inbound.ts'
import { Delivery } from '../gateway/delivery.ts'
import type { RememberedKind } from '../gateway/gateway-metrics.ts'
import { SessionArchive } from '../session/archive.ts'
import { FileArchivedRows } from '../session/archived-rows.ts'
import { SessionControl } from '../session/control.ts'
import { SessionDirectory } from '../session/directory.ts'
import { CleanupLedger } from '../session/cleanup-ledger.ts'
import { DEFAULT_LEARNED_WINDOWS, LearnedWindows } from '../session/learned-windows.ts'
import { ExportHistory, SessionsFile } from '../session/sessions-file.ts'
import { UsageLedger } from '../session/usage-ledger.ts'
import { openFileStore, type FileTranscriptStore } from '../transcript/file-store.ts'
import type { HookContext } from '../hook/hook.ts'
import type { HookRunner } from '../hook/runner.ts'
import { writeHooks } from './write-hooks.ts'
import { lostTranscripts } from '../transcript/lost-transcripts.ts'
import { TranscriptTopic } from '../transcript/topic.ts'
import { homeAccessProblems } from './home-access.ts'
import { homeError } from './home-error.ts'
import { lockHome, type HomeLock } from './home-lock.ts'
import type { HomePaths } from './home.ts'
import { JournalHead, readJournalHead } from './journal-head.ts'
import type { Platform } from './platform.ts'

/** Everything durable of one home, opened and recovered, behind its lock. */
export interface Storage {
  readonly journal: Journal
  readonly directory: SessionDirectory
  readonly archive: SessionArchive
  readonly delivery: Delivery
  readonly usage: UsageLedger
  readonly cleanups: CleanupLedger
  readonly windows: LearnedWindows
  /** Kept while the channel is switched off, too. */
  readonly xiaoyi: XiaoyiState
  readonly a2aPush: PushConfigs
  readonly sessionsFile: SessionsFile
  readonly transcripts: FileTranscriptStore
  readonly control: SessionControl
  /** What was found missing or damaged at this start. */
  readonly losses: StorageLosses
  /** Memory of what is remembered, by kind, roughly. */
  heldBytes(): Readonly<Record<RememberedKind, number>>
  /** Entries of transcripts that are durable in the journal and not in their file yet. */
  unwrittenEntries(): Iterable<unknown>
  close(): Promise<void>
}

export interface StorageLosses extends Omit<JournalRecovery, 'records'> {
  /** Batches at the end of the journal that were durable and are gone. */
  readonly lostBatches: number
  /** Transcripts that are gone, or shorter than they were. */
  readonly lostTranscripts: number
}

export interface StorageOptions {
  readonly config: Config
  readonly paths: HomePaths
  readonly hooks: HookRunner
  send(reply: Reply): Promise<DeliveryFate>
  onJournalFailed(error: JournalFailed): void
  /** Another process owns the home: nothing may be written any more. */
  onHomeLost(error: GatewayError): void
}

export async function openStorage(platform: Platform, options: StorageOptions): Promise<Storage> {
  const { paths } = options
  const lock = await claimHome(platform, options)
  try {
    for (const problem of await homeAccessProblems(platform.files, paths)) platform.log.warn(problem)
    const storage = await openLocked(platform, options, lock)
    return {
      ...storage,
      async close() {
        await storage.control.settled()
        await storage.sessionsFile.close()
        await storage.transcripts.close()
        try {
          await storage.journal.close()
          await storage.head.close()
        } finally {
          await lock.release()
        }
      },
    }
  } catch (error) {
    await lock.release()
    throw homeError(error, paths.home)
  }
}

async function claimHome(platform: Platform, { paths, onHomeLost }: StorageOptions): Promise<HomeLock> {
  const { home, lock } = paths
  try {
    await makeDurableDirectory(platform.files, home)
    return await lockHome(platform, home, lock, onHomeLost)
  } catch (error) {
    throw homeError(error, home)
  }
}

async function openLocked(
  platform: Platform,
  options: StorageOptions,
  lock: HomeLock,
): Promise<Omit<Storage, 'close'> & { readonly head: JournalHead }> {
  const { files, clock, ids, processes, log } = platform
  const { config, paths } = options
  const directory = new SessionDirectory({ clock, ids })
  const history = new ExportHistory()
  const topic = new TranscriptTopic()
  const { limits } = config
  const usage = new UsageLedger(clock, {
    sessions: limits.usage_sessions,
    days: limits.usage_days,
    hours: limits.usage_hours,
    sessionHours: limits.usage_hours,
  })
  const cleanups = new CleanupLedger(limits.usage_sessions)
  const windows = new LearnedWindows(clock, { ...DEFAULT_LEARNED_WINDOWS, models: limits.remembered_windows })
  const xiaoyi = new XiaoyiState(config.channels.xiaoyi.limits?.maxRemembered)
  const a2aPush = new PushConfigs()
  const delivery = new Delivery({
    clock,
    log,
    limits: {
      rememberMs: limits.redelivery_ms,
      rememberedMessages: limits.remembered_messages,
      rememberedBytes: limits.remembered_bytes,
      rememberedAccounts: limits.remembered_accounts,
      outboxPerAccount: limits.outbox_per_account,
    },
    send: (reply) => options.send(reply),
  })
  const recorded = await readJournalHead(files, paths.journalHead)
  // A gateway that was killed had its journal open, so there is at least one file of it.
  const isJournalGone = lock.wasAbandoned && !(await hasJournal(files, paths.journal))
  const journal = await openJournal({
    files,
    log,
    directory: paths.journal,
    topics: [directory, history, delivery, usage, cleanups, windows, xiaoyi, a2aPush, topic],
    fence: () => lock.lost(),
    onFailed: (error) => options.onJournalFailed(error),
  })
  delivery.attach(journal)
  xiaoyi.attach(journal)
  a2aPush.attach(journal)
  const transcripts = await openFileStore({
    files,
    clock,
    ids,
    processes,
    log,
    directory: paths.transcripts,
    cwd: paths.workspace,
    journal: { journal, topic },
    durability: config.durability,
    limits: { cacheBytes: limits.warm_session_bytes },
    hooks: writeHooks(options.hooks, directory),
  })
  const sessionsFile = new SessionsFile({ files, clock, log, path: paths.sessionsFile, journal, directory, history })
  const { adopted } = await sessionsFile.adopt()
  if (adopted > 0) log.info('took over sessions from sessions.json', { sessions: adopted })
  const archive = new SessionArchive({
    journal,
    directory,
    rows: await FileArchivedRows.open({ files, ids, directory: paths.archive }),
    onIndexChanged: () => sessionsFile.changed(),
  })
  const control = new SessionControl({
    journal,
    directory,
    transcripts,
    log,
    forgetUsage: (sessionId) => [usage.forget(sessionId), cleanups.forget(sessionId)],
    maxArchivedPerSession: limits.archived_per_session,
    onLeaving: (key, sessionId, reason) => tellLeaving(options.hooks, { session: key, sessionId }, reason),
  })
  const losses = await findLosses(platform, paths, { recorded, journal, topic, isJournalGone })
  const head = new JournalHead({ files, clock }, paths.journalHead, journal, recorded)
  const unwrittenEntries = (): Iterable<unknown> => topic.unwritten()
  return {
    journal,
    directory,
    archive,
    delivery,
    usage,
    cleanups,
    windows,
    xiaoyi,
    a2aPush,
    sessionsFile,
    transcripts,
    control,
    losses,
    head,
    unwrittenEntries,
    heldBytes: () => ({
      remembered: delivery.rememberedBytes,
      accounts: delivery.accountBytes,
      sessions: directory.heldBytes,
      usage: usage.heldBytes + cleanups.heldBytes,
      windows: windows.heldBytes,
      xiaoyi: xiaoyi.heldBytes,
      transcripts: transcripts.heldBytes,
    }),
  }
}

async function hasJournal(files: Files, directory: string): Promise<boolean> {
  const names = await files.list(directory).catch(() => [])
  return names.some((name) => /\.(?:log|snap)$/u.test(name))
}

/** A loss is reported although the gateway cannot undo it: the operator's backup may have what is gone. */
async function findLosses(
  { files, log }: Platform,
  paths: HomePaths,
  found: {
    readonly recorded: number
    readonly journal: Journal
    readonly topic: TranscriptTopic
    readonly isJournalGone: boolean
  },
): Promise<StorageLosses> {
  const { records: _, ...recovery } = found.journal.recovery
  const lostBatches = Math.max(JournalHead.lostBatches(found.recorded, found.journal), found.isJournalGone ? 1 : 0)
  if (lostBatches > 0) log.error('the end of the journal is gone; what it held is lost', { lostBatches })
  const lost = await lostTranscripts(files, paths.transcripts, found.topic)
  if (lost.length > 0)
    log.error('transcripts are gone, or shorter than they were; a backup may have them', {
      transcripts: lost.length,
      sessionIds: lost.slice(0, 10),
    })
  return { ...recovery, lostBatches, lostTranscripts: lost.length }
}

/** Hooks hear of it before it happens and after; neither can prevent it. */
function tellLeaving(hooks: HookRunner, context: HookContext, reason: 'reset' | 'delete'): Promise<void> | undefined {
  const isHeard = hooks.has('before_reset') || hooks.has('session_end')
  return isHeard ? callLeaving(hooks, context, reason) : undefined
}

async function callLeaving(hooks: HookRunner, context: HookContext, reason: 'reset' | 'delete'): Promise<void> {
  const { signal } = new AbortController()
  await hooks.beforeReset({ reason }, context, signal)
  await hooks.sessionEnd({ reason }, context, signal)
}
