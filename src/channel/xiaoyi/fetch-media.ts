import type { Clock } from '../../base/clock.ts'
import { FetchRefused } from '../../base/fetch-policy.ts'
import { guardedFetch } from '../../base/guarded-fetch.ts'
import type { HttpClient } from '../../base/http.ts'
import type { FetchMedia } from './media.ts'

/**
 * The house's guarded fetch for files of messages: `https` only, at every hop from the hosts the operator allows, and
 * a file or nothing. Whoever can talk to the agent chooses these addresses.
 */
export function createMediaFetch(http: HttpClient, clock: Clock): FetchMedia {
  return async (url, { maxBytes, timeoutMs, allowHosts }, signal) => {
    // From here on a redirect to http is refused as a step down.
    if (URL.canParse(url) && new URL(url).protocol !== 'https:')
      throw new FetchRefused('scheme', 'files are fetched over https only')
    const found = await guardedFetch(http, url, { clock, maxBytes, timeoutMs, allowHosts }, signal)
    if (found.status !== 200) throw new FetchRefused('network', `the file is not there (status ${found.status})`)
    return { bytes: found.bytes, mimeType: found.mediaType }
  }
}
