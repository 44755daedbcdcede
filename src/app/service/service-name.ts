import { createHash } from 'node:crypto'
import { basename } from 'node:path'

const HASH_CHARS = 6

/** One name per home, so that several gateways of one machine do not share a service; the default home has the plain name. */
export function serviceName(home: string, defaultHome: string): string {
  if (home === defaultHome) return 'clew'
  const words = basename(home)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/gu, '-')
    .replaceAll(/^-|-$/gu, '')
  const hash = createHash('sha256').update(home).digest('hex').slice(0, HASH_CHARS)
  return ['clew', ...(words === '' ? [] : [words.slice(0, 40)]), hash].join('-')
}
