import assert from 'node:assert/strict'
import type { Owner } from '../../../src/core/change.ts'
import type { RunId, SessionId } from '../../../src/core/ids.ts'
import type { Storage } from '../../../src/storage/storage.ts'
import { NEVER } from '../../../src/base/async.ts'
import { accept, answer, begin, KEY, OTHER_KEY, over, type StorageSuite } from './given.ts'

async function claim(storage: Storage, key = KEY): Promise<Owner> {
  const claimed = await storage.ownership.claim(key)
  if (claimed === undefined) throw new Error('nothing else holds the session')
  return claimed.owner
}

const text = (content: string) =>
  ({
    type: 'message',
    message: { role: 'user', content, timestamp: 1, provenance: { kind: 'external_user' } },
  }) as const

/** What every storage promises about who may write for a session. */
export const describeOwnership: StorageSuite = (name, { describe, it }, open) => {
  describe(`${name}: ownership`, () => {
    it(
      'is the same for one that asks again, and another after it was given back',
      over(open, async (storage) => {
        const first = await claim(storage)
        assert.deepEqual(await claim(storage), first)
        assert.equal(storage.ownership.isCurrent(first), true)
        await storage.ownership.release(first)
        assert.equal(storage.ownership.isCurrent(first), false)
        const second = await claim(storage)
        assert.ok(second.epoch > first.epoch)
        await storage.ownership.release(first)
        assert.equal(storage.ownership.isCurrent(second), true)
      }),
    )

    it(
      'is taken over at once, and what was held before then is void only when another held it',
      over(open, async (storage) => {
        const first = await storage.ownership.takeOver(KEY)
        assert.deepEqual(await claim(storage), first)
        assert.deepEqual(await storage.ownership.takeOver(KEY), first)
        await accept(storage, 'one')
        await storage.transact([begin(KEY, 'sess_1'), { kind: 'raise-epoch', key: KEY }], first)
        await assert.rejects(storage.transact([{ kind: 'reset-done', run: 'one' as RunId }], first), {
          code: 'OWNERSHIP_LOST',
        })
        const second = await storage.ownership.takeOver(KEY)
        assert.ok(second.epoch > first.epoch)
        await storage.transact([{ kind: 'reset-done', run: 'one' as RunId }], second)
        assert.equal((await storage.inbox.find('one' as RunId))?.resetDone, true)
      }),
    )

    it(
      'lets its holder write until the epoch is raised, and nothing from then on',
      over(open, async (storage) => {
        const owner = await claim(storage)
        await accept(storage, 'one')
        await storage.transact([begin(KEY, 'sess_1')], owner)
        const before = storage.transact([{ kind: 'change-session', key: KEY, fields: { title: 'mine' } }], owner)
        const raising = storage.transact([{ kind: 'raise-epoch', key: KEY }])
        const after = storage.transact([{ kind: 'change-session', key: KEY, fields: { title: 'late' } }], owner)
        await assert.rejects(after, { code: 'OWNERSHIP_LOST' })
        await Promise.all([before, raising])
        assert.equal((await storage.sessions.get(KEY))?.title, 'mine')
        assert.equal(storage.ownership.isCurrent(owner), false)
        const next = await claim(storage)
        assert.ok(next.epoch > owner.epoch)
        await storage.transact([{ kind: 'change-session', key: KEY, fields: { title: 'next' } }], next)
        assert.equal((await storage.sessions.get(KEY))?.title, 'next')
      }),
    )

    it(
      'is of one session: another goes on',
      over(open, async (storage) => {
        const [one, two] = [await claim(storage), await claim(storage, OTHER_KEY)]
        await storage.transact([{ kind: 'raise-epoch', key: KEY }])
        assert.equal(storage.ownership.isCurrent(one), false)
        await storage.transact([begin(OTHER_KEY, 'sess_2')], two)
        assert.equal(await storage.sessions.count(), 1)
      }),
    )

    it(
      'is asked of an append too: entries and changes of a void owner are not stored',
      over(open, async (storage) => {
        const owner = await claim(storage)
        const transcript = await storage.transcripts.open('sess_1' as SessionId, NEVER)
        const changes = [begin(KEY, 'sess_1')]
        await transcript.append([text('one')], { changes, owner })
        await storage.transact([{ kind: 'raise-epoch', key: KEY }])
        const late = transcript.append([text('two')], {
          changes: [{ kind: 'change-session', key: KEY, fields: { title: 'late' } }],
          owner,
        })
        await assert.rejects(late, { code: 'OWNERSHIP_LOST' })
        await assert.rejects(transcript.append([text('three')], { owner }), { code: 'OWNERSHIP_LOST' })
        await transcript.append([text('four')], { owner: await claim(storage) })
        const { messages } = await transcript.context()
        assert.deepEqual(
          messages.map((message) => 'content' in message && message.content),
          ['one', 'four'],
        )
        assert.equal((await storage.sessions.get(KEY))?.title, undefined)
        await transcript.close()
      }),
    )

    it(
      'finds the sessions that nothing works on',
      over(open, async (storage) => {
        await accept(storage, 'one', { key: OTHER_KEY })
        await accept(storage, 'two')
        await accept(storage, 'three', { key: OTHER_KEY })
        assert.deepEqual(await storage.ownership.unclaimed(10), [OTHER_KEY, KEY])
        assert.deepEqual(await storage.ownership.unclaimed(1), [OTHER_KEY])
        const owner = await claim(storage)
        assert.deepEqual(await storage.ownership.unclaimed(10), [OTHER_KEY])
        await storage.ownership.release(owner)
        await answer(storage, 'two')
        assert.deepEqual(await storage.ownership.unclaimed(10), [OTHER_KEY])
      }),
    )

    it(
      'tells of a raised epoch',
      over(open, async (storage) => {
        const heard: string[] = []
        storage.watch((notice) => {
          if (notice.kind === 'session') heard.push(notice.key)
        })
        await claim(storage)
        await storage.transact([{ kind: 'raise-epoch', key: KEY }])
        assert.deepEqual(heard, [KEY])
      }),
    )
  })
}
