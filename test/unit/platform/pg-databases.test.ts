import { createServer } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { deferred } from '../../../src/base/async.ts'
import type { Database } from '../../../src/base/database.ts'
import { pgDatabases } from '../../../src/platform/pg-databases.ts'
import { databaseUrl, freshSchema, openDatabase } from '../../support/test-database.ts'

const closing: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close()
})

async function open(url: string, schema: string, timeoutMs = 20_000): Promise<Database> {
  const database = await pgDatabases.open({ url, schema, pool: 2, timeoutMs, application: 'clew tests' })
  closing.push(() => database.close())
  return database
}

/** A role of its own, for which the operator has set this. */
async function openAs(settings: readonly string[]): Promise<Database> {
  const role = freshSchema()
  const operator = await openDatabase('public', { pool: 1 })
  closing.push(() => operator.close())
  await operator.transaction((queries) => queries.run(`create role ${role} login password 'p'`))
  closing.push(() => operator.transaction((queries) => queries.run(`drop role ${role}`)))
  for (const setting of settings)
    await operator.transaction((queries) => queries.run(`alter role ${role} set ${setting}`))
  const url = new URL(await databaseUrl())
  Object.assign(url, { username: role, password: 'p' })
  return open(url.href, 'public')
}

async function settingOf(database: Database, name: string): Promise<string | undefined> {
  const [row] = await database.query<{ value: string }>({ name: '', text: 'select current_setting($1) as value' }, [
    name,
  ])
  return row?.value
}

test.each([
  // A statement that waits for a lock must see what was done by the one that had it.
  ['transaction_isolation', 'read committed', `default_transaction_isolation = 'repeatable read'`],
  // What is acknowledged is on the disk.
  ['synchronous_commit', 'on', 'synchronous_commit = off'],
  ['search_path', 'public', 'search_path = pg_catalog'],
])('%s is %s, whatever is set for the user', async (name, expected, setting) => {
  expect(await settingOf(await openAs([setting]), name)).toBe(expected)
})

test('a database that takes nothing at the moment, as a standby does, may be waited for', async () => {
  const database = await openAs(['default_transaction_read_only = on'])
  const writing = database.query({ name: '', text: `create table never_made (id integer)` }, [])
  await expect(writing).rejects.toMatchObject({ failure: 'unreachable', state: '25006' })
})

test('a lock that the operator lets nobody wait for long may be waited for', async () => {
  const schema = freshSchema()
  const [holder, waiting] = [await openDatabase('public', { pool: 1 }), await openAs([`lock_timeout = '50ms'`])]
  closing.push(() => holder.close())
  const lock = { name: '', text: `select pg_advisory_xact_lock(hashtext('${schema}'))` }
  await holder.transaction(async (queries) => {
    await queries.query(lock, [])
    await expect(waiting.query(lock, [])).rejects.toMatchObject({ failure: 'unreachable', state: '55P03' })
  })
})

test('what a migration runs takes as long as it needs', async () => {
  const database = await open(await databaseUrl(), 'public', 200)
  await expect(database.transaction((queries) => queries.run('select pg_sleep(1)'))).resolves.toBeUndefined()
})

test('settings are no part of how a connection begins: poolers refuse what they do not know there', async () => {
  const began = deferred<string>()
  const server = createServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', (bytes) => {
      began.resolve(bytes.toString('latin1'))
      socket.destroy()
    })
  })
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })
  closing.push(() => new Promise((resolve) => server.close(resolve)))
  const database = await open(`postgres://u:p@127.0.0.1:${port}/d`, 'clew')
  await database.query({ name: '', text: 'select 1' }, []).catch(() => undefined)
  const parameters = (await began.promise).slice(8).split('\0')
  expect(parameters.filter((name, index) => index % 2 === 0 && name !== '').toSorted()).toEqual([
    'application_name',
    'client_encoding',
    'database',
    'user',
  ])
})
