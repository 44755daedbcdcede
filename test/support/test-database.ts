import { connect } from 'node:net'
import { inject } from 'vitest'
import type { Database } from '../../src/base/database.ts'
import { pgDatabases } from '../../src/platform/pg-databases.ts'

let known: Promise<string> | undefined
let made = 0

/** Where the tests' PostgreSQL is; the first test that asks starts it. */
export function databaseUrl(): Promise<string> {
  const given = process.env['CLEW_TEST_DATABASE_URL']
  known ??= given === undefined || given === '' ? askForUrl() : Promise.resolve(given)
  return known
}

async function askForUrl(): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of connect(inject('databasePort'), '127.0.0.1')) chunks.push(chunk as Buffer)
  const { url, problem } = JSON.parse(Buffer.concat(chunks).toString()) as { url?: string; problem?: string }
  if (url === undefined) throw new Error(problem)
  return url
}

/** A name no other test uses; what was made under it goes at the end of the run. */
export function freshSchema(): string {
  return `${inject('schemaPrefix')}${process.pid}_${++made}`
}

export async function openDatabase(schema: string, options: { readonly pool?: number } = {}): Promise<Database> {
  return pgDatabases.open({
    url: await databaseUrl(),
    schema,
    pool: options.pool ?? 4,
    timeoutMs: 20_000,
    application: 'clew tests',
  })
}

/** For the next test of a file that shares a schema: making one anew takes longer. Deleting few rows beats truncating. */
export async function emptySchema(schema: string): Promise<void> {
  const database = await openDatabase(schema, { pool: 1 })
  await emptyTables(database, schema)
  await database.close()
}

export async function emptyTables(database: Database, schema: string): Promise<void> {
  const tables = await database.query<{ name: string }>(
    { name: '', text: `select relname as name from pg_class where relnamespace = $1::regnamespace and relkind = 'r'` },
    [schema],
  )
  const names = tables.map(({ name }) => name).filter((name) => name !== 'schema_migrations')
  await database.transaction((queries) => queries.run(names.map((name) => `delete from ${name}`).join(';')))
}

export const END_LEASES = { name: '', text: `update nodes set lease_until = '-infinity'` }

/** As if every node had been silent for longer than its lease. */
export async function endLeases(schema: string): Promise<void> {
  const database = await openDatabase(schema, { pool: 1 })
  await database.query(END_LEASES, [])
  await database.close()
}
