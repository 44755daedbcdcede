import type { Clock } from '../base/clock.ts'
import type { JsonObject } from '../base/json.ts'
import type { Channel } from '../channel/channel.ts'
import type { Config } from '../config/config.ts'
import type { Channels } from '../gateway/delivery.ts'
import type { Gateway } from '../gateway/gateway.ts'
import type { Sessions } from '../session/sessions.ts'
import type { ProviderLoad } from '../session/turn-slots.ts'
import type { LiveAgent } from './agent.ts'
import type { HomePaths } from './home.ts'
import type { HomeStorage } from './storage.ts'
import { mcpStatus } from './tools.ts'
import { VERSION } from '../platform/own-folder.ts'

export interface StatusDeps {
  readonly clock: Clock
  config(): Config
  readonly paths: HomePaths
  readonly home: HomeStorage
  readonly agent: LiveAgent
  readonly gateway: Gateway
  readonly sessions: Sessions
  readonly channels: Channels
}

/** What `clew status` and `GET /api/status` show; the time since the call counts as uptime. */
export function createStatus(deps: StatusDeps): () => Promise<JsonObject> {
  const { clock, paths, home, agent, gateway, sessions, channels } = deps
  const { sessions: rows, outbox } = home.storage
  const startedAt = clock.monotonic()
  return async () => {
    const config = deps.config()
    return {
      version: VERSION,
      home: paths.home,
      uptimeSeconds: Math.round((clock.monotonic() - startedAt) / 1000),
      state: gateway.state,
      model: config.model.join(', '),
      queueMode: config.queue.mode,
      language: config.language,
      sessions: await rows.count(),
      activity: { ...sessions.activity() },
      replies: await outbox.counts(),
      poisoned: (await outbox.failedWith('MESSAGE_POISONED')).map(({ message, deaths = 0 }) => ({
        run: message.run,
        session: message.key,
        deaths,
      })),
      storage: { ...home.losses },
      channels: Object.fromEntries(channels.all().map((channel) => [channel.name, statusOf(channel)])),
      providers: providerStatus(agent, sessions),
      learnedWindows: home.windows.list().map((learned) => ({ ...learned })),
      mcp: { servers: mcpStatus(agent.current.toolbox.mcp) },
    }
  }
}

/** A channel of a plugin may throw: everything else is shown all the same. */
function statusOf(channel: Channel): JsonObject {
  try {
    return channel.status()
  } catch (error) {
    return { failed: error instanceof Error ? error.name : typeof error }
  }
}

const IDLE: ProviderLoad = { running: 0, waiting: 0, slowestMs: 0 }

/** Which provider is slow or failing: what runs and waits there, how long the oldest turn takes, what failed last. */
function providerStatus(agent: LiveAgent, sessions: Sessions): JsonObject {
  const load = sessions.providerLoad()
  const health = agent.current.providers.health()
  return Object.fromEntries(
    [...agent.current.providers.names()].map((name) => {
      const { circuit, lastFailure } = health.get(name) ?? { circuit: 'closed' }
      const failure = lastFailure === undefined ? {} : { lastFailure: { ...lastFailure } }
      return [name, { circuit, ...(load.get(name) ?? IDLE), ...failure }]
    }),
  )
}
