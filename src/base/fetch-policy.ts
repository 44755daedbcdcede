import ipaddr from 'ipaddr.js'
import { withoutTrailing } from './text.ts'

/** Why an address was not fetched, or its answer not used. */
export type FetchRefusal =
  | 'invalid-url'
  | 'scheme'
  | 'credentials'
  | 'port'
  | 'address'
  | 'host'
  | 'redirects'
  | 'downgrade'
  | 'too-large'
  | 'timeout'
  | 'encoding'
  | 'status'
  | 'network'

/** Its message is for a person or a model, and holds neither query strings nor credentials. */
export class FetchRefused extends Error {
  readonly reason: FetchRefusal
  constructor(reason: FetchRefusal, message: string) {
    super(message)
    this.name = 'FetchRefused'
    this.reason = reason
  }
}

export interface UrlPolicy {
  /** Others are where mail servers, databases and admin panels listen. */
  readonly ports: readonly number[]
  readonly maxUrlChars: number
  /** Only these, `*.example.com` for all below one; every public host when empty. */
  readonly allowHosts: readonly string[]
  /** Hosts of this machine or network that the operator allows by their exact names, whatever the port. */
  readonly privateHosts: readonly string[]
}

export const URL_POLICY: UrlPolicy = {
  ports: [80, 443, 8000, 8080, 8443],
  maxUrlChars: 4096,
  allowHosts: [],
  privateHosts: [],
}

export const NOT_PUBLIC = 'the address is not on the public internet'

/** Names that mean this machine or this network, whatever DNS says. */
const LOCAL_NAMES = [
  'localhost',
  'local',
  'internal',
  'intranet',
  'lan',
  'home',
  'corp',
  'private',
  'home.arpa',
  'localdomain',
]

/** Tabs and line ends are dropped and backslashes turned by the URL parser: an address that holds them is meant to be misread. */
// oxlint-disable-next-line no-control-regex
const MISLEADING = /[\u0000-\u0020\u007f\\]/

/**
 * The first of two guards: what the letters of a URL give away, after the parser has turned `0x7f.1`, `2130706433`,
 * `0177.0.0.1` and `１２７.０.０.１` into the addresses they are. The second, at the socket (`publicOnly`), judges what
 * names resolve to.
 */
export function checkUrl(text: string, policy: UrlPolicy = URL_POLICY): URL {
  if (text.length > policy.maxUrlChars) throw new FetchRefused('invalid-url', 'the address is too long')
  if (MISLEADING.test(text) || !URL.canParse(text)) throw new FetchRefused('invalid-url', 'this is not a web address')
  const url = new URL(text)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new FetchRefused('scheme', 'only http and https addresses can be fetched')
  }
  if (url.username !== '' || url.password !== '' || /^[a-z]+:\/*[^/?#]*@/i.test(text)) {
    throw new FetchRefused('credentials', 'an address must not contain a user name or password')
  }
  if (isPrivateAllowed(url, policy)) return url
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port)
  if (!policy.ports.includes(port)) throw new FetchRefused('port', `port ${port} is not allowed`)
  if (!isPublicHost(url.hostname)) throw new FetchRefused('address', NOT_PUBLIC)
  if (!isAllowedHost(url.hostname, policy.allowHosts)) throw new FetchRefused('host', 'this host is not allowed')
  return url
}

export function isPrivateAllowed({ hostname }: URL, { privateHosts }: Pick<UrlPolicy, 'privateHosts'>): boolean {
  return privateHosts.some((name) => name.toLowerCase() === hostname.toLowerCase())
}

function isAllowedHost(hostname: string, allowed: readonly string[]): boolean {
  const name = withoutTrailing(hostname, '.').toLowerCase()
  return (
    allowed.length === 0 ||
    allowed.some((pattern) => {
      const host = pattern.toLowerCase()
      return host.startsWith('*.') ? name.endsWith(host.slice(1)) : name === host
    })
  )
}

/** For literals the whole answer; for names only what the name itself says. */
export function isPublicHost(hostname: string): boolean {
  const bare = hostname.startsWith('[') ? hostname.slice(1, -1) : withoutTrailing(hostname, '.').toLowerCase()
  if (ipaddr.isValid(bare)) return isPublicAddress(bare)
  if (!bare.includes('.')) return false
  return !LOCAL_NAMES.some((name) => bare === name || bare.endsWith(`.${name}`))
}

/** True for addresses of the open internet: not loopback, private, link-local, CGNAT, NAT64, documentation … */
export function isPublicAddress(address: string): boolean {
  // A zone (`fe80::1%eth0`) exists on local addresses only.
  if (address.includes('%') || !ipaddr.isValid(address)) return false
  // `process` unwraps ::ffff:127.0.0.1; other embeddings (6to4, NAT64, Teredo) have ranges of their own.
  const parsed = ipaddr.process(address)
  if (parsed.range() !== 'unicast') return false
  // Only 2000::/3 is assigned for global use; what lies outside (::127.0.0.1 is ::7f00:1) counts as unicast too.
  return parsed.kind() === 'ipv4' || ((parsed.toByteArray()[0] ?? 0) & 0xe0) === 0x20
}

/** For logs and messages: where, without the parts that carry tokens. */
export function shownUrl(url: URL): string {
  return `${url.protocol}//${url.host}${url.pathname}`
}
