import type { Clock } from '../../base/clock.ts'
import { FetchRefused, isPrivateAllowed, isPublicHost } from '../../base/fetch-policy.ts'
import { guardedFetch } from '../../base/guarded-fetch.ts'
import type { HttpClient } from '../../base/http.ts'
import type { FetchMedia } from './media.ts'

/**
 * The guarded fetch for files of messages: `https` only, at every hop from the hosts the operator allows, and
 * a file or nothing. The people who talk to the agent choose these addresses.
 */
export function createMediaFetch(http: HttpClient, clock: Clock): FetchMedia {
  return async (url, { maxBytes, timeoutMs, allowHosts }, signal) => {
    const privateHosts = allowHosts.filter((host) => !host.startsWith('*') && !isPublicHost(host))
    const publicHosts = allowHosts.filter((host) => !privateHosts.includes(host))
    const isPrivate = URL.canParse(url) && isPrivateAllowed(new URL(url), { privateHosts })
    // From here on a redirect to http is refused as a step down.
    if (!isPrivate && URL.canParse(url) && new URL(url).protocol !== 'https:')
      throw new FetchRefused('scheme', 'files are fetched over https only')
    const limits = { clock, maxBytes, timeoutMs, allowHosts: publicHosts, privateHosts }
    const found = await guardedFetch(http, url, limits, signal)
    if (found.status !== 200) throw new FetchRefused('status', `the file is not there (status ${found.status})`)
    return { bytes: found.bytes, mimeType: found.mediaType }
  }
}
