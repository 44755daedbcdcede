import type { Ids } from '../base/ids.ts'
import type { FileLinks } from '../channel/files/file-links.ts'
import type { Storage } from '../storage/storage.ts'

const SECTION = 'links'
export const LINK_KEY_DIGITS = 64

/**
 * Addresses of files are good at every node: behind a balancer the one that is asked is seldom the one that signed. Nodes
 * that start at once store a key each, and all of them sign with the one that was stored first.
 */
export async function shareLinkKey(
  links: FileLinks,
  storage: Pick<Storage, 'state' | 'tell' | 'transact'>,
  ids: Ids,
): Promise<void> {
  if (storage.tell === undefined) return
  const known = await firstKey(storage)
  if (known === undefined)
    await storage.transact([{ kind: 'set-state', section: SECTION, key: ids.hex(8), value: ids.hex(LINK_KEY_DIGITS) }])
  const key = known ?? (await firstKey(storage))
  if (key !== undefined) links.useKey(key)
}

async function firstKey({ state }: Pick<Storage, 'state'>): Promise<string | undefined> {
  const [first] = await state.entries(SECTION)
  return typeof first?.[1] === 'string' ? first[1] : undefined
}
