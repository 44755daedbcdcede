import { afterEach, expect, test } from 'vitest'
import type { Database } from '../../../../src/base/database.ts'
import type { RunId, SessionId, SessionKey } from '../../../../src/core/ids.ts'
import type { AcceptedMessage } from '../../../../src/core/inbound.ts'
import type { PostgresStorage } from '../../../../src/storage/postgres/postgres-storage.ts'
import type { Notice } from '../../../../src/storage/storage.ts'
import { openTestNode } from '../../../support/postgres-storage.ts'
import { freshSchema, openDatabase } from '../../../support/test-database.ts'

const KEY = 'agent:main:shared' as SessionKey
const closing: { close(): Promise<void> }[] = []

afterEach(async () => {
  for (const one of closing.splice(0).toReversed()) await one.close()
})

interface World {
  readonly a: PostgresStorage
  readonly b: PostgresStorage
  readonly database: Database
}

async function twoNodes(): Promise<World> {
  const schema = freshSchema()
  const database = await openDatabase(schema)
  const [a, b] = [await openTestNode(schema), await openTestNode(schema)]
  closing.push(database, a, b)
  await a.start()
  await b.start()
  return { a, b, database }
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
  expect(await accept(a, 'run_1')).toEqual({ kind: 'fresh', mine: true })
  expect(await accept(b, 'run_2')).toEqual({ kind: 'fresh', mine: false })
  expect(await accept(a, 'run_3')).toEqual({ kind: 'fresh', mine: false })
  expect((await a.inbox.open({ key: KEY })).map(({ message }) => message.run)).toEqual(['run_1', 'run_2', 'run_3'])
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
