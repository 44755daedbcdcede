import { removeUnfinished } from '../base/atomic-write.ts'
import type { Databases } from '../base/database.ts'
import { makeDurableDirectory, type Files } from '../base/files.ts'
import type { JournalFailed } from '../storage/files/journal.ts'
import { PUSH_SECTION, PushConfigs } from '../channel/a2a/push-configs.ts'
import { STATE_SECTIONS, XiaoyiState } from '../channel/xiaoyi/state.ts'
import type { Config } from '../config/config.ts'
import { GatewayError } from '../core/errors.ts'
import type { RememberedKind } from '../gateway/gateway-metrics.ts'
import type { HookContext } from '../hook/hook.ts'
import type { HookRunner } from '../hook/runner.ts'
import { CHOSEN_SECTION } from '../session/chosen-settings.ts'
import { SessionControl } from '../session/control.ts'
import { DEFAULT_LEARNED_WINDOWS, LearnedWindows } from '../session/learned-models.ts'
import { COPY_KEY, COPY_SECTION, isProgress } from '../storage/copy/image.ts'
import { openFilesStorage, type FilesStorage } from '../storage/files/files-storage.ts'
import type { SharedFolders } from '../storage/postgres/shared-folders.ts'
import { ownFile, VERSION } from '../platform/own-folder.ts'
import { homeAccessProblems, type HomePaths } from './home.ts'
import { homeError } from './home-error.ts'
import { lockHome, type HomeLock } from './home-lock.ts'
import type { Platform } from './platform.ts'
import { writeHooks, type WriteHooksDeps } from './write-hooks.ts'

/** Everything durable of one home, opened and recovered, behind its lock. */
export interface HomeStorage extends FilesStorage {
  /** Memory of what is remembered, by kind, roughly. */
  heldBytes(): Readonly<Record<RememberedKind, number>>
  readonly windows: LearnedWindows
  /** Kept while the channel is switched off, too. */
  readonly xiaoyi: XiaoyiState
  readonly a2aPush: PushConfigs
  readonly control: SessionControl
}

export interface HomeStorageOptions {
  readonly config: Config
  readonly paths: HomePaths
  readonly hooks: HookRunner
  readonly modelOf: WriteHooksDeps['modelOf']
  onJournalFailed(error: JournalFailed): void
  /** Another process owns the home: nothing may be written any more. */
  onHomeLost(error: GatewayError): void
  /** Called before a database is waited for; absent when none is. */
  readonly onWaiting?: (() => Promise<void>) | undefined
  /** Ends that wait. */
  readonly signal: AbortSignal
}

export async function openHomeStorage(platform: Platform, options: HomeStorageOptions): Promise<HomeStorage> {
  const { paths } = options
  const lock = await claimHome(platform, options)
  try {
    await removeUnfinished(platform.files, { directory: paths.home })
    for (const problem of await homeAccessProblems(platform.files, paths)) platform.log.warn(problem)
    const home = await openLocked(platform, options, lock)
    return {
      ...home,
      async close() {
        await home.control.settled()
        try {
          await home.close()
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

async function claimHome(platform: Platform, { paths, onHomeLost }: HomeStorageOptions): Promise<HomeLock> {
  const { home, lock } = paths
  try {
    await makeDurableDirectory(platform.files, home)
    return await lockHome(platform, home, lock, onHomeLost)
  } catch (error) {
    throw homeError(error, home)
  }
}

async function openLocked(platform: Platform, options: HomeStorageOptions, lock: HomeLock): Promise<HomeStorage> {
  const { clock, ids, log } = platform
  const { config, hooks } = options
  const { limits } = config
  const opened = await (config.storage.kind === 'postgres'
    ? openShared(platform, options, config.storage)
    : openOwn(platform, options, lock))
  const { storage } = opened
  await requireWhole(opened)
  const windows = new LearnedWindows(clock, { ...DEFAULT_LEARNED_WINDOWS, models: limits.remembered_windows })
  await windows.load(storage)
  const xiaoyi = new XiaoyiState(config.channels.xiaoyi.limits?.maxRemembered)
  await xiaoyi.load(storage)
  const a2aPush = new PushConfigs(storage)
  const control = new SessionControl({
    clock,
    ids,
    storage,
    log,
    maxArchivedPerSession: limits.archived_per_session,
    onEnding: (key, sessionId, reason) => announceEnding(hooks, { session: key, sessionId }, reason),
  })
  const heldBytes = (): Readonly<Record<RememberedKind, number>> => ({
    ...opened.heldBytes(),
    windows: windows.heldBytes,
    xiaoyi: xiaoyi.heldBytes,
  })
  return { ...opened, windows, xiaoyi, a2aPush, control, heldBytes }
}

/** A part of a copy looks like a storage from which conversations are missing. */
async function requireWhole(opened: FilesStorage): Promise<void> {
  const progress = await opened.storage.state.get(COPY_SECTION, COPY_KEY)
  if (!isProgress(progress) || progress.state === 'done') return
  await opened.close()
  throw new GatewayError(
    'COPY_UNFINISHED',
    `here is an unfinished copy of ${progress.from}; repeat clew storage copy, it goes on where it stopped`,
    {},
  )
}

function openOwn(platform: Platform, options: HomeStorageOptions, lock: HomeLock): Promise<FilesStorage> {
  const { config, paths, hooks } = options
  const { limits } = config
  return openFilesStorage({
    ...platform,
    paths,
    limits: {
      rememberMs: limits.redelivery_ms,
      rememberedMessages: limits.remembered_messages,
      rememberedBytes: limits.remembered_bytes,
      rememberedAccounts: limits.remembered_accounts,
      outboxPerAccount: limits.outbox_per_account,
    },
    usage: {
      sessions: limits.usage_sessions,
      days: limits.usage_days,
      hours: limits.usage_hours,
      sessionHours: limits.usage_hours,
    },
    state: stateEntries(config),
    durability: config.durability,
    cacheBytes: limits.warm_session_bytes,
    wasAbandoned: lock.wasAbandoned,
    fence: () => lock.lost(),
    hooks: (storage) => writeHooks(hooks, { sessions: storage.sessions, modelOf: options.modelOf }),
    onFailed: (error) => options.onJournalFailed(error),
  })
}

const NOTHING_LOST: FilesStorage['losses'] = {
  damagedLines: 0,
  missingBatches: 0,
  unreadableSegments: 0,
  rejectedRecords: 0,
  unfinishedLines: 0,
  lostBatches: 0,
  lostTranscripts: 0,
  lostRows: 0,
}

const NOTHING_HELD: ReturnType<FilesStorage['heldBytes']> = {
  remembered: 0,
  accounts: 0,
  sessions: 0,
  usage: 0,
  transcripts: 0,
}

/** What of the home is the same on all nodes, until `attach` on the disk of this one; undefined where there is only one. */
export async function sharedFolders(
  platform: Platform,
  { storage }: Config,
  { home }: HomePaths,
): Promise<SharedFolders | undefined> {
  if (storage.kind !== 'postgres') return undefined
  const { shareFolders } = await import('../storage/postgres/shared-folders.ts')
  return shareFolders(platform, home)
}

/** For a command: the files of a home as its gateway sees them, with or without one that runs. */
export async function withHomeFiles<T>(
  platform: Platform,
  config: Config,
  paths: HomePaths,
  action: (files: Files) => Promise<T>,
): Promise<T> {
  const { storage } = config
  const shared = await sharedFolders(platform, config, paths)
  if (storage.kind !== 'postgres' || shared === undefined) return action(platform.files)
  const { openHomeFiles } = await import('../storage/postgres/open.ts')
  const { url, schema } = storage
  const opened = await openHomeFiles({
    ...platform,
    databases: requireDatabases(platform),
    migrations: MIGRATIONS,
    settings: { url, schema, pool: 1, timeoutMs: 10_000, application: `clew ${VERSION}` },
  })
  try {
    shared.attach(opened.files)
    return await action(shared.files)
  } finally {
    await opened.close()
  }
}

function requireDatabases({ databases }: Platform): Databases {
  if (databases === undefined) throw new GatewayError('CONFIG_INVALID', 'there is no driver for storage.kind here', {})
  return databases
}

/** Beside the compiled program; from the source it is where it is written. */
const MIGRATIONS = ownFile('storage/postgres/migrations')

/** One database for several nodes; the home keeps what belongs to this node alone. */
async function openShared(
  platform: Platform,
  { config, paths, hooks, modelOf, onWaiting, signal }: HomeStorageOptions,
  { url, schema, lease_ms: leaseMs, poll_ms: pollMs, pool }: Extract<Config['storage'], { kind: 'postgres' }>,
): Promise<FilesStorage> {
  const databases = requireDatabases(platform)
  // Loaded when it is asked for: a gateway on files never needs it.
  const { openPostgresStorage } = await import('../storage/postgres/open.ts')
  await onWaiting?.()
  const { host, port } = config.listen
  const storage = await openPostgresStorage({
    ...platform,
    databases,
    migrations: MIGRATIONS,
    url,
    schema,
    pool,
    leaseMs,
    pollMs,
    address: `${host}:${port}`,
    version: VERSION,
    limits: {
      rememberMs: config.limits.redelivery_ms,
      outboxPerAccount: config.limits.outbox_per_account,
      usage: { days: config.limits.usage_days, hours: config.limits.usage_hours },
      mostEntries: stateEntries(config),
    },
    transcriptLimits: { cacheBytes: config.limits.warm_session_bytes },
    cwd: paths.workspace,
    hooks: ({ sessions }) => writeHooks(hooks, { sessions, modelOf }),
    waits: onWaiting !== undefined,
    signal,
  })
  return {
    storage,
    losses: NOTHING_LOST,
    unwrittenEntries: () => [],
    heldBytes: () => NOTHING_HELD,
    close: () => storage.close(),
  }
}

/** How many entries each section of the state keeps; of the channel's as many as it remembers. */
function stateEntries({ limits, channels }: Config): Readonly<Record<string, number>> {
  const most = channels.xiaoyi.limits?.maxRemembered
  const ofChannel = most === undefined ? [] : STATE_SECTIONS.map((section) => [`xiaoyi.${section}`, most] as const)
  return {
    [PUSH_SECTION]: limits.push_tasks,
    [CHOSEN_SECTION]: limits.chosen_models,
    windows: limits.remembered_windows,
    ...Object.fromEntries(ofChannel),
  }
}

/** Hooks hear of it before it happens and after; neither can prevent it. */
function announceEnding(
  hooks: HookRunner,
  context: HookContext,
  reason: 'reset' | 'delete',
): Promise<void> | undefined {
  const isHeard = hooks.has('before_reset') || hooks.has('session_end')
  return isHeard ? callEnding(hooks, context, reason) : undefined
}

async function callEnding(hooks: HookRunner, context: HookContext, reason: 'reset' | 'delete'): Promise<void> {
  const { signal } = new AbortController()
  await hooks.beforeReset({ reason }, context, signal)
  await hooks.sessionEnd({ reason }, context, signal)
}
