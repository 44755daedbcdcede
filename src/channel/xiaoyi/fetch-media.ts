import type { Clock } from '../../base/clock.ts'
import { FetchRefused } from '../../base/fetch-policy.ts'
import { guardedFetch } from '../../base/guarded-fetch.ts'
import type { HttpClient } from '../../base/http.ts'
import type { FetchMedia } from './media.ts'

/**
 * The house's guarded fetch for files of messages: `https` only, from the hosts the operator allows, and a file or
 * nothing. Whoever can talk to the agent chooses these addresses.
 */
export function createMediaFetch(http: HttpClient, clock: Clock): FetchMedia {
  return async (url, { maxBytes, timeoutMs, allowHosts }, signal) => {
    requireAllowed(url, allowHosts)
    const found = await guardedFetch(http, url, { clock, maxBytes, timeoutMs }, signal)
    // A redirect may have led elsewhere; what it found there is not used.
    requireAllowed(found.url, allowHosts)
    if (found.status !== 200) throw new FetchRefused('network', `the file is not there (status ${found.status})`)
    return { bytes: found.bytes, mimeType: found.mediaType }
  }
}

function requireAllowed(address: string, allowHosts: readonly string[]): void {
  if (!URL.canParse(address)) throw new FetchRefused('invalid-url', 'this is not a web address')
  const { protocol, hostname } = new URL(address)
  if (protocol !== 'https:') throw new FetchRefused('scheme', 'files are fetched over https only')
  if (allowHosts.length > 0 && !allowHosts.some((pattern) => matches(hostname, pattern))) {
    throw new FetchRefused('address', 'files are not fetched from this host')
  }
}

/** `*.example.com` means every name below it, not itself. */
function matches(hostname: string, pattern: string): boolean {
  const wanted = pattern.toLowerCase()
  return wanted.startsWith('*.') ? hostname.endsWith(wanted.slice(1)) : hostname === wanted
}
