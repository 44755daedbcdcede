import assert from 'node:assert/strict'
import type { SessionId, SessionKey } from '../../../src/core/ids.ts'
import type { SessionRecord } from '../../../src/core/inbound.ts'
import { begin, KEY, OTHER_KEY, over, overRestart, type StorageSuite } from './given.ts'

const keyOf = (name: string): SessionKey => name as SessionKey

/** What every storage promises about the rows of conversations. */
export const describeSessions: StorageSuite = (name, { describe, it }, open) => {
  describe(`${name}: sessions`, () => {
    it(
      'begin once: a second beginning changes the row and keeps its id and owner',
      over(open, async (storage) => {
        await storage.transact([{ ...begin(KEY, 'sess_1'), fields: { lastChannel: 'webhook' } }])
        await storage.transact([{ ...begin(KEY, 'sess_2', 'bob'), fields: { lastChannel: 'http' } }])
        const row = await storage.sessions.get(KEY)
        assert.deepEqual(
          { id: row?.sessionId, owner: row?.owner, channel: row?.lastChannel },
          { id: 'sess_1', owner: 'ann', channel: 'http' },
        )
      }),
    )

    it(
      'change only what a change names: fields, missing ones, counts, removals',
      over(open, async (storage) => {
        await storage.transact([begin(KEY, 'sess_1')])
        await storage.transact([
          {
            kind: 'change-session',
            key: KEY,
            fields: { preview: 'one' },
            defaults: { title: 'first' },
            added: { messages: 2 },
          },
        ])
        await storage.transact([
          {
            kind: 'change-session',
            key: KEY,
            defaults: { title: 'second' },
            added: { messages: 1 },
            removed: ['preview'],
          },
        ])
        const row = await storage.sessions.get(KEY)
        assert.deepEqual([row?.title, row?.messages, row?.preview], ['first', 3, undefined])
        await storage.transact([{ kind: 'change-session', key: OTHER_KEY, fields: { title: 'none' } }])
        assert.equal(await storage.sessions.get(OTHER_KEY), undefined)
      }),
    )

    it(
      'go on with fields of a wrong type, which count as not there',
      over(open, async (storage) => {
        const odd = {
          sessionId: 'sess_1' as SessionId,
          updatedAt: 1,
          title: 7,
          preview: {},
          messages: 'many',
          contextTokens: [],
          archived: [1, 'x'],
          deliveryContext: 'phone',
          lastChannel: true,
          color: 'blue',
        } as unknown as SessionRecord
        await storage.transact([{ kind: 'put-session', key: KEY, record: odd }])
        const expected = { sessionId: 'sess_1', archived: [], color: 'blue' }
        const seen = async (): Promise<unknown> => {
          const { updatedAt: _, ...fields } = (await storage.sessions.resolve(KEY))?.record ?? {}
          return fields
        }
        assert.deepEqual(await seen(), expected)
        assert.equal((await storage.sessions.list({ limit: 10, search: 'nothing' })).total, 0)
        await storage.transact([{ kind: 'change-session', key: KEY, fields: { title: 'one' }, added: { messages: 2 } }])
        assert.deepEqual(await seen(), { ...expected, title: 'one', messages: 2 })
      }),
    )

    it(
      'are found by the marks of a resent history, changed last first, of one owner or of all',
      over(open, async (storage) => {
        const chat = (root: string, last: string): object => ({ fields: { chat: { root, last } }, touched: true })
        await storage.transact([{ ...begin(keyOf('one'), 'sess_1'), ...chat('r', 'l1') }])
        await storage.transact([{ ...begin(keyOf('two'), 'sess_2', 'bob'), ...chat('r', 'l2') }])
        await storage.transact([{ ...begin(keyOf('three'), 'sess_3'), ...chat('other', 'l3') }])
        await storage.transact([{ kind: 'change-session', key: keyOf('one'), ...chat('r', 'l4') }])
        const keys = async (kind: 'root' | 'last', value: string, owner?: string): Promise<readonly string[]> => {
          const caller = { owner: owner ?? '', sees: owner === undefined ? 'all' : 'own' } as const
          return (await storage.sessions.marked({ kind, value }, caller, 2)).map(({ key }) => key)
        }
        assert.deepEqual(await keys('root', 'r'), ['one', 'two'])
        assert.deepEqual(await keys('root', 'r', 'bob'), ['two'])
        assert.deepEqual(await keys('last', 'l1'), [])
        assert.deepEqual(await keys('last', 'l4'), ['one'])
        await storage.transact([{ kind: 'delete-session', key: keyOf('one') }])
        assert.deepEqual(await keys('root', 'r'), ['two'])
      }),
    )

    it(
      'are found by key, by another case of it, and by id',
      over(open, async (storage) => {
        await storage.transact([begin(keyOf('Agent:Ann'), 'sess_1'), begin(keyOf('agent:bob'), 'sess_2')])
        assert.equal((await storage.sessions.resolve(' Agent:Ann '))?.key, 'Agent:Ann')
        assert.equal((await storage.sessions.resolve('AGENT:BOB'))?.key, 'agent:bob')
        assert.equal((await storage.sessions.byId('sess_2'))?.key, 'agent:bob')
        assert.equal(await storage.sessions.resolve('agent:eve'), undefined)
        assert.equal(await storage.sessions.byId('sess_9'), undefined)
      }),
    )

    it(
      'are listed newest first, in pages that neither repeat nor skip',
      over(open, async (storage) => {
        for (let i = 0; i < 5; i++) await storage.transact([begin(keyOf(`k${i}`), `sess_${i}`)])
        await storage.transact([{ kind: 'change-session', key: keyOf('k1'), touched: true }])
        const time = (await storage.sessions.get(keyOf('k0')))?.updatedAt
        const seen: string[] = []
        let cursor: string | undefined
        do {
          const page = await storage.sessions.list({ limit: 2, ...(cursor === undefined ? {} : { cursor }) })
          assert.equal(page.total, 5)
          seen.push(...page.sessions.map(({ key }) => key))
          cursor = page.nextCursor
        } while (cursor !== undefined)
        assert.deepEqual(seen, ['k1', 'k4', 'k3', 'k2', 'k0'])
        await storage.transact([{ kind: 'change-session', key: keyOf('k0'), fields: { title: 'not touched' } }])
        assert.equal((await storage.sessions.get(keyOf('k0')))?.updatedAt, time)
        await assert.rejects(storage.sessions.list({ limit: 1, cursor: 'nonsense' }), { code: 'FIELD_INVALID' })
      }),
    )

    it(
      'are listed by prefix, owner, words, channel, archive and keys',
      over(open, async (storage) => {
        await storage.transact([
          { ...begin(keyOf('a:1'), 'sess_1'), fields: { title: 'My Cat', lastChannel: 'http' } },
          {
            ...begin(keyOf('a:2'), 'sess_2', 'bob'),
            fields: { archived: [{ sessionId: 'old' as SessionId, at: 1, title: 'Dogs', preview: 'one of TWO' }] },
          },
          { ...begin(keyOf('b:1'), 'sess_3'), fields: { preview: 'a CAT too' } },
        ])
        const keys = async (query: object): Promise<readonly string[]> => {
          const { sessions, total } = await storage.sessions.list({ limit: 10, ...query })
          assert.equal(total, sessions.length)
          return sessions.map(({ key }) => key).toSorted()
        }
        assert.deepEqual(await keys({ prefix: 'a:' }), ['a:1', 'a:2'])
        assert.deepEqual(await keys({ caller: { owner: 'ann', sees: 'own' } }), ['a:1', 'b:1'])
        assert.deepEqual(await keys({ caller: { owner: 'ann', sees: 'all' } }), ['a:1', 'a:2', 'b:1'])
        assert.deepEqual(await keys({ search: 'cat' }), ['a:1', 'b:1'])
        assert.deepEqual(await keys({ channel: 'http' }), ['a:1'])
        assert.deepEqual(await keys({ archived: true }), ['a:2'])
        assert.deepEqual(await keys({ archived: true, search: 'dog' }), ['a:2'])
        assert.deepEqual(await keys({ archived: true, search: 'of two' }), ['a:2'])
        assert.deepEqual(await keys({ archived: true, search: 'A:2' }), ['a:2'])
        assert.deepEqual(await keys({ archived: true, search: 'old' }), [])
        assert.deepEqual(await keys({ search: 'dog' }), [])
        assert.deepEqual(await keys({ only: new Set(['a:1', 'b:9']) }), ['a:1'])
        assert.deepEqual(await keys({ without: new Set(['a:1']) }), ['a:2', 'b:1'])
        assert.equal(await storage.sessions.count(), 3)
      }),
    )

    it(
      'are gone after a delete, and can begin anew under another id',
      over(open, async (storage) => {
        await storage.transact([begin(KEY, 'sess_1')])
        await storage.transact([{ kind: 'delete-session', key: KEY }])
        assert.equal(await storage.sessions.get(KEY), undefined)
        assert.equal(await storage.sessions.byId('sess_1'), undefined)
        assert.equal(await storage.sessions.count(), 0)
        await storage.transact([begin(KEY, 'sess_2')])
        assert.equal((await storage.sessions.get(KEY))?.sessionId, 'sess_2')
      }),
    )

    it(
      'change together or not at all',
      over(open, async (storage) => {
        const owner = await storage.ownership.claim(KEY)
        if (owner === undefined) return assert.fail('nothing else holds the session')
        await storage.transact([{ kind: 'raise-epoch', key: KEY }])
        const writing = storage.transact([begin(KEY, 'sess_1'), begin(OTHER_KEY, 'sess_2')], owner.owner)
        await assert.rejects(writing, { code: 'OWNERSHIP_LOST' })
        assert.equal(await storage.sessions.count(), 0)
      }),
    )

    it(
      'survive a restart, in their order',
      overRestart(
        open,
        async (storage) => {
          for (const key of ['k1', 'k2', 'k3']) await storage.transact([begin(keyOf(key), `sess_${key}`)])
          await storage.transact([
            { kind: 'change-session', key: keyOf('k1'), touched: true, fields: { title: 'one' } },
          ])
        },
        async (storage) => {
          const { sessions } = await storage.sessions.list({ limit: 10 })
          assert.deepEqual(
            sessions.map(({ key, record }) => [key, record.title]),
            [
              ['k1', 'one'],
              ['k3', undefined],
              ['k2', undefined],
            ],
          )
        },
      ),
    )
  })
}
