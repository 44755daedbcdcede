import { lookup as systemLookup, type LookupAddress } from 'node:dns'
import type { LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import { buildConnector } from 'undici'
import { isPublicAddress } from '../base/fetch-policy.ts'
import { HttpFailure } from '../base/http.ts'

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
