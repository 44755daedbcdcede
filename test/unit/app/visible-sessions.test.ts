import { expect, it } from 'vitest'
import { VisibleSessions } from '../../../src/app/visible-sessions.ts'
import type { SessionId, SessionKey } from '../../../src/core/ids.ts'
import type { Caller } from '../../../src/core/inbound.ts'
import { createMemoryStorage } from '../../../src/storage/memory/memory-storage.ts'
import type { Storage } from '../../../src/storage/storage.ts'
import { ManualClock, settle } from '../../../src/testing/manual-clock.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'

const KEY = 's' as SessionKey
const ann: Caller = { owner: 'ann', sees: 'own' }
const bob: Caller = { owner: 'bob', sees: 'own' }

async function begin(storage: Storage, owner: string): Promise<void> {
  await storage.transact([{ kind: 'begin-session', key: KEY, sessionId: 'sess_1' as SessionId, owner, touched: true }])
}

function world(isFollowed: () => boolean) {
  const storage = createMemoryStorage({ clock: new ManualClock(), ids: new SeededIds() })
  return { storage, visible: new VisibleSessions(storage, isFollowed) }
}

it('shows a conversation to its owner from its first event on', async () => {
  const { storage, visible } = world(() => true)
  await begin(storage, 'ann')
  await settle()
  expect(visible.maySee(KEY, ann)).toBe(true)
  expect(visible.maySee(KEY, bob)).toBe(false)
  expect(visible.maySee('other', { owner: 'bob', sees: 'all' })).toBe(true)
})

it('learns of one that was in use before a page was open when its first event comes', async () => {
  const { storage, visible } = world(() => false)
  await begin(storage, 'ann')
  await settle()
  expect(visible.maySee(KEY, ann)).toBe(false)
  await settle()
  expect(visible.maySee(KEY, ann)).toBe(true)
  expect(visible.maySee(KEY, bob)).toBe(false)
})

it('forgets whose a conversation was when it changes while no page follows', async () => {
  let isFollowed = true
  const { storage, visible } = world(() => isFollowed)
  await begin(storage, 'ann')
  await settle()
  isFollowed = false
  await storage.transact([{ kind: 'delete-session', key: KEY }])
  await begin(storage, 'bob')
  await settle()
  expect(visible.maySee(KEY, ann)).toBe(false)
  await settle()
  expect(visible.maySee(KEY, ann)).toBe(false)
  expect(visible.maySee(KEY, bob)).toBe(true)
})
