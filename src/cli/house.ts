import type { JsonObject } from '../base/json.ts'
import { createMetrics, type Metrics } from '../base/metrics.ts'
import type { Channel } from '../channel/channel.ts'
import { WebhookChannel } from '../channel/webhook/channel.ts'
import type { Config } from '../config/config.ts'
import { GatewayError } from '../core/errors.ts'
import type { AcceptedMessage } from '../core/inbound.ts'
import { Gateway } from '../gateway/gateway.ts'
import { createGatewayMetrics } from '../gateway/gateway-metrics.ts'
import type { GatewayApi } from '../gateway/http.ts'
import type { HookSource } from '../hook/register.ts'
import { MediaExpiry } from '../media/expiry.ts'
import { converse } from '../session/converse.ts'
import { openAgent, type Agent } from './agent.ts'
import { createGatewayApi } from './gateway-api.ts'
import type { HomePaths } from './home.ts'
import { createMediaReferences } from './media-references.ts'
import type { Platform } from './platform.ts'
import { openStorage, type Storage } from './storage.ts'
import { VERSION } from './version.ts'

/** The whole gateway of one home, without its listeners: everything is built here and passed down. */
export interface House {
  readonly config: Config
  readonly paths: HomePaths
  readonly storage: Storage
  readonly agent: Agent
  readonly gateway: Gateway
  readonly webhook: WebhookChannel
  readonly metrics: Metrics
  readonly api: GatewayApi
  /** Rejects when the journal can no longer promise anything: the program has to end. */
  readonly failed: Promise<never>
  /** Recovery, then intake. */
  open(channels: readonly Channel[]): Promise<void>
  close(): Promise<void>
}

export interface HouseOptions {
  readonly config: Config
  readonly paths: HomePaths
  readonly hooks?: readonly HookSource[]
}

export async function openHouse(platform: Platform, { config, paths, hooks = [] }: HouseOptions): Promise<House> {
  if (config.storage.kind !== 'files') {
    throw new GatewayError(
      'CONFIG_INVALID',
      `storage.kind "${config.storage.kind}" is not available in this version; use "files"`,
    )
  }
  const { clock, ids, log } = platform
  const startedAt = clock.now()
  const metrics = createMetrics()
  let reportFailure: (error: Error) => void = () => undefined
  const failed = new Promise<never>((_resolve, reject) => {
    reportFailure = reject
  })
  failed.catch(() => undefined)
  const webhook = new WebhookChannel({
    clock,
    ids,
    log,
    maxFrameBytes: config.limits.frame_bytes,
    maxConnections: config.limits.connections,
    limits: {
      framesPerSecond: config.limits.frames_per_second,
      frameBurst: config.limits.frames_burst,
      framesInWork: 256,
      replyBufferBytes: config.limits.reply_buffer_bytes,
      progressEveryMs: 50,
    },
    heartbeat: { pingMs: 30_000, deadAfterMs: 90_000 },
  })
  const channels = new Map<string, Channel>([[webhook.name, webhook]])
  // First what can be wrong in the configuration: then nothing was opened that has to be closed again.
  const agent = await openAgent(platform, { config, paths, hooks })
  const storage = await openStorage(platform, {
    config,
    paths,
    hooks: agent.hooks,
    send: async (reply) => (await channels.get(reply.channel)?.deliver(reply)) ?? 'waiting',
    onJournalFailed: (error) => {
      log.error('the journal failed; nothing more is acknowledged', {
        cause: error.cause instanceof Error ? error.cause.name : 'unknown',
      })
      reportFailure(
        new GatewayError(
          'STORAGE_FAILED',
          'the disk could not make data durable; the gateway stops so that nothing is acknowledged that could be lost',
          {},
          { cause: error },
        ),
      )
    },
  })
  const gateway: Gateway = new Gateway({
    clock,
    ids,
    log,
    journal: storage.journal,
    directory: storage.directory,
    delivery: storage.delivery,
    control: storage.control,
    route: { agent: config.agent_id, scope: config.session_scope, preserveCase: config.preserve_case },
    limits: {
      queuedPerSession: config.limits.queued_per_session,
      queuedTotal: config.limits.queued_total,
      concurrentTurns: config.limits.concurrent_turns,
    },
    queueMode: config.queue.mode,
    metrics: createGatewayMetrics(metrics, ['webhook', 'xiaoyi'], {
      sessions: () => storage.directory.size,
      activity: () => gateway.activity(),
      replies: () => storage.delivery.counts(),
    }),
    converse: (message, context) =>
      converse(message, context, {
        clock,
        log,
        directory: storage.directory,
        transcripts: storage.transcripts,
        agent,
        usage: storage.usage,
        spending: config.budget,
      }),
    commands: {
      status: async (message) => describeSession(message, { agent, storage, gateway, config }),
      model: (message, name) => changeModel(message, name, { agent, storage }),
    },
    onIndexChanged: () => storage.sessionsFile.changed(),
  })
  const media = new MediaExpiry({
    files: platform.files,
    clock,
    log,
    directory: paths.media,
    limits: { maxAgeMs: config.media.max_age_ms, maxBytes: config.media.max_bytes },
    stillNeeded: createMediaReferences(platform, paths, storage),
  })
  const status = (): JsonObject => ({
    version: VERSION,
    home: paths.home,
    uptimeSeconds: Math.round((clock.now() - startedAt) / 1000),
    state: gateway.isOpen ? 'open' : 'closed',
    model: config.model.join(', '),
    queueMode: config.queue.mode,
    sessions: storage.directory.size,
    activity: gateway.activity(),
    replies: storage.delivery.counts(),
    channels: Object.fromEntries([...channels].map(([name, channel]) => [name, channel.status()])),
    providers: Object.fromEntries(agent.providers.health()),
  })
  return {
    config,
    paths,
    storage,
    agent,
    gateway,
    webhook,
    metrics,
    failed,
    api: createGatewayApi({ clock, storage, agent, gateway, status, channel: (name) => channels.get(name) }),
    async open(more) {
      for (const channel of more) channels.set(channel.name, channel)
      await gateway.open([...channels.values()])
      media.start()
    },
    async close() {
      await media.close()
      await gateway.close()
      await agent.close()
      await storage.close()
    },
  }
}

interface CommandContext {
  readonly agent: Agent
  readonly storage: Storage
}

async function describeSession(
  message: AcceptedMessage,
  { agent, storage, gateway, config }: CommandContext & { readonly gateway: Gateway; readonly config: Config },
): Promise<string> {
  const record = storage.directory.get(message.key)
  const { running, queued } = gateway.sessionActivity(message.key)
  const model = record === undefined ? config.model[0] : agent.modelsFor(record)[0].name
  return [
    `session ${message.key}`,
    `model ${model}`,
    running === null ? 'nothing runs' : 'an answer is being worked on',
    `${queued} waiting (${config.queue.mode} mode)`,
  ].join('\n')
}

/** Durable, per session, and stronger than the configuration until `/model default`. */
async function changeModel(
  message: AcceptedMessage,
  name: string,
  { agent, storage }: CommandContext,
): Promise<string> {
  const record = storage.directory.get(message.key)
  if (record === undefined) throw new GatewayError('SESSION_NOT_FOUND', 'this session does not exist any more')
  if (name === '') {
    const others = agent.providers.list().map(({ ref }) => ref)
    return [
      `This conversation uses ${agent.modelsFor(record)[0].name}.`,
      others.length === 0 ? '' : `Known models: ${others.join(', ')}`,
    ]
      .join('\n')
      .trim()
  }
  const { providerOverride: _provider, modelOverride: _model, ...rest } = record
  if (name.toLowerCase() === 'default') {
    await storage.directory.update(storage.journal, message.key, () => rest)
    storage.sessionsFile.changed()
    return 'This conversation uses the configured model again.'
  }
  let resolved: ReturnType<Agent['providers']['resolve']>
  try {
    resolved = agent.providers.resolve(name)
  } catch (error) {
    if (error instanceof GatewayError) return error.message
    throw error
  }
  const [provider = '', ...model] = resolved.ref.split('/')
  await storage.directory.update(storage.journal, message.key, () => ({
    ...rest,
    providerOverride: provider,
    modelOverride: model.join('/'),
  }))
  storage.sessionsFile.changed()
  return `This conversation now uses ${resolved.ref}.`
}
