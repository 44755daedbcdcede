import { ownFile } from '../../../../src/platform/own-folder.ts'
import { expect, test } from 'vitest'
import type { Database } from '../../../../src/base/database.ts'
import { silentLog } from '../../../../src/base/log.ts'
import { nodeFiles } from '../../../../src/platform/node-files.ts'
import { migrate, readMigrations, type Migration } from '../../../../src/storage/postgres/migrate.ts'
import { pgDatabases } from '../../../../src/platform/pg-databases.ts'
import { databaseUrl, freshSchema, openDatabase } from '../../../support/test-database.ts'

const TWO: readonly Migration[] = [
  { version: 1, name: 'first', sql: 'create table one (id integer); insert into one values (1)' },
  { version: 2, name: 'second', sql: 'create table two (id integer)' },
]

async function withSchema(work: (database: Database, schema: string) => Promise<void>): Promise<void> {
  const schema = freshSchema()
  const database = await openDatabase(schema)
  try {
    await work(database, schema)
  } finally {
    await database.close()
  }
}

function rows<Row>(database: Database, text: string): Promise<readonly Row[]> {
  return database.query<Row>({ name: '', text }, [])
}

test('nodes that start at once apply each migration once', async () =>
  withSchema(async (database, schema) => {
    await Promise.all([1, 2, 3, 4].map(() => migrate(database, schema, TWO, silentLog)))
    expect(await rows(database, 'select version, name from schema_migrations order by version')).toEqual([
      { version: 1, name: 'first' },
      { version: 2, name: 'second' },
    ])
    expect(await rows(database, 'select id from one')).toEqual([{ id: 1 }])
  }))

test('a schema of a newer program is refused and stays as it is', async () =>
  withSchema(async (database, schema) => {
    await migrate(database, schema, TWO, silentLog)
    const older = TWO.slice(0, 1)
    await expect(migrate(database, schema, older, silentLog)).rejects.toMatchObject({ code: 'STORAGE_VERSION' })
    expect(await rows(database, 'select max(version) as version from schema_migrations')).toEqual([{ version: 2 }])
  }))

test('a migration that fails leaves nothing behind, and the ones before it stay', async () =>
  withSchema(async (database, schema) => {
    const bad = { version: 3, name: 'bad', sql: 'create table three (id integer); select 1 / 0' }
    await expect(migrate(database, schema, [...TWO, bad], silentLog)).rejects.toMatchObject({ state: '22012' })
    expect(await rows(database, 'select max(version) as version from schema_migrations')).toEqual([{ version: 2 }])
    expect(await rows(database, `select to_regclass('three')::text as name`)).toEqual([{ name: null }])
  }))

test('the migrations that are shipped apply, number from one without a gap, and make nothing in public', async () =>
  withSchema(async (database, schema) => {
    const folder = ownFile('storage/postgres/migrations')
    const shipped = await readMigrations(nodeFiles, folder)
    expect(shipped.map(({ version }) => version)).toEqual(shipped.map((_, index) => index + 1))
    const inPublic = `select count(*) from pg_class where relnamespace = 'public'::regnamespace`
    const before = await rows(database, inPublic)
    await migrate(database, schema, shipped, silentLog)
    expect(await rows(database, inPublic)).toEqual(before)
    await database.query({ name: '', text: 'insert into sessions (key, session_id) values ($1, $2)' }, ['k', 's'])
    expect(await rows(database, 'select epoch, node from sessions')).toEqual([{ epoch: 1, node: null }])
    const noObject = rows(database, `insert into sessions (key, session_id, record) values ('l', 't', '[]')`)
    await expect(noObject).rejects.toMatchObject({ state: '23514' })
  }))

test('a name that is no plain identifier is refused before it reaches a statement', async () =>
  withSchema(async (database) => {
    await expect(migrate(database, 'x; drop table y', TWO, silentLog)).rejects.toMatchObject({ code: 'CONFIG_INVALID' })
  }))

test('a user who may not create schemas has the one that was made for it, at every start', async () =>
  withSchema(async (operator, schema) => {
    const run = (sql: string): Promise<void> => operator.transaction((queries) => queries.run(sql))
    await run(`create role ${schema} login password 'p'; create schema ${schema} authorization ${schema}`)
    const url = new URL(await databaseUrl())
    Object.assign(url, { username: schema, password: 'p' })
    const settings = { schema, pool: 1, timeoutMs: 20_000, application: 'clew tests' }
    const database = await pgDatabases.open({ ...settings, url: url.href })
    await migrate(database, schema, TWO.slice(0, 1), silentLog)
    await migrate(database, schema, TWO, silentLog)
    expect(await rows(database, 'select max(version) as version from schema_migrations')).toEqual([{ version: 2 }])
    await database.close()
    await run(`drop schema ${schema} cascade; drop role ${schema}`)
  }))

test('a word of SQL is a name like any other', async () => {
  const database = await openDatabase('select', { pool: 1 })
  const drop = (): Promise<void> =>
    database.transaction((queries) => queries.run('drop schema if exists "select" cascade'))
  await drop()
  await migrate(database, 'select', TWO, silentLog)
  expect(await rows(database, 'select id from one')).toEqual([{ id: 1 }])
  await drop()
  await database.close()
})
