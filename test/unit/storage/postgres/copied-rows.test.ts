import { afterEach, expect, test } from 'vitest'
import type { Database } from '../../../../src/base/database.ts'
import { NEVER } from '../../../../src/base/async.ts'
import type { RunId, SessionId, SessionKey } from '../../../../src/core/ids.ts'
import type { Item, ItemKind } from '../../../../src/storage/copy/image.ts'
import { messageItem } from '../../../../src/storage/copy/items.ts'
import { PostgresReader } from '../../../../src/storage/postgres/image-reader.ts'
import { PostgresWriter } from '../../../../src/storage/postgres/image-writer.ts'
import type { PostgresStorage } from '../../../../src/storage/postgres/postgres-storage.ts'
import { messageOf } from '../../../contract/storage/given.ts'
import { openTestNode } from '../../../support/postgres-storage.ts'
import { freshSchema, openDatabase } from '../../../support/test-database.ts'

const closing: { close(): Promise<void> }[] = []

afterEach(async () => {
  for (const one of closing.splice(0).toReversed()) await one.close()
})

async function openNode(): Promise<{ readonly node: PostgresStorage; readonly database: Database }> {
  const schema = freshSchema()
  const [node, database] = [await openTestNode(schema), await openDatabase(schema)]
  closing.push(node, database)
  return { node, database }
}

function put(database: Database, items: readonly Item[]): Promise<void> {
  const progress = { from: 'a test', state: 'copying', kind: 'file', done: items.length } as const
  return new PostgresWriter(database).write(items, progress)
}

function namesIn(database: Database, kind: ItemKind): Promise<readonly string[]> {
  return database.transaction(async (queries) => {
    const reader = new PostgresReader(queries)
    await reader.begin()
    const names: string[] = []
    for await (const { name } of reader.items(kind)) names.push(name)
    return names
  })
}

test('a file has the name in the copy that it had, whatever characters it holds', async () => {
  const { node, database } = await openNode()
  const name = 'media/f1/\uf8ff notes.txt'
  await put(database, [{ kind: 'file', name, bytes: async () => Buffer.from('hi') }])
  expect(await namesIn(database, 'file')).toEqual([name])
  expect(Buffer.from((await node.homeFiles.get(name)) ?? []).toString()).toBe('hi')
})

test('copied answers are handed out by their numbers, and the oldest of too many go first', async () => {
  const { node, database } = await openNode()
  const answered = (run: string, seq: number): Item =>
    messageItem({
      message: messageOf(run),
      fingerprint: run,
      state: 'waiting',
      seq,
      content: { kind: 'complete', text: run },
      endedAt: 1_000_000 + seq,
    })
  const many = Array.from({ length: 100 }, (_, at) => answered(`run_${at}`, 100 - at))
  await put(database, many)
  const account = { kind: 'account', name: 'webhook\nann', value: { next: 101 } } as const
  await put(database, [account])
  await node.start()
  const numbers = async (): Promise<readonly number[]> =>
    (await node.outbox.undelivered({ channel: 'webhook', account: 'ann' })).map(({ seq }) => seq)
  expect(await numbers()).toEqual(Array.from({ length: 100 }, (_, at) => at + 1))
  await node.inbox.accept(messageOf('next'), { fingerprint: 'next' })
  await node.transact([{ kind: 'answer', run: 'next' as RunId, content: { kind: 'complete', text: 'yes' } }])
  expect(await numbers()).toEqual(Array.from({ length: 100 }, (_, at) => at + 2))
})

test('entries of another program keep their ids, and what is appended behind them leads to them', async () => {
  const { node, database } = await openNode()
  const id = 'odd \uf8ff \u0000'
  const header = { type: 'session', version: 3, id: 'sess_1', timestamp: '2026-01-01T00:00:00.000Z', cwd: '/w' }
  const message = { role: 'user', content: 'mine', timestamp: 1 }
  const entry = { type: 'message', id, parentId: null, timestamp: header.timestamp, message }
  const lines = async function* (): AsyncGenerator<readonly string[]> {
    yield [`${JSON.stringify(header)}\n`, `${JSON.stringify(entry)}\n`]
  }
  await put(database, [{ kind: 'transcript', name: 'sess_1', lines }])
  await node.start()
  const transcript = await node.transcripts.open('sess_1' as SessionId, NEVER)
  await transcript.append([{ type: 'message', message: { role: 'user', content: 'next', timestamp: 2 } }])
  expect((await transcript.branch()).map((one) => [one.parentId, one.id === id])).toEqual([
    [null, true],
    [id, false],
  ])
  await transcript.close()
})

test('a conversation is deleted whatever an operator wrote into its row', async () => {
  const { node, database } = await openNode()
  await node.start()
  for (const archived of ['null', '{}', '"x"', '5', '[1, null]']) {
    const key = `k ${archived}` as SessionKey
    const text = 'insert into sessions (key, session_id, record) values ($1, $1, $2::jsonb)'
    await database.query({ name: '', text }, [key, `{"archived": ${archived}}`])
    await node.transact([{ kind: 'delete-session', key }])
    expect(await node.sessions.get(key)).toBeUndefined()
  }
})

test('a row with a time that is still to come gives it to no other row', async () => {
  const { node, database } = await openNode()
  await node.start()
  const [inADay, soon] = [Date.now() + 86_400_000, Date.now() + 60_000]
  const text = `insert into sessions (key, session_id, updated_at) values ('later', 'a', $1), ('soon', 'b', $2), ('now', 'c', 1)`
  await database.query({ name: '', text }, [inADay, soon])
  await node.transact([{ kind: 'change-session', key: 'now' as SessionKey, fields: {}, touched: true }])
  expect((await node.sessions.get('now' as SessionKey))?.updatedAt).toBe(soon)
})
