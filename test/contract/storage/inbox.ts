import assert from 'node:assert/strict'
import type { RunId, SessionId } from '../../../src/core/ids.ts'
import { accept, answer, begin, KEY, messageOf, OTHER_KEY, over, overRestart, type StorageSuite } from './given.ts'

/** What every storage promises about messages until they are answered. */
export const describeInbox: StorageSuite = (name, { describe, it }, open) => {
  describe(`${name}: inbox`, () => {
    it(
      'keeps messages in the order of their acceptance until they are answered',
      over(open, async (storage) => {
        for (const run of ['one', 'two', 'three']) await accept(storage, run)
        await accept(storage, 'other', { key: OTHER_KEY, channel: 'http' })
        await answer(storage, 'two')
        const runs = async (filter?: object): Promise<readonly string[]> =>
          (await storage.inbox.open(filter)).map(({ message }) => message.run)
        assert.deepEqual(await runs(), ['one', 'three', 'other'])
        assert.deepEqual(await runs({ key: KEY }), ['one', 'three'])
        assert.deepEqual(await runs({ channel: 'http' }), ['other'])
        assert.equal(await storage.inbox.openCount(), 3)
        assert.deepEqual((await storage.inbox.find('one' as RunId))?.message, messageOf('one'))
        assert.equal(await storage.inbox.find('none' as RunId), undefined)
      }),
    )

    it(
      'recognises a copy, before and after it is answered, and writes nothing for it',
      over(open, async (storage) => {
        await accept(storage, 'one')
        const again = (): ReturnType<typeof storage.inbox.accept> =>
          storage.inbox.accept(messageOf('copy'), { fingerprint: 'print of one', session: begin(KEY, 'sess_1') })
        const open_ = await again()
        assert.deepEqual([open_.kind, open_.kind === 'duplicate' && open_.known.state], ['duplicate', 'open'])
        await answer(storage, 'one')
        const answered = await again()
        assert.equal(answered.kind === 'duplicate' && answered.known.content?.kind, 'complete')
        assert.equal(await storage.sessions.get(KEY), undefined)
        assert.equal(await storage.inbox.find('copy' as RunId), undefined)
        assert.equal((await storage.inbox.recall({ fingerprint: 'print of one' }))?.kind, 'duplicate')
        assert.equal(await storage.inbox.recall({ fingerprint: 'another' }), undefined)
      }),
    )

    it(
      'takes one of several copies that come at once',
      over(open, async (storage) => {
        const copies = ['a', 'b', 'c'].map((run) => storage.inbox.accept(messageOf(run), { fingerprint: 'same' }))
        const kinds = (await Promise.all(copies)).map(({ kind }) => kind)
        assert.deepEqual(kinds.toSorted(), ['duplicate', 'duplicate', 'fresh'])
        assert.equal(await storage.inbox.openCount(), 1)
      }),
    )

    it(
      'tells the repetition of a request from another request under its key',
      over(open, async (storage) => {
        const asked = (run: string, digest: string): ReturnType<typeof storage.inbox.accept> => {
          const idempotency = { key: 'k', digest }
          const message = messageOf(run, { idempotency, caller: { owner: 'ann', sees: 'all' } })
          const key = JSON.stringify(['webhook', 'ann', 'k'])
          return storage.inbox.accept(message, { fingerprint: run, request: { key, digest } })
        }
        assert.equal((await asked('one', 'A')).kind, 'fresh')
        const again = await asked('two', 'A')
        assert.equal(again.kind === 'duplicate' && again.known.message.run, 'one')
        assert.equal((await asked('three', 'B')).kind, 'conflict')
        assert.equal(await storage.inbox.openCount(), 1)
      }),
    )

    it(
      'begins the session with the message, or neither',
      over(open, async (storage) => {
        const session = { ...begin(KEY, 'sess_1'), fields: { lastTo: 'ann' } }
        const also = [{ kind: 'set-state', section: 'tests', key: 'k', value: true }] as const
        await storage.inbox.accept(messageOf('one'), { fingerprint: '1', session, also })
        assert.equal((await storage.sessions.get(KEY))?.lastTo, 'ann')
        assert.equal(await storage.state.get('tests', 'k'), true)
      }),
    )

    it(
      'refuses a message whose key is taken, also by one that is just beginning it',
      over(open, async (storage) => {
        const first = storage.inbox.accept(messageOf('one'), { fingerprint: '1', session: begin(KEY, 'sess_1', 'ann') })
        const joining = (run: string, joins: { rows: 'any' | 'none' } | { rows: 'own'; owner: string }) =>
          storage.inbox.accept(messageOf(run), { fingerprint: run, session: begin(KEY, 'sess_2', 'bob'), joins })
        assert.equal((await joining('two', { rows: 'own', owner: 'bob' })).kind, 'taken')
        assert.equal((await first).kind, 'fresh')
        assert.equal((await joining('three', { rows: 'own', owner: 'bob' })).kind, 'taken')
        assert.equal((await joining('four', { rows: 'none' })).kind, 'taken')
        assert.equal((await joining('five', { rows: 'own', owner: 'ann' })).kind, 'fresh')
        assert.equal((await joining('six', { rows: 'any' })).kind, 'fresh')
        assert.equal((await storage.sessions.get(KEY))?.owner, 'ann')
        assert.equal(await storage.inbox.openCount(), 3)
        const ownerless = { sessionId: 'sess_3' as SessionId, updatedAt: 1 }
        await storage.transact([{ kind: 'put-session', key: OTHER_KEY, record: ownerless }])
        const joiningOther = (run: string, joins: { rows: 'any' | 'none' } | { rows: 'own'; owner: string }) =>
          storage.inbox.accept(messageOf(run, { key: OTHER_KEY }), { fingerprint: run, joins })
        assert.equal((await joiningOther('seven', { rows: 'own', owner: 'ann' })).kind, 'taken')
        assert.equal((await joiningOther('eight', { rows: 'none' })).kind, 'taken')
        assert.equal((await joiningOther('nine', { rows: 'any' })).kind, 'fresh')
      }),
    )

    it(
      'tells that something is there for a session',
      over(open, async (storage) => {
        const heard: string[] = []
        const stop = storage.watch((notice) => {
          if (notice.kind === 'message') heard.push(notice.key)
        })
        await accept(storage, 'one')
        assert.deepEqual(heard, [KEY])
        stop()
        await accept(storage, 'two')
        assert.deepEqual(heard, [KEY])
      }),
    )

    it(
      'has after a kill what it had accepted, and blames the oldest of a session for it',
      overRestart(
        open,
        async (storage) => {
          for (const run of ['one', 'two']) await accept(storage, run)
          await answer(storage, 'one')
          await accept(storage, 'three')
        },
        async (storage) => {
          const open_ = await storage.inbox.open()
          assert.deepEqual(
            open_.map(({ message }) => message.run),
            ['two', 'three'],
          )
          const claim = await storage.ownership.claim(KEY)
          assert.deepEqual(claim?.suspects, [{ run: 'two', deaths: 1 }])
          const known = await storage.inbox.recall({ fingerprint: 'print of one' })
          assert.equal(known?.kind === 'duplicate' && known.known.content?.kind, 'complete')
        },
      ),
    )

    it(
      'blames nothing for a kill while a message waits for a person',
      overRestart(
        open,
        async (storage) => {
          const run = await accept(storage, 'one')
          await storage.transact([{ kind: 'paused', run }])
        },
        async (storage) => {
          assert.deepEqual((await storage.ownership.claim(KEY))?.suspects, [])
        },
      ),
    )
  })
}
