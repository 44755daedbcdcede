import type { JsonObject } from '../base/json.ts'
import { createMetrics, type Metrics } from '../base/metrics.ts'
import type { A2aChannel } from '../channel/a2a/channel.ts'
import type { Channel } from '../channel/channel.ts'
import { FileLinks } from '../channel/files/file-links.ts'
import { FileStore } from '../channel/files/file-store.ts'
import { limitedFiles } from '../channel/files/message-files.ts'
import type { HttpChannel } from '../channel/http/channel.ts'
import type { OpenAiChannel } from '../channel/openai/channel.ts'
import type { WebhookChannel } from '../channel/webhook/channel.ts'
import type { Config } from '../config/config.ts'
import type { Environment } from '../config/environment.ts'
import { languageOfLocale, type Language } from '../core/language.ts'
import { LogLines } from '../dashboard/log-lines.ts'
import type { PhoneControls } from '../dashboard/phone-routes.ts'
import { Delivery } from '../gateway/delivery.ts'
import { Channels, type GatewayWatch } from '../gateway/channels.ts'
import { Gateway } from '../gateway/gateway.ts'
import { createGatewayApi } from '../gateway/gateway-api.ts'
import { createGatewayMetrics, type GatewayMetrics } from '../gateway/gateway-metrics.ts'
import type { GatewayApi } from '../gateway/http.ts'
import { KnownChats } from '../gateway/known-chats.ts'
import type { HookSource } from '../hook/register.ts'
import { MediaExpiry } from '../media/expiry.ts'
import { DEFAULT_ACCEPTED_FORMS, RememberedForms } from '../session/accepted-forms.ts'
import { SessionRetention } from '../session/retention.ts'
import { Approvals } from '../session/approvals.ts'
import { AgentTurns } from '../session/converse.ts'
import { createSessionCommands } from '../session/session-commands.ts'
import { Sessions } from '../session/sessions.ts'
import type { TurnLimits } from '../session/turn-slots.ts'
import type { LoadedConfig } from '../config/load.ts'
import { loadConfig } from '../config/load.ts'
import { createA2aChannel } from './a2a-channel.ts'
import { openAgent, type Agent, type AgentOptions } from './agent.ts'
import { createDashboard, type Dashboard } from './dashboard.ts'
import { createHttpChannel } from './http-channel.ts'
import { createOpenAiChannel } from './openai-channel.ts'
import type { HomePaths } from './home.ts'
import { LiveAgent } from './live-agent.ts'
import { createMediaReferences } from './media-references.ts'
import type { Platform } from './platform.ts'
import { channelsOf, type PluginSource } from './plugin.ts'
import { LiveConfig } from './reload.ts'
import { examineStart, refuseStart } from './start-check.ts'
import { createStatus } from './status.ts'
import { createStorageWatch } from './storage-watch.ts'
import { describeToolbox } from './tools.ts'
import type { Storage } from '../storage/storage.ts'
import { openHomeStorage, type HomeStorage } from './storage.ts'
import { createWebhookChannel } from './webhook-channel.ts'

/** The whole gateway of one home, without its listeners: everything is built here and passed down. */
export interface GatewayApp {
  /** What is in force: a reload changes it. */
  readonly config: Config
  /** Reads `bridge.json` again. */
  readonly live: LiveConfig
  readonly paths: HomePaths
  readonly storage: Storage
  /** What the storage of a home has besides. */
  readonly home: HomeStorage
  readonly agent: Agent
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
}

export async function openGatewayApp(
  outside: Platform,
  { config: first, paths, hooks = [], plugins: own = [], env = {}, phone, load }: GatewayAppOptions,
): Promise<GatewayApp> {
  const { plugins, problems } = await examineStart(outside, { config: first, paths, hooks, plugins: own })
  refuseStart(problems)
  const locale = languageOfLocale(env)
  const logs = new LogLines(outside.clock)
  const platform: Platform = { ...outside, log: logs.around(outside.log) }
  let dashboard: Dashboard | undefined
  const metrics = createMetrics()
  const watch = createStorageWatch(platform.log)
  const files = createFileStore(platform, first, paths)
  const messageFiles = limitedFiles(files, first.limits.files_per_message)
  const links = new FileLinks({ clock: platform.clock, key: platform.ids.hex(64), validMs: first.limits.file_link_ms })
  const webhook = createWebhookChannel(platform, first, { files: messageFiles, links })
  const http = createHttpChannel(platform, first, { files: messageFiles, links })
  const gatewayWatch: GatewayWatch = {
    accepted: (message) => dashboard?.watch.accepted(message),
    observe: (event, message) => dashboard?.watch.observe(event, message),
    answered: (reply) => dashboard?.watch.answered(reply),
    changed: (key) => dashboard?.watch.changed(key),
  }
  const channels = new Channels(gatewayWatch)
  const openNext = (config: Config, toolbox?: AgentOptions['toolbox']): Promise<Agent> =>
    openAgent(platform, { config, paths, locale, hooks, plugins, toolbox })
  const agent = new LiveAgent(await openNext(first))
  const live = new LiveConfig(first, {
    log: platform.log,
    agent,
    load: load ?? (() => loadConfig({ files: platform.files, path: paths.config, env })),
    check: async (next) =>
      refuseStart((await examineStart(platform, { config: next, paths, hooks, plugins: own })).problems),
    openAgent: openNext,
  })
  const home = await openHomeStorage(platform, {
    config: first,
    paths,
    hooks: agent.hooks,
    modelOf: (record) => agent.modelsFor(record)[0].name,
    onJournalFailed: watch.journalFailed,
    onHomeLost: watch.homeLost,
  })
  const { storage } = home
  const delivery = new Delivery({ log: platform.log, storage, channels })
  const chats = new KnownChats(storage)
  const openai = createOpenAiChannel(platform, { config: first, agent, files: messageFiles, finder: chats })
  const a2a = createA2aChannel(platform, first, { files: messageFiles, links, configs: home.a2aPush })
  for (const channel of [webhook, http, openai, a2a]) channels.add(channel)
  const approvals = new Approvals(platform.clock)
  const gatewayMetrics = createGatewayMetrics(
    metrics,
    {
      channels: ['webhook', 'http', 'openai', 'a2a', 'xiaoyi', ...channelsOf(plugins).map(({ name }) => name)],
      providers: () => agent.providers.names(),
    },
    {
      sessions: () => storage.sessions.count(),
      activity: () => sessions.activity(),
      providerLoad: () => sessions.providerLoad(),
      replies: () => storage.outbox.counts(),
      netTokensSaved: async () => (await storage.usage.savedInAll()).netTokensSaved,
    },
  )
  const sessions = createSessions(platform, {
    live,
    approvals,
    agent,
    home,
    delivery,
    metrics: gatewayMetrics,
    locale,
  })
  const gateway = new Gateway({
    ...platform,
    storage,
    channels,
    sessions,
    delivery,
    approvals,
    route: { agent: first.agent_id, scope: first.session_scope, preserveCase: first.preserve_case },
    limits: {
      queuedPerSession: first.limits.queued_per_session,
      queuedTotal: first.limits.queued_total,
      list: first.limits.list,
      sessions: first.limits.sessions,
    },
    metrics: gatewayMetrics,
    watch: gatewayWatch,
  })
  const media = createMediaExpiry(platform, { config: first, paths, home })
  const retention = createRetention(platform, { config: first, storage, gateway, metrics })
  const describe = createStatus({
    clock: platform.clock,
    config: () => live.current,
    paths,
    home,
    agent,
    gateway,
    sessions,
    channels,
  })
  const simulates = phone === undefined ? {} : { simulatesXiaoyi: true }
  const status = async (): Promise<JsonObject> => ({
    ...(await describe()),
    ...simulates,
    turns: dashboard?.watch.running() ?? [],
    rates: dashboard?.watch.rates() ?? {},
  })
  const api = createGatewayApi({
    storage,
    control: home.control,
    providers: agent.providers,
    agent,
    gateway,
    sessions,
    approvals,
    maxList: first.limits.list,
    clock: platform.clock,
    status,
    reload: async () => ({ ...(await live.reload()) }),
    tools: () => describeToolbox(agent.toolbox),
    channel: (name) => channels.get(name),
  })
  const pages = createDashboard(platform, {
    config: () => live.current,
    paths,
    storage,
    agent,
    api,
    links,
    logs,
    env,
    ...(phone === undefined ? {} : { phone }),
    status: async () => ({ activity: { ...sessions.activity() }, replies: await storage.outbox.counts() }),
  })
  dashboard = pages
  return {
    get config() {
      return live.current
    },
    live,
    paths,
    storage,
    home,
    agent,
    gateway,
    sessions,
    webhook,
    http,
    openai,
    a2a,
    files,
    links,
    metrics,
    failed: watch.failed,
    api,
    dashboard: pages,
    async open(more) {
      for (const channel of [...more, ...channelsOf(plugins)]) channels.add(channel)
      await gateway.open()
      media.start()
      retention?.start()
    },
    async close() {
      pages.close()
      await media.close()
      await retention?.close()
      await gateway.close()
      await agent.close()
      await home.close()
    },
  }
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
      providers: agent.providers,
      approvals,
      modelsFor: (record) => agent.modelsFor(record),
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
