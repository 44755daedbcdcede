import { Agent, buildConnector } from 'undici'
import { HttpFailure, type HttpClient, type HttpRequest } from '../base/http.ts'
import { Exchange } from './http-exchange.ts'
import { lookup as systemLookup, type LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import { isPublicAddress } from '../base/fetch-policy.ts'

export interface HttpClientOptions {
  /** How long an idle connection is kept for the next request. */
  readonly keepAliveMs?: number
  /** A connection still being made is given up after this, even when no caller waits for it any more. */
  readonly maxConnectMs?: number
  /** Connections to one origin. */
  readonly maxConnections?: number
  /** Bytes of an answer held for a slow reader before the peer has to wait. */
  readonly maxBufferedBytes?: number
}

export interface ClosableHttpClient extends HttpClient {
  /** Ends every connection, busy ones too. */
  close(): Promise<void>
}

/** The `HttpClient` of the running program, on undici. Two pools, so that a guarded request never meets an open socket. */
export function createHttpClient(options: HttpClientOptions = {}): ClosableHttpClient {
  const { keepAliveMs = 15_000, maxConnectMs = 60_000, maxConnections = 256, maxBufferedBytes = 256 * 1024 } = options
  // Our own timers are used: undici's are shared and up to a second late, and its defaults cut long silences.
  const shared = {
    keepAliveTimeout: keepAliveMs,
    headersTimeout: 0,
    bodyTimeout: 0,
    connections: maxConnections,
    pipelining: 1,
  }
  const open = new Agent({ ...shared, connect: { timeout: maxConnectMs } })
  const guarded = new Agent({ ...shared, connect: publicConnector(maxConnectMs) })
  return {
    async request(request, signal) {
      signal.throwIfAborted()
      const url = parseUrl(request)
      const exchange = new Exchange(request, maxBufferedBytes, signal)
      exchange.send(request.publicOnly === true ? guarded : open, url)
      return exchange.response
    },
    close: async () => {
      await Promise.all([open.destroy(), guarded.destroy()])
    },
  }
}

function parseUrl(request: HttpRequest): URL {
  const url = URL.canParse(request.url) ? new URL(request.url) : undefined
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new HttpFailure('invalid', 'the address is not an http or https URL')
  }
  if (request.publicOnly === true && isRefusedLiteral(url.hostname)) {
    throw new HttpFailure('address-refused', 'the address is not public')
  }
  return url
}

export { isPublicAddress }

/** A host as it stands in a URL: `[::1]`, `0x7f.1` and `2130706433` are addresses too. Names are not judged here. */
export function isRefusedLiteral(hostname: string): boolean {
  const bare = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname
  return ipaddr.isValid(bare) && !isPublicAddress(bare)
}

function refused(): HttpFailure {
  return new HttpFailure('address-refused', 'the address is not public')
}

/** One private answer among public ones refuses the name: which one is dialled is not ours to choose. */
export function guardLookup(lookup: typeof systemLookup): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses: readonly LookupAddress[]) => {
      if (error) return callback(error, '')
      const [first] = addresses
      if (first === undefined || !addresses.every(({ address }) => isPublicAddress(address))) {
        return callback(refused(), '')
      }
      if (options.all === true) return callback(null, [...addresses])
      return callback(null, first.address, first.family)
    })
  }
}

/**
 * A connector that reaches public addresses only. Three checks, because each alone was seen to let something through:
 * Node resolves no literals, a resolver may answer twice differently, and a socket knows whom it really reached.
 */
export function publicConnector(
  timeoutMs: number,
  lookup: typeof systemLookup = systemLookup,
): buildConnector.connector {
  const connect = buildConnector({ timeout: timeoutMs, lookup: guardLookup(lookup) })
  return (options, callback) => {
    if (isRefusedLiteral(options.hostname)) return callback(refused(), null)
    connect(options, (error, socket) => {
      if (error !== null) return callback(error, null)
      if (isPublicAddress(socket.remoteAddress ?? '')) return callback(null, socket)
      socket.destroy()
      return callback(refused(), null)
    })
  }
}
