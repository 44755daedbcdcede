import { errnoOf } from '../base/files.ts'
import type { Peer } from '../base/http.ts'
import type { Channel } from '../channel/channel.ts'
import { HubLink, isOwnAddress } from '../channel/webhook/dial.ts'
import type { Config } from '../config/config.ts'
import { PageFiles } from '../dashboard/page-files.ts'
import { answerSignIn } from '../dashboard/routes.ts'
import { Access, type AccessRules, type Principal, type TokenRule } from '../gateway/access.ts'
import { A2A_DOORS, answerAgentCard, createA2aRoutes } from '../gateway/a2a-routes.ts'
import { showHeldBytes } from '../gateway/gateway-metrics.ts'
import { answerSignedFile, createFileRoutes } from '../gateway/file-routes.ts'
import { createHttpHandlers } from '../gateway/http.ts'
import { createMessageRoutes } from '../gateway/message-routes.ts'
import { createOpenAiRoutes, OPENAI_DOOR } from '../gateway/openai-routes.ts'
import { a2aRouteDeps, isA2aOpen } from './channels.ts'
import { contactUrl, PROTOCOL, removeContact, writeContact } from './contact.ts'
import type { GatewayApp } from './gateway-app.ts'
import { FAR_OVER, openDoor, type Door } from './door.ts'
import { loadAhead } from './load-ahead.ts'
import type { Platform } from './platform.ts'
import { readOrCreateUid } from './home.ts'

export interface Serving {
  readonly port: number
  readonly url: string
  /** Opens the dashboard once, without the token; undefined where none is needed. */
  readonly signInUrl?: string
  /** Stops intake, lets running turns finish until the deadline, then ends everything in order. */
  stop(deadline: AbortSignal): Promise<void>
}

const LOCAL_TOKEN_DIGITS = 64

/** The tokens of a configuration; the single one without a name may do everything, as it always could. */
function tokensOf({ listen: { token, tokens } }: Config): readonly TokenRule[] {
  const single: TokenRule[] = token === undefined ? [] : [{ token, sees: 'all', admin: true }]
  const named = Object.entries(tokens).map(([name, { token: secret, sessions, admin }]): TokenRule => {
    return { name, token: secret, sees: sessions ?? (admin ? 'all' : 'own'), admin }
  })
  return [...single, ...named]
}

/** Whom a token stands for, with everything the access rules say about wrong ones. */
function principalOf(access: Access, token: string, request: Request, peer: Peer): Principal | undefined {
  const headers = new Headers(request.headers)
  headers.set('authorization', `Bearer ${token}`)
  const decision = access.decide({ method: request.method, url: new URL(request.url), headers, peer })
  return decision.allowed ? decision.principal : undefined
}

/**
 * Opens the address first, unless it is open already: a port in use must not cost a recovery. Then intake, then the
 * contact file for the CLI.
 */
export async function serve(app: GatewayApp, outside: Platform, door?: Door): Promise<Serving> {
  const { config, paths, metrics, gateway, log } = app
  const platform = { ...outside, log }
  const { host } = config.listen
  const localToken = platform.ids.hex(LOCAL_TOKEN_DIGITS)
  const rulesOf = (now: Config): AccessRules => {
    return { tokens: tokensOf(now), localToken, allowedOrigins: now.listen.allowed_origins, host }
  }
  const { signIn } = app.dashboard
  const signedIn = (headers: Headers): Principal | undefined => signIn.holderOf(headers)?.principal
  const { wrong_tokens: burst, wrong_token_addresses: addresses } = config.limits
  const wrongTokens = { burst, addresses }
  const access = new Access(rulesOf(config), { clock: platform.clock, signedIn, wrongTokens })
  app.live.onChange((now) => access.useRules(rulesOf(now)))
  const listener = door ?? (await openDoor(platform, config))
  listener.use(handlersOf(app, platform, access))
  showHeldBytes(metrics, () => ({ ...listener.held(), ...app.home.heldBytes() }))
  const links = await openIntake(app, platform, { port: listener.port, localToken }).catch(async (error: unknown) => {
    await listener.close()
    throw error
  })
  return {
    port: listener.port,
    url: contactUrl({ host, port: listener.port }, 'http'),
    ...(tokensOf(config).length === 0
      ? {}
      : {
          signInUrl: `${contactUrl({ host, port: listener.port }, 'http')}/#code=${signIn.createCode({ sees: 'all', admin: true })}`,
        }),
    async stop(deadline) {
      await gateway.drain(deadline)
      await links.close()
      // A file that stays is recognised by its dead process; it must not keep what is durable from being closed.
      await removeContact(platform.files, paths.contact, platform.processes).catch((error: unknown) => {
        platform.log.warn('gateway.json could not be removed', { errno: errnoOf(error) })
      })
      await app.close()
      await listener.close()
    },
  }
}

/** Every address of the gateway: doors for programs, the dashboard with its pages, and health and metrics. */
function handlersOf(app: GatewayApp, platform: Platform, access: Access): ReturnType<typeof createHttpHandlers> {
  const { config, api, webhook, http, openai, files, links, metrics, dashboard } = app
  const { signIn } = dashboard
  const page = platform.page === undefined ? undefined : new PageFiles(platform.files, platform.page)
  const a2a = isA2aOpen(config) ? a2aRouteDeps(platform, config, { channel: app.a2a, access }) : undefined
  return createHttpHandlers({
    access,
    routes: [
      ...createMessageRoutes(http, access),
      ...createOpenAiRoutes(openai, access),
      ...createFileRoutes(files, access),
      ...(a2a === undefined ? [] : createA2aRoutes(a2a)),
      ...dashboard.routes,
    ],
    doors: [OPENAI_DOOR, ...(a2a === undefined ? [] : A2A_DOORS)],
    open: async (request, url) =>
      (a2a === undefined ? undefined : answerAgentCard(request, url, a2a)) ??
      (await answerSignedFile(request, url, { store: files, links })),
    signIn: (request, peer) => answerSignIn(request, signIn, (token) => principalOf(access, token, request, peer)),
    ...(page === undefined ? {} : { page: (request, url) => page.answer(request, url) }),
    api,
    webhook,
    metrics,
    log: platform.log,
    now: () => platform.clock.now(),
  })
}

/** Recovery, channels, then the file by which commands find us: who reads it may connect. */
async function openIntake(
  app: GatewayApp,
  platform: Platform,
  { port, localToken }: { readonly port: number; readonly localToken: string },
): Promise<Links> {
  const { config, paths } = app
  await loadAhead({ config, agent: app.agent.current }, platform)
  const links = await openLinks(app, platform, port)
  await app.open(links.channels)
  links.start()
  const reach = { host: config.listen.host, port, protocol: PROTOCOL, token: localToken }
  const contact = { process: platform.processes.self, ...reach }
  try {
    await writeContact(platform, paths.contact, contact)
  } catch (error) {
    await links.close()
    throw error
  }
  return links
}

interface Links {
  readonly channels: readonly Channel[]
  start(): void
  close(): Promise<void>
}

/** Loaded only when it is switched on. */
async function openXiaoyi(
  platform: Platform,
  { config, paths, storage, disk: files, home, agent, dashboard }: GatewayApp,
): Promise<Channel | undefined> {
  const { openXiaoyiChannel } = await import('./xiaoyi-channel.ts')
  return openXiaoyiChannel({ ...platform, files }, config, paths, {
    state: home.xiaoyi,
    hooks: agent.current.hooks,
    storage,
    onLink: (channel, row) => dashboard.linkChanged(channel, row),
  })
}

async function openLinks(app: GatewayApp, platform: Platform, port: number): Promise<Links> {
  const { config, paths, webhook } = app
  const { webhook_url: hubUrl } = config
  const hub =
    hubUrl === undefined || isOwnAddress(hubUrl, { host: config.listen.host, port })
      ? undefined
      : new HubLink(webhook, {
          dialer: platform.dialer,
          clock: platform.clock,
          ids: platform.ids,
          log: platform.log.child({ channel: 'webhook' }),
          url: hubUrl,
          uid: config.uid ?? (await readOrCreateUid(platform, paths.uid)),
          maxFrameBytes: Math.ceil(config.limits.frame_bytes * FAR_OVER),
          connectTimeoutMs: 10_000,
          backoff: {
            firstMs: config.channels.webhook.backoff.first_ms,
            maxMs: config.channels.webhook.backoff.max_ms,
            jitter: 0.2,
          },
          healthyAfterMs: config.channels.webhook.backoff.stable_ms,
          onChanged: (row) => app.dashboard.linkChanged('webhook', row),
        })
  if (hub !== undefined) webhook.useHub(hub)
  const xiaoyi = config.channels.xiaoyi.enabled ? await openXiaoyi(platform, app) : undefined
  return {
    channels: xiaoyi === undefined ? [] : [xiaoyi],
    start: () => hub?.start(),
    close: async () => hub?.close(),
  }
}
