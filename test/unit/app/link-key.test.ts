import { afterEach, expect, it } from 'vitest'
import { shareLinkKey } from '../../../src/app/link-key.ts'
import { FileLinks } from '../../../src/channel/files/file-links.ts'
import { systemClock, systemIds } from '../../../src/platform/system.ts'
import { createMemoryStorage } from '../../../src/storage/memory/memory-storage.ts'
import type { Storage } from '../../../src/storage/storage.ts'
import { openTestNode } from '../../support/postgres-storage.ts'
import { freshSchema } from '../../support/test-database.ts'

const ID = `file_${'0'.repeat(32)}`
const closing: { close(): Promise<void> }[] = []

afterEach(async () => {
  for (const one of closing.splice(0)) await one.close()
})

async function linksOver(storage: Storage): Promise<FileLinks> {
  const links = new FileLinks({ clock: systemClock, key: systemIds.hex(64), validMs: 60_000 })
  await shareLinkKey(links, storage, systemIds)
  return links
}

const reads = (asked: FileLinks, signed: FileLinks): boolean =>
  asked.fileOf(new URL(signed.urlOf(ID), 'http://localhost')) === ID

it('an address that one node signed is good at every node, also of those that start at once', async () => {
  const schema = freshSchema()
  const nodes = await Promise.all([1, 2, 3].map(() => openTestNode(schema)))
  closing.push(...nodes)
  const [first, second, third] = await Promise.all(nodes.map(linksOver))
  const later = await openTestNode(schema)
  closing.push(later)
  const all = [first!, second!, third!, await linksOver(later)]
  expect(all.flatMap((asked) => all.map((signed) => reads(asked, signed)))).not.toContain(false)
})

it('one process signs for itself', async () => {
  const storage = createMemoryStorage({ clock: systemClock, ids: systemIds })
  const [before, after] = [await linksOver(storage), await linksOver(storage)]
  expect(reads(before, before)).toBe(true)
  expect(reads(after, before)).toBe(false)
})
