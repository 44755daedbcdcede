import { afterEach, expect, test, vi } from 'vitest'
import { DatabaseError, type Database, type Databases } from '../../../../src/base/database.ts'
import { pgDatabases } from '../../../../src/platform/pg-databases.ts'
import { ManualClock } from '../../../../src/testing/manual-clock.ts'
import type { RunId, SessionId, SessionKey } from '../../../../src/core/ids.ts'
import type { AcceptedMessage } from '../../../../src/core/inbound.ts'
import type { PostgresStorage } from '../../../../src/storage/postgres/postgres-storage.ts'
import type { Notice } from '../../../../src/storage/storage.ts'
import { openTestNode } from '../../../support/postgres-storage.ts'
import { freshSchema, openDatabase } from '../../../support/test-database.ts'

const KEY = 'agent:main:shared' as SessionKey
const WAIT = { timeout: 20_000, interval: 20 }
const closing: { close(): Promise<void> }[] = []

afterEach(async () => {
  for (const one of closing.splice(0).toReversed()) await one.close()
})

interface World {
  readonly a: PostgresStorage
  readonly b: PostgresStorage
  readonly database: Database
  readonly schema: string
}

async function twoNodes(): Promise<World> {
  const schema = freshSchema()
  const database = await openDatabase(schema)
  const [a, b] = [await openTestNode(schema), await openTestNode(schema)]
  closing.push(database, a, b)
  await a.start()
  await b.start()
  return { a, b, database, schema }
}

function accept(storage: PostgresStorage, id: string): Promise<unknown> {
  const message: AcceptedMessage = {
    run: id as RunId,
    key: KEY,
    acceptedAt: 0,
    channel: 'webhook',
    account: 'ann',
    messageId: id,
    text: id,
    attachments: [],
    route: {},
    replyTo: {},
  }
  const session = { kind: 'begin-session', key: KEY, sessionId: 'sess_a' as SessionId, owner: 'ann' } as const
  return storage.inbox.accept(message, { fingerprint: id, session })
}

function heardBy(storage: PostgresStorage, kind: Notice['kind']): Promise<Notice> {
  return new Promise((resolve) => {
    const stop = storage.watch((notice) => {
      if (notice.kind !== kind) return
      stop()
      resolve(notice)
    })
  })
}

/** As if its node had been silent for longer than its lease. */
async function endLeaseOfHolder(database: Database): Promise<void> {
  const text = `update nodes set lease_until = now() - interval '1 second' where id = (select node from sessions)`
  await database.query({ name: '', text }, [])
}

test('one node holds a session at a time, until it gives it back', async () => {
  const { a, b } = await twoNodes()
  await accept(a, 'run_1')
  const claim = await a.ownership.claim(KEY)
  expect(await b.ownership.claim(KEY)).toBeUndefined()
  await a.ownership.release(claim!.owner)
  expect((await b.ownership.claim(KEY))?.owner.epoch).toBeGreaterThan(claim!.owner.epoch)
})

test('a session of a dead node is taken over, and its late writes are refused', async () => {
  const { a, b, database } = await twoNodes()
  await accept(a, 'run_1')
  await accept(a, 'run_2')
  const dead = (await a.ownership.claim(KEY))!.owner
  await endLeaseOfHolder(database)
  const claim = await b.ownership.claim(KEY)
  expect(claim?.suspects).toEqual([{ run: 'run_1', deaths: 1 }])
  const late = a.transact(
    [{ kind: 'answer', run: 'run_1' as RunId, content: { kind: 'complete', text: 'late' } }],
    dead,
  )
  await expect(late).rejects.toMatchObject({ code: 'OWNERSHIP_LOST' })
  expect(a.ownership.isCurrent(dead)).toBe(false)
  expect((await b.inbox.find('run_1' as RunId))?.state).toBe('open')
})

test('a reset on one node ends what another holds, tells it, and the key is free at once', async () => {
  const { a, b } = await twoNodes()
  await accept(a, 'run_1')
  const old = (await a.ownership.claim(KEY))!.owner
  const told = heardBy(a, 'session')
  await b.transact([{ kind: 'raise-epoch', key: KEY }])
  expect((await b.ownership.claim(KEY))?.owner.epoch).toBeGreaterThan(old.epoch)
  expect(await told).toMatchObject({ kind: 'session', key: KEY })
  expect(a.ownership.isCurrent(old)).toBe(false)
})

test('the holder hears of a message that another node accepted, in the order of acceptance', async () => {
  const { a, b } = await twoNodes()
  await accept(a, 'run_1')
  await a.ownership.claim(KEY)
  const told = heardBy(a, 'message')
  await accept(b, 'run_2')
  expect(await told).toMatchObject({ kind: 'message', key: KEY })
  expect((await a.inbox.open({ key: KEY })).map(({ message }) => message.run)).toEqual(['run_1', 'run_2'])
})

test('an answer that its node could not deliver is offered to the others, and one of them takes it', async () => {
  const { a, b } = await twoNodes()
  await accept(a, 'run_1')
  await b.transact([{ kind: 'answer', run: 'run_1' as RunId, content: { kind: 'complete', text: 'yes' } }])
  const told = heardBy(a, 'reply')
  await b.transact([{ kind: 'delivery', run: 'run_1' as RunId, state: 'waiting' }])
  expect(await told).toMatchObject({ kind: 'reply', channel: 'webhook', account: 'ann', run: 'run_1' })
  const taken = await Promise.all([a.outbox.take('run_1' as RunId), b.outbox.take('run_1' as RunId)])
  expect(taken.toSorted()).toEqual([false, true])
})

test('numbers of an account are drawn once over all nodes', async () => {
  const { a, b } = await twoNodes()
  const drawn = await Promise.all(
    Array.from({ length: 40 }, (_, n) => (n % 2 === 0 ? a : b).outbox.nextSeq('webhook', 'ann')),
  )
  expect(new Set(drawn).size).toBe(40)
})

test('a node that closes gives everything back and leaves the list', async () => {
  const { a, b, database } = await twoNodes()
  await accept(a, 'run_1')
  await a.ownership.claim(KEY)
  closing.splice(closing.indexOf(a), 1)
  await a.close()
  expect(await b.ownership.unclaimed(9)).toEqual([KEY])
  expect(await database.query({ name: '', text: 'select count(*) from nodes' }, [])).toEqual([{ count: 1 }])
})

test('a transcript that moved to another node and back is read again', async () => {
  const { a, b } = await twoNodes()
  const { signal } = new AbortController()
  const append = async (storage: PostgresStorage): Promise<number> => {
    const transcript = await storage.transcripts.open('sess_a' as SessionId, signal)
    await transcript.append([{ type: 'custom', customType: 'x', data: {} }])
    const { length } = await transcript.branch()
    await transcript.close()
    return length
  }
  expect([await append(a), await append(b), await append(a)]).toEqual([1, 2, 3])
})

test('accepting takes a session that is free; behind what another node accepted it has to be read in order', async () => {
  const { a, b } = await twoNodes()
  expect(await accept(a, 'run_1')).toMatchObject({ kind: 'fresh', mine: true })
  expect(await accept(b, 'run_2')).toMatchObject({ kind: 'fresh', mine: false })
  expect(await accept(a, 'run_3')).toMatchObject({ kind: 'fresh', mine: false })
  expect((await a.inbox.open({ key: KEY })).map(({ message }) => message.run)).toEqual(['run_1', 'run_2', 'run_3'])
})

test('a delete takes along what its holder wrote after the transcripts were removed', async () => {
  const { a, b, database } = await twoNodes()
  await accept(a, 'run_1')
  const { owner } = (await a.ownership.claim(KEY))!
  const [before, now] = ['sess_a', 'sess_b'] as SessionId[]
  const archived = [{ sessionId: before!, at: 1 }]
  await a.transact([{ kind: 'change-session', key: KEY, fields: { sessionId: now!, archived } }], owner)
  for (const id of [before!, now!]) await b.transcripts.remove(id)
  for (const id of [before!, now!]) {
    const late = await a.transcripts.open(id, new AbortController().signal)
    await late.append([{ type: 'custom', customType: 'x', data: {} }], { owner })
    await database.query({ name: '', text: `insert into blobs values ($1, 'b', 'long')` }, [id])
    await late.close()
  }
  await b.transact([{ kind: 'delete-session', key: KEY }], await b.ownership.takeOver(KEY))
  const text =
    'select session_id from transcripts union all select session_id from entries union all select session_id from blobs'
  expect(await database.query({ name: '', text }, [])).toEqual([])
})

test('a node knows the rows it holds until another one changes them', async () => {
  const { a, b } = await twoNodes()
  await accept(a, 'run_1')
  await a.transact([{ kind: 'change-session', key: KEY, fields: { title: 'ours' } }])
  expect((await a.sessions.get(KEY))?.title).toBe('ours')
  const told = heardBy(a, 'session')
  await b.transact([{ kind: 'change-session', key: KEY, fields: { title: 'theirs' } }])
  await told
  expect((await a.sessions.get(KEY))?.title).toBe('theirs')
})

test('a session is left to another node only while one has room for a turn', async () => {
  const { a, b, schema } = await twoNodes()
  await accept(a, 'run_1')
  expect(await a.ownership.leave(KEY)).toBe(false)
  expect(await b.ownership.leave(KEY)).toBe(true)
  const c = await openTestNode(schema)
  closing.push(c)
  await c.start(() => ({ turns: 1, maxTurns: 2, waiting: 0 }))
  const { owner } = (await a.ownership.claim(KEY))!
  const told = heardBy(b, 'message')
  await expect.poll(() => a.ownership.leave(KEY)).toBe(true)
  expect(a.ownership.isCurrent(owner)).toBe(false)
  expect(await told).toMatchObject({ key: KEY, elsewhere: true })
  expect(await c.ownership.claim(KEY)).toMatchObject({ suspects: [] })
})

test('the connections of an account are of one node, until it gives them back or its lease ends', async () => {
  const { a, b, database } = await twoNodes()
  const first = (await a.ownership.hold('xiaoyi', 'agent'))!
  await expect.poll(() => first.hasSuccessor).toBe(true)
  expect(await b.ownership.hold('xiaoyi', 'agent')).toBeUndefined()
  expect(await b.ownership.hold('xiaoyi', 'another agent')).toBeDefined()
  await first.release()
  const second = (await b.ownership.hold('xiaoyi', 'agent'))!
  const text = `update nodes set lease_until = now() - interval '1 second' where id =
    (select node from accounts where account = 'agent')`
  await database.query({ name: '', text }, [])
  expect(await a.ownership.hold('xiaoyi', 'agent')).toBeDefined()
  if (!second.lost.aborted) await new Promise((resolve) => second.lost.addEventListener('abort', resolve))
  expect(await a.outbox.nextSeq('xiaoyi', 'agent')).toBe(1)
})

test('what a node holds alone it gives up when it could not renew its lease', async () => {
  const { schema } = await twoNodes()
  const clock = new ManualClock(0)
  let isAway = false
  const databases: Databases = {
    async open(options) {
      const real = await pgDatabases.open(options)
      const query: Database['query'] = (statement, values) =>
        isAway ? Promise.reject(new DatabaseError('unreachable', 'away', undefined)) : real.query(statement, values)
      return {
        ...real,
        query,
        transaction: (work) => real.transaction(work),
        listen: (...all) => real.listen(...all),
        close: () => real.close(),
        connections: 0,
      }
    },
  }
  const c = await openTestNode(schema, { databases, clock, leaseMs: 9_000 })
  closing.push({ close: () => c.kill() })
  await c.start()
  const hold = (await c.ownership.hold('xiaoyi', 'agent'))!
  await clock.advance(8_000)
  expect(hold.lost.aborted).toBe(false)
  isAway = true
  await clock.advance(9_000)
  expect(hold.lost.aborted).toBe(true)
})

test('who asks for a conversation by its name gets what another node has confirmed, noticed here or not', async () => {
  const { schema } = await twoNodes()
  const deaf: Databases = {
    async open(options) {
      const real = await pgDatabases.open(options)
      return {
        query: (...all) => real.query(...all),
        transaction: (work) => real.transaction(work),
        listen: async () => ({ close: async () => undefined }),
        close: () => real.close(),
        connections: 0,
      }
    },
  }
  const c = await openTestNode(schema, { databases: deaf, clock: new ManualClock(0) })
  const d = await openTestNode(schema)
  closing.push(c, d)
  await c.start()
  await accept(c, 'run_1')
  const { owner } = (await c.ownership.claim(KEY))!
  await c.transact([{ kind: 'change-session', key: KEY, fields: { label: 'here' } }], owner)
  await d.transact([{ kind: 'change-session', key: KEY, fields: { label: 'there' } }])
  expect((await c.sessions.resolve(KEY))?.record['label']).toBe('there')
})

test('a session is taken over from a living node, which is told, and nothing is blamed for it', async () => {
  const { a, b } = await twoNodes()
  await accept(a, 'run_1')
  const old = (await a.ownership.claim(KEY))!.owner
  const told = heardBy(a, 'session')
  const owner = await b.ownership.takeOver(KEY)
  expect(owner.epoch).toBeGreaterThan(old.epoch)
  expect(await told).toMatchObject({ kind: 'session', key: KEY })
  expect(a.ownership.isCurrent(old)).toBe(false)
  expect(await a.ownership.claim(KEY)).toBeUndefined()
  expect((await b.inbox.find('run_1' as RunId))?.deaths).toBeUndefined()
  await expect(a.transact([{ kind: 'reset-done', run: 'run_1' as RunId }], old)).rejects.toMatchObject({
    code: 'OWNERSHIP_LOST',
  })
})

test("a message that was accepted after the last sign of life of its session's node is not blamed for that node", async () => {
  const { a, b, database } = await twoNodes()
  await accept(a, 'run_1')
  const { owner } = (await a.ownership.claim(KEY))!
  await a.transact([{ kind: 'answer', run: 'run_1' as RunId, content: { kind: 'complete', text: 'yes' } }], owner)
  await accept(b, 'run_2')
  await endLeaseOfHolder(database)
  expect((await b.ownership.claim(KEY))?.suspects).toEqual([])
})

test('a node that was only stopped takes back what a message was blamed for', async () => {
  const schema = freshSchema()
  const database = await openDatabase(schema)
  const clock = new ManualClock()
  const [stopped, b, c] = [
    await openTestNode(schema, { clock, leaseMs: 3_000 }),
    await openTestNode(schema),
    await openTestNode(schema),
  ]
  closing.push(database, stopped, b, c)
  for (const node of [stopped, b, c]) await node.start()
  await accept(stopped, 'run_1')
  await endLeaseOfHolder(database)
  const claim = await b.ownership.claim(KEY)
  expect(claim?.suspects).toEqual([{ run: 'run_1', deaths: 1 }])
  await b.transact([{ kind: 'resumed', run: 'run_1' as RunId }], claim!.owner)
  await clock.advance(1_000)
  await vi.waitFor(async () => expect((await b.inbox.find('run_1' as RunId))?.deaths).toBeUndefined(), WAIT)
  // The one that holds it now does die: that is the first time.
  await endLeaseOfHolder(database)
  expect((await c.ownership.claim(KEY))?.suspects).toEqual([{ run: 'run_1', deaths: 1 }])
})

test('what was known of a conversation that was left is not told of the one that followed it', async () => {
  const { a, b } = await twoNodes()
  await accept(a, 'run_1')
  await a.transact([{ kind: 'change-session', key: KEY, fields: { title: 'ours' } }])
  await b.ownership.takeOver(KEY)
  const told = heardBy(a, 'session')
  await b.transact([
    { kind: 'change-session', key: KEY, fields: { sessionId: 'sess_b' as SessionId } },
    { kind: 'raise-epoch', key: KEY },
  ])
  await told
  await a.ownership.claim(KEY)
  await a.transact([{ kind: 'change-session', key: KEY, fields: { title: 'next' } }])
  const { signal } = new AbortController()
  const old = await b.transcripts.open('sess_a' as SessionId, signal)
  await old.append([{ type: 'custom', customType: 'x', data: {} }])
  await old.close()
  const opened = await a.transcripts.open('sess_a' as SessionId, signal)
  expect(await opened.branch()).toHaveLength(1)
  await opened.close()
})

test('a message is known without an answer however old it is, with one for the time from the answer on', async () => {
  const schema = freshSchema()
  const database = await openDatabase(schema)
  const clock = new ManualClock(0)
  const node = await openTestNode(schema, { clock, leaseMs: 3_000_000 })
  closing.push(database, node)
  await node.start()
  const makeOlder = async (what: string): Promise<void> =>
    void (await database.query({ name: '', text: `update messages set ${what}` }, []))
  const isKnown = async (): Promise<boolean> => (await node.inbox.recall({ fingerprint: 'run_1' })) !== undefined
  const runs = async (): Promise<readonly unknown[]> =>
    database.query({ name: '', text: 'select run from messages' }, [])
  await accept(node, 'run_1')
  await makeOlder(`stored_at = stored_at - interval '1 day'`)
  expect(await isKnown()).toBe(true)
  await node.transact([{ kind: 'answer', run: 'run_1' as RunId, content: { kind: 'complete', text: 'done' } }])
  expect(await isKnown()).toBe(true)
  await accept(node, 'run_2')
  await makeOlder(`stored_at = stored_at - interval '1 day'`)
  await node.transact([{ kind: 'answer', run: 'run_2' as RunId, content: { kind: 'complete', text: 'done' } }])
  await makeOlder(`answered_at = answered_at - 86400000 where run = 'run_1'`)
  expect(await isKnown()).toBe(false)
  void clock.advance(600_000)
  await vi.waitFor(async () => expect(await runs()).toEqual([{ run: 'run_2' }]), WAIT)
})

test('costs by the day and by the hour end as in a home, those of conversations stay', async () => {
  const schema = freshSchema()
  const database = await openDatabase(schema)
  const clock = new ManualClock(0)
  const limits = { rememberMs: 60_000, outboxPerAccount: 100, usage: { days: 2, hours: 3 }, mostEntries: {} }
  const node = await openTestNode(schema, { clock, leaseMs: 3_000_000, limits })
  closing.push(database, node)
  await node.start()
  const text = `insert into usage (scope, at, session_id, model, node) values
    ('session', 0, 's', '', 'a'),
    ('day', ms(now()) / 86400000, '', '', 'a'), ('day', ms(now()) / 86400000 - 1, '', '', 'a'),
    ('day', ms(now()) / 86400000 - 2, '', '', 'a'),
    ('hour', 10, '', 'm', 'a'), ('hour', 10, '', 'm', 'b'), ('hour', 9, '', 'm', 'a'), ('hour', 9, '', 'n', 'a'),
    ('hour', 8, '', 'm', 'a'), ('hour', 7, '', 'm', 'a'),
    ('session-hour', 7, 's', '', 'a')`
  await database.query({ name: '', text }, [])
  const left = (): Promise<readonly { scope: string; rows: number }[]> =>
    database.query({ name: '', text: 'select scope, count(*) as rows from usage group by scope order by scope' }, [])
  void clock.advance(600_000)
  await vi.waitFor(
    async () =>
      expect(await left()).toEqual([
        { scope: 'day', rows: 2 },
        { scope: 'hour', rows: 5 },
        { scope: 'session', rows: 1 },
        { scope: 'session-hour', rows: 1 },
      ]),
    WAIT,
  )
})
