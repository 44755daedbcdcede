import { GatewayError } from '../../core/errors.ts'
import type { Language } from './errors.ts'
import type { Credentials } from './sign.ts'

export type LinkMode = 'dual' | 'failover' | 'primary-only'
export type StreamMode = 'delta' | 'replace' | 'final-only'
/**
 * `verify`: the certificate must fit the name. `pin`: trusted on first use, a change is refused. `skip`: anything goes.
 * `plain`: `ws://` beyond this machine.
 */
export type TlsRule = 'verify' | 'pin' | 'skip' | 'plain'

/** An address of the service, and how its certificate is checked. */
export interface ServerConfig {
  readonly url: string
  readonly tls?: TlsRule
  /** The name the certificate is checked against, for an address that is an IP. */
  readonly servername?: string
}

/** `channels.xiaoyi` of the configuration file. */
export interface XiaoyiConfig extends Partial<Intervals> {
  /** Numbers are taken as their digits: configuration files turn unquoted ids into them. */
  readonly ak?: string | number
  readonly sk?: string | number
  readonly agentId?: string | number
  readonly wsUrl1?: string
  readonly wsUrl2?: string
  /** For `wsUrl1` and `wsUrl2`. */
  readonly tls?: TlsRule
  readonly servers?: readonly ServerConfig[]
  readonly links?: LinkMode
  readonly streamMode?: StreamMode
  readonly reasoning?: boolean
  readonly keepAliveText?: string
  readonly language?: Language
  readonly media?: Partial<MediaSettings>
  readonly push?: PushConfig
  readonly backoff?: Partial<BackoffSettings>
  readonly limits?: Partial<XiaoyiLimits>
}

export interface Intervals {
  /** Application heartbeat. */
  readonly heartbeatMs: number
  readonly pingMs: number
  /** Without any sign of life for so long a link is dead. */
  readonly deadAfterMs: number
  /** After a terminal frame the peer has so long to show that it is still there. */
  readonly confirmMs: number
  readonly dialTimeoutMs: number
  /** `working` goes out when a task was quiet for so long. */
  readonly keepAliveMs: number
  /** Pieces of one answer are at least this far apart. */
  readonly pieceMs: number
  /** A link that is down keeps its tasks for so long; then another link takes them. */
  readonly rerouteAfterMs: number
  readonly taskLimitMs: number
  /** `failover`: the first link must have been stable for so long before the second closes. */
  readonly failbackAfterMs: number
}

export interface BackoffSettings {
  readonly firstMs: number
  readonly maxMs: number
  readonly attempts: number
  /** Between tries after `attempts` failures, after a refusal (401, 403) and while a flapping link rests. */
  readonly slowMs: number
  /** Only a connection this old resets the counter. */
  readonly stableMs: number
}

export interface MediaSettings {
  readonly maxBytes: number
  readonly timeoutMs: number
  /** Host names and `*.suffix` patterns; empty allows every public host. */
  readonly allowHosts: readonly string[]
  readonly maxFiles: number
  /** Bytes of a text file that are given to the model. */
  readonly maxTextBytes: number
  /** Of the data parts beside a text. */
  readonly maxDataChars: number
}

export interface PushConfig {
  readonly url: string
  readonly apiId?: string
  /** The trigger's own credentials, where they differ from the channel's. */
  readonly ak?: string
  readonly sk?: string
  readonly timeoutMs?: number
  readonly maxChars?: number
}

export interface XiaoyiLimits {
  readonly maxFrameBytes: number
  readonly maxParts: number
  /** Messages being downloaded or stored at once. */
  readonly maxArrivals: number
  /** Frames held for a link that is down. */
  readonly maxHeldFrames: number
  readonly heldFrameTtlMs: number
  /** Unsent bytes of one socket above which previews wait. */
  readonly maxBufferedBytes: number
  /** Characters of one answer that are shown as a preview. */
  readonly maxPreviewChars: number
  /** Messages, control requests and sessions remembered. */
  readonly maxRemembered: number
  readonly rememberMs: number
}

export interface XiaoyiSettings extends Intervals, Credentials {
  readonly agentId: string
  readonly servers: readonly (ServerConfig & { readonly tls: TlsRule })[]
  readonly links: LinkMode
  readonly streamMode: StreamMode
  readonly reasoning: boolean
  readonly keepAliveText: string | undefined
  readonly language: Language
  readonly media: MediaSettings
  readonly push: Required<PushConfig> | undefined
  readonly backoff: BackoffSettings
  readonly limits: XiaoyiLimits
}

const INTERVALS: Intervals = {
  heartbeatMs: 20_000,
  pingMs: 30_000,
  deadAfterMs: 90_000,
  confirmMs: 10_000,
  dialTimeoutMs: 15_000,
  keepAliveMs: 20_000,
  pieceMs: 100,
  rerouteAfterMs: 5_000,
  taskLimitMs: 3_600_000,
  failbackAfterMs: 60_000,
}

const BACKOFF: BackoffSettings = { firstMs: 2_000, maxMs: 60_000, attempts: 50, slowMs: 300_000, stableMs: 10_000 }

const MEDIA: MediaSettings = {
  maxBytes: 30 * 1024 * 1024,
  timeoutMs: 30_000,
  allowHosts: [],
  maxFiles: 10,
  maxTextBytes: 64 * 1024,
  maxDataChars: 4_000,
}

const LIMITS: XiaoyiLimits = {
  maxFrameBytes: 2 * 1024 * 1024,
  maxParts: 100,
  maxArrivals: 256,
  maxHeldFrames: 256,
  heldFrameTtlMs: 60_000,
  maxBufferedBytes: 1024 * 1024,
  maxPreviewChars: 200_000,
  maxRemembered: 2_000,
  rememberMs: 600_000,
}

/** Fills in the defaults; throws `CONFIG_INVALID` for what could never connect. */
export function toXiaoyiSettings(config: XiaoyiConfig): XiaoyiSettings {
  const servers = serversOf(config)
  if (servers.length === 0) throw invalid('channels.xiaoyi needs wsUrl1 or servers')
  const { push } = config
  const credentials = { ak: required(config, 'ak'), sk: required(config, 'sk') }
  return {
    ...intervalsOf(config),
    ...credentials,
    agentId: required(config, 'agentId'),
    servers: servers.map((server) => ({ ...server, tls: tlsRuleOf(server) })),
    links: config.links ?? 'dual',
    streamMode: config.streamMode ?? 'delta',
    reasoning: config.reasoning ?? false,
    keepAliveText: config.keepAliveText,
    language: config.language ?? 'zh',
    media: { ...MEDIA, ...config.media },
    push: push && { apiId: '', timeoutMs: 10_000, maxChars: 1_000, ...credentials, ...push },
    backoff: { ...BACKOFF, ...config.backoff },
    limits: { ...LIMITS, ...config.limits },
  }
}

function required(config: XiaoyiConfig, field: 'ak' | 'sk' | 'agentId'): string {
  const value = String(config[field] ?? '')
  if (value === '') throw invalid(`channels.xiaoyi.${field} is missing`)
  return value
}

/** Huawei's own. */
const DEFAULT_SERVERS = ['wss://hag.cloud.huawei.com/openclaw/v1/ws/link', 'wss://116.63.174.231/openclaw/v1/ws/link']

/** The defaults hold only where no server is named at all: keys are never signed to an address that was not chosen. */
function serversOf({ servers, wsUrl1, wsUrl2, tls }: XiaoyiConfig): readonly ServerConfig[] {
  if (servers !== undefined) return servers
  const urls = wsUrl1 === undefined && wsUrl2 === undefined ? DEFAULT_SERVERS : [wsUrl1, wsUrl2]
  return urls.flatMap((url) =>
    url === undefined || url === '' ? [] : [{ url, ...(tls === undefined ? {} : { tls }) }],
  )
}

function tlsRuleOf(server: ServerConfig): TlsRule {
  if (!URL.canParse(server.url)) throw invalid('a XiaoYi server has a URL that cannot be read')
  const { protocol, hostname } = new URL(server.url)
  if (protocol === 'ws:') {
    if (server.tls !== 'plain' && !isLoopback(hostname)) {
      throw invalid('plain ws:// to a XiaoYi server beyond this machine needs tls: "plain"', { host: hostname })
    }
    return 'plain'
  }
  if (protocol !== 'wss:') throw invalid('a XiaoYi server URL must begin with wss://', { host: hostname })
  if (server.tls !== undefined && server.tls !== 'plain') return server.tls
  return isAddress(hostname) && server.servername === undefined ? 'pin' : 'verify'
}

/** IPv6 literals keep their brackets in a URL. */
function isAddress(hostname: string): boolean {
  return hostname.startsWith('[') || /^\d{1,3}(\.\d{1,3}){3}$/.test(hostname)
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d{1,3}){3}$/.test(hostname)
}

function intervalsOf(config: Partial<Intervals>): Intervals {
  const given = Object.entries(config).filter(([name, value]) => name in INTERVALS && value !== undefined)
  return { ...INTERVALS, ...Object.fromEntries(given) }
}

function invalid(message: string, facts = {}): GatewayError {
  return new GatewayError('CONFIG_INVALID', message, facts)
}
