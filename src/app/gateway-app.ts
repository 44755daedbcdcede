import type { Files } from '../base/files.ts'
import type { Log } from '../base/log.ts'
import type { JsonObject } from '../base/json.ts'
import { NEVER } from '../base/async.ts'
import { createMetrics, type Metrics } from '../base/metrics.ts'
import type { A2aChannel } from '../channel/a2a/channel.ts'
import type { Channel } from '../channel/channel.ts'
import { FileLinks } from '../channel/files/file-links.ts'
import { FileStore } from '../channel/files/file-store.ts'
import { limitedFiles, type MessageFiles } from '../channel/files/message-files.ts'
import type { HttpChannel } from '../channel/http/channel.ts'
import type { OpenAiChannel } from '../channel/openai/channel.ts'
import type { WebhookChannel } from '../channel/webhook/channel.ts'
import type { Config } from '../config/config.ts'
import type { Environment } from '../config/environment.ts'
import { languageOfLocale, type Language } from '../core/language.ts'
import { LogLines } from '../dashboard/log-lines.ts'
import type { PhoneControls } from '../dashboard/phone-routes.ts'
import { Delivery, Channels, type GatewayWatch } from '../gateway/delivery.ts'
import { Gateway } from '../gateway/gateway.ts'
import { createGatewayApi } from '../gateway/gateway-api.ts'
import { createGatewayMetrics, type GatewayMetrics } from '../gateway/gateway-metrics.ts'
import type { GatewayApi } from '../gateway/http.ts'
import { KnownChats } from '../gateway/known-chats.ts'
import type { HookSource } from '../hook/register.ts'
import { MediaExpiry } from '../media/expiry.ts'
import { DEFAULT_ACCEPTED_FORMS, RememberedForms } from '../session/learned-models.ts'
import { SessionRetention } from '../session/retention.ts'
import { Approvals } from '../session/approvals.ts'
import { AgentTurns } from '../session/converse.ts'
import { createSessionCommands } from '../session/session-commands.ts'
import { Sessions } from '../session/sessions.ts'
import type { TurnLimits } from '../session/turn-slots.ts'
import { type LoadedConfig, loadConfig } from '../config/load.ts'
import { createA2aChannel, createHttpChannel, createWebhookChannel, OWN_CHANNELS } from './channels.ts'
import { LiveAgent, openAgent, type Agent, type AgentOptions } from './agent.ts'
import { createDashboard, type Dashboard } from './dashboard.ts'
import { createOpenAiChannel } from './openai-channel.ts'
import type { HomePaths } from './home.ts'
import { LINK_KEY_DIGITS, shareLinkKey } from './link-key.ts'
import { LiveConfig } from './reload.ts'
import { createMediaReferences } from './pictures.ts'
import type { Platform } from './platform.ts'
import { channelsOf, type PluginSource } from './plugin.ts'
import { examineStart, refuseStart } from './start-check.ts'
import { createStatus } from './status.ts'
import { createStorageWatch, type StorageWatch } from './storage-watch.ts'
import { describeToolbox } from './tools.ts'
import type { SharedFolders } from '../storage/postgres/shared-folders.ts'
import type { Storage } from '../storage/storage.ts'
import { openHomeStorage, sharedFolders, type HomeStorage } from './storage.ts'

/** The whole gateway of one home, without its listeners: everything is built here and passed down. */
export interface GatewayApp {
  /** What is in force: a reload changes it. */
  readonly config: Config
  /** Reads `bridge.json` again. */
  readonly live: LiveConfig
  readonly paths: HomePaths
  /** What is written to it is seen on the dashboard too. */
  readonly log: Log
  readonly storage: Storage
  /** The disk, with the folders of the home as all nodes see them. */
  readonly disk: Files
  /** What the storage of a home has besides. */
  readonly home: HomeStorage
  readonly agent: LiveAgent
  readonly gateway: Gateway
  readonly sessions: Sessions
  readonly webhook: WebhookChannel
  readonly http: HttpChannel
  readonly openai: OpenAiChannel
  readonly a2a: A2aChannel
  readonly files: FileStore
  readonly links: FileLinks
  readonly metrics: Metrics
  readonly api: GatewayApi
  readonly dashboard: Dashboard
  /** Rejects when nothing may be acknowledged any more: the program has to end. */
  readonly failed: Promise<never>
  /** Recovery, then intake. */
  open(channels: readonly Channel[]): Promise<void>
  close(): Promise<void>
}

export interface GatewayAppOptions {
  readonly config: Config
  readonly paths: HomePaths
  readonly hooks?: readonly HookSource[]
  /** What the program around us brings; plugins of the configuration come after it. */
  readonly plugins?: readonly PluginSource[]
  /** For checking a configuration on the dashboard, and for the locale. */
  readonly env?: Environment
  /** The configuration as a start would read it now; without it, `bridge.json` alone. */
  load?(): Promise<LoadedConfig>
  /** The phone of a simulated XiaoYi service; its settings are in `config` already. */
  readonly phone?: PhoneControls
  /**
   * Called before the storage is waited for, which may take as long as a database is away, or until the signal. Without
   * it a database that is away is an error.
   */
  readonly onWaiting?: () => Promise<void>
  readonly signal?: AbortSignal
}

export async function openGatewayApp(outside: Platform, options: GatewayAppOptions): Promise<GatewayApp> {
  const base = await examine(outside, options)
  const entrance = openEntrance(base)
  const answering = await openAnswering(base, options)
  const home = await openHome(base, answering, options)
  await shareLinkKey(entrance.links, home.storage, base.platform.ids).catch(async (error: unknown) => {
    await answering.agent.close()
    await home.close()
    throw error
  })
  const conversations = createConversations(base, { ...entrance, ...answering, home })
  const pages = createPages(base, { ...entrance, ...answering, ...conversations, home })
  base.late.dashboard = pages.dashboard
  const { gateway, channels, media, retention } = conversations
  return {
    get config() {
      return answering.live.current
    },
    paths: base.paths,
    log: base.platform.log,
    metrics: base.metrics,
    failed: base.watch.failed,
    storage: home.storage,
    disk: base.platform.files,
    home,
    ...entrance,
    ...answering,
    ...conversations,
    ...pages,
    async open(more) {
      for (const channel of [...more, ...channelsOf(base.plugins)]) channels.add(channel)
      await gateway.open()
      media.start()
      retention?.start()
    },
    async close() {
      pages.dashboard.close()
      await media.close()
      await retention?.close()
      await gateway.close()
      await answering.agent.close()
      await home.close()
    },
  }
}

/** What everything else is built on: a start that was found possible, and the ports with what the pages see of them. */
interface Base extends Pick<GatewayAppOptions, 'paths' | 'phone'> {
  readonly platform: Platform
  readonly shared: SharedFolders | undefined
  readonly config: Config
  readonly env: Environment
  readonly locale: Language
  readonly plugins: readonly PluginSource[]
  readonly logs: LogLines
  readonly metrics: Metrics
  readonly watch: StorageWatch
  /** The dashboard is built last and follows what the others do. */
  readonly late: { dashboard?: Dashboard }
}

async function examine(outside: Platform, options: GatewayAppOptions): Promise<Base> {
  const { config, paths, phone, env = {} } = options
  const { plugins, problems } = await examineStart(outside, options)
  refuseStart(problems)
  const logs = new LogLines(outside.clock)
  const shared = await sharedFolders(outside, config, paths)
  const platform = { ...outside, files: shared?.files ?? outside.files, log: logs.around(outside.log) }
  return {
    platform,
    shared,
    config,
    paths,
    ...(phone === undefined ? {} : { phone }),
    env,
    locale: languageOfLocale(env),
    plugins,
    logs,
    metrics: createMetrics(),
    watch: createStorageWatch(platform.log),
    late: {},
  }
}

type Entrance = Pick<GatewayApp, 'files' | 'links' | 'webhook' | 'http'> & { readonly messageFiles: MessageFiles }

/** The channels that need nothing but files. */
function openEntrance({ platform, config, paths }: Base): Entrance {
  const files = createFileStore(platform, config, paths)
  const messageFiles = limitedFiles(files, config.limits.files_per_message)
  const { clock, ids } = platform
  const links = new FileLinks({ clock, key: ids.hex(LINK_KEY_DIGITS), validMs: config.limits.file_link_ms })
  const deps = { files: messageFiles, links }
  const webhook = createWebhookChannel(platform, config, deps)
  return { files, messageFiles, links, webhook, http: createHttpChannel(platform, config, deps) }
}

interface Answering {
  readonly agent: LiveAgent
  readonly live: LiveConfig
}

/** What answers, and how a reload replaces it. */
async function openAnswering(
  { platform, config: first, paths, env, locale, plugins }: Base,
  { hooks = [], plugins: own = [], load }: GatewayAppOptions,
): Promise<Answering> {
  const openNext = (config: Config, toolbox?: AgentOptions['toolbox']): Promise<Agent> =>
    openAgent(platform, { config, paths, locale, hooks, plugins, toolbox })
  const agent = new LiveAgent(await openNext(first))
  const live = new LiveConfig(first, {
    log: platform.log,
    agent,
    load: load ?? (() => loadConfig({ files: platform.files, path: paths.config, env })),
    check: async (config) =>
      refuseStart((await examineStart(platform, { config, paths, hooks, plugins: own })).problems),
    openAgent: openNext,
  })
  return { agent, live }
}

async function openHome(
  { platform, shared, config, paths, watch }: Base,
  { agent }: Answering,
  { onWaiting, signal = NEVER }: GatewayAppOptions,
): Promise<HomeStorage> {
  try {
    const home = await openHomeStorage(platform, {
      config,
      paths,
      hooks: agent.current.hooks,
      modelOf: (record) => agent.current.modelsFor(record)[0].name,
      onJournalFailed: watch.journalFailed,
      onHomeLost: watch.homeLost,
      onWaiting,
      signal,
    })
    if (home.storage.homeFiles !== undefined) shared?.attach(home.storage.homeFiles)
    return home
  } catch (error) {
    await agent.close()
    throw error
  }
}

type ConversationsDeps = Entrance & Answering & { readonly home: HomeStorage }

interface Conversations extends Pick<GatewayApp, 'openai' | 'a2a' | 'sessions' | 'gateway'> {
  readonly channels: Channels
  readonly approvals: Approvals
  readonly media: MediaExpiry
  readonly retention: SessionRetention | undefined
}

/** Channels, sessions and the gateway between them, and what clears up behind conversations. */
function createConversations(base: Base, deps: ConversationsDeps): Conversations {
  const { platform, config, paths, metrics, late } = base
  const { webhook, http, messageFiles: files, links, agent, live, home } = deps
  const { storage } = home
  const watch: GatewayWatch = {
    accepted: (message) => late.dashboard?.watch.accepted(message),
    observe: (event, message) => late.dashboard?.watch.observe(event, message),
    answered: (reply) => late.dashboard?.watch.answered(reply),
    changed: (key) => late.dashboard?.watch.changed(key),
  }
  const channels = new Channels(watch, platform.log)
  const openai = createOpenAiChannel(platform, { config, agent, files, finder: new KnownChats(storage) })
  const a2a = createA2aChannel(platform, config, { files, links, configs: home.a2aPush })
  for (const channel of [webhook, http, openai, a2a]) channels.add(channel)
  const delivery = new Delivery({ clock: platform.clock, log: platform.log, storage, channels })
  const approvals = new Approvals(platform.clock, storage)
  const sessionsOf = (): Sessions => sessions
  const gatewayMetrics = createMetricsOf(base, { agent, storage, sessionsOf })
  const { locale } = base
  const sessions = createSessions(platform, {
    live,
    approvals,
    agent,
    home,
    delivery,
    metrics: gatewayMetrics,
    locale,
  })
  const { queued_per_session: queuedPerSession, queued_total: queuedTotal, list, sessions: most } = config.limits
  const gateway = new Gateway({
    ...platform,
    storage,
    channels,
    sessions,
    delivery,
    approvals,
    route: { agent: config.agent_id, scope: config.session_scope, preserveCase: config.preserve_case },
    limits: { queuedPerSession, queuedTotal, list, sessions: most },
    metrics: gatewayMetrics,
    watch,
  })
  const media = createMediaExpiry(platform, { config, paths, home })
  const retention = createRetention(platform, { config, storage, gateway, metrics })
  return { openai, a2a, sessions, gateway, channels, approvals, media, retention }
}

interface MeasuredDeps {
  readonly agent: LiveAgent
  readonly storage: Storage
  /** The sessions report to the metrics that ask them. */
  sessionsOf(): Sessions
}

function createMetricsOf({ metrics, plugins }: Base, { agent, storage, sessionsOf }: MeasuredDeps): GatewayMetrics {
  return createGatewayMetrics(
    metrics,
    {
      channels: [...OWN_CHANNELS, ...channelsOf(plugins).map(({ name }) => name)],
      providers: () => agent.current.providers.names(),
    },
    {
      sessions: () => storage.sessions.count(),
      activity: () => sessionsOf().activity(),
      providerLoad: () => sessionsOf().providerLoad(),
      replies: () => storage.outbox.counts(),
      netTokensSaved: async () => (await storage.usage.savedInAll()).netTokensSaved,
    },
  )
}

/** What people and commands see of it: the JSON API and the dashboard. */
function createPages(
  { platform, config, paths, env, logs, phone, late }: Base,
  { live, agent, home, links, channels, gateway, sessions, approvals }: ConversationsDeps & Conversations,
): Pick<GatewayApp, 'api' | 'dashboard'> {
  const { storage } = home
  const { clock } = platform
  const current = (): Config => live.current
  const describe = createStatus({ clock, config: current, paths, home, agent, gateway, sessions, channels })
  const api = createGatewayApi({
    storage,
    agent,
    gateway,
    sessions,
    approvals,
    maxList: config.limits.list,
    clock,
    status: async () => ({
      ...(await describe()),
      ...(phone === undefined ? {} : { simulatesXiaoyi: true }),
      turns: late.dashboard?.watch.running() ?? [],
      rates: late.dashboard?.watch.rates() ?? {},
    }),
    reload: async () => ({ ...(await live.reload()) }),
    tools: () => describeToolbox(agent.current.toolbox),
    channel: (name) => channels.get(name),
    changed: (key) => late.dashboard?.watch.changed(key),
  })
  const status = async (): Promise<JsonObject> => ({
    activity: { ...sessions.activity() },
    replies: await storage.outbox.counts(),
  })
  const dashboard = createDashboard(platform, {
    config: current,
    paths,
    storage,
    agent,
    api,
    links,
    logs,
    env,
    ...(phone === undefined ? {} : { phone }),
    isRunning: (key, run) => sessions.activityOf(key).running === run,
    status,
  })
  return { api, dashboard }
}

interface SessionsWiring {
  readonly live: LiveConfig
  readonly agent: LiveAgent
  readonly home: HomeStorage
  readonly delivery: Delivery
  readonly approvals: Approvals
  readonly metrics: GatewayMetrics
  readonly locale: Language
}

function createSessions(
  { clock, ids, log }: Platform,
  { live, agent, home, delivery, approvals, metrics, locale }: SessionsWiring,
): Sessions {
  const { limits } = live.current
  const { storage, control, windows } = home
  return new Sessions({
    clock,
    ids,
    log,
    storage,
    outlet: delivery,
    control,
    limits: { turns: turnLimits(limits), messageAttempts: limits.message_attempts },
    queueMode: () => live.current.queue.mode,
    metrics,
    turns: new AgentTurns({
      clock,
      log,
      storage,
      agent,
      windows,
      forms: new RememberedForms(clock, { ...DEFAULT_ACCEPTED_FORMS, models: limits.remembered_windows }),
      spending: () => live.current.budget,
      onSpent: (model, spent) => metrics.spent(model, spent),
      approvals,
    }),
    commands: createSessionCommands({
      storage,
      providers: () => agent.current.providers,
      approvals,
      modelsFor: (record) => agent.current.modelsFor(record),
      queueMode: () => live.current.queue.mode,
      language: () => ({ setting: live.current.language, locale }),
    }),
  })
}

/** Enough for one provider alone, and some left over when it hangs. */
const DEFAULT_SHARE = 0.75

function turnLimits(limits: Config['limits']): TurnLimits {
  const total = limits.concurrent_turns
  const share = Math.ceil(total * DEFAULT_SHARE)
  return {
    total,
    perProvider: limits.concurrent_turns_per_provider ?? share,
    perAccount: limits.concurrent_turns_per_account ?? share,
  }
}

interface MediaDeps {
  readonly config: Config
  readonly paths: HomePaths
  readonly home: HomeStorage
}

function createMediaExpiry(platform: Platform, { config, paths, home }: MediaDeps): MediaExpiry {
  const { files, clock, log } = platform
  return new MediaExpiry({
    files,
    clock,
    log,
    directory: paths.media,
    limits: { maxAgeMs: config.media.max_age_ms, maxBytes: config.media.max_bytes },
    stillNeeded: createMediaReferences(platform, paths, home),
  })
}

interface RetentionDeps {
  readonly config: Config
  readonly storage: Storage
  readonly gateway: Gateway
  readonly metrics: Metrics
}

const DAY_MS = 24 * 3_600_000

/** Undefined when conversations are kept in the index whatever their age. */
function createRetention(
  { clock, log }: Platform,
  { config, storage, gateway, metrics }: RetentionDeps,
): SessionRetention | undefined {
  const archived = metrics.counter({
    name: 'clew_sessions_archived_total',
    help: 'Conversations archived because of their age, since the start.',
  })
  const { archive_after_days: days, archived_per_hour: perPass } = config.retention
  if (days === undefined) return undefined
  return new SessionRetention({
    clock,
    log,
    storage,
    limits: { archiveAfterMs: days * DAY_MS, perPass },
    isIdle: (key) => gateway.isIdle(key),
    onArchived: (sessions) => archived.increase(sessions),
  })
}

function createFileStore({ files, ids }: Platform, { limits }: Config, { media }: HomePaths): FileStore {
  const { file_bytes: maxBytes, file_text_bytes: maxTextBytes } = limits
  return new FileStore({ files, ids, directory: media, maxBytes, maxTextBytes })
}
