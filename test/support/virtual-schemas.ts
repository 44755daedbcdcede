import type { Clock } from '../../src/base/clock.ts'
import type { Databases } from '../../src/base/database.ts'
import { silentLog } from '../../src/base/log.ts'
import type { ConfigOverride } from '../../src/config/load.ts'
import { nodeFiles } from '../../src/platform/node-files.ts'
import { ownFile } from '../../src/platform/own-folder.ts'
import { migrate, readMigrations } from '../../src/storage/postgres/migrate.ts'
import type { MemoryFiles } from '../../src/testing/memory-files.ts'
import { databaseUrl, emptyTables, END_LEASES, freshSchema, openDatabase } from './test-database.ts'
import { askIdle, virtualDatabases } from './virtual-database.ts'

/** Whether this project of the test run keeps conversations in PostgreSQL instead of files in memory. */
export const IS_ON_POSTGRES = process.env['CLEW_TEST_STORAGE'] === 'postgres'

/** On the disk of a test, outside its home: every life of that disk finds its schema again. */
const SCHEMA_FILE = '/schema-of-this-disk'

interface Schema {
  readonly name: string
  /** Gateways that have it open and were not killed. */
  readonly users: Set<() => boolean>
}

const free: Schema[] = []
const inUse = new Map<string, Schema>()

/** After a test: what no living gateway uses any more is emptied for the next one. */
export async function releaseSchemas(): Promise<void> {
  for (const schema of inUse.values()) {
    if ([...schema.users].some((isAlive) => isAlive())) continue
    inUse.delete(schema.name)
    schema.users.clear()
    await askIdle(schema.name, (database) => emptyTables(database, schema.name))
    free.push(schema)
  }
}

/** What a gateway in memory needs besides to keep its conversations where this project keeps them. */
export interface TestStorage {
  readonly ports: { readonly databases?: Databases }
  readonly overrides: readonly ConfigOverride[]
}

/** The storage that belongs to a disk, in the time of a clock. */
export async function storageOf(files: MemoryFiles, clock: Clock): Promise<TestStorage> {
  if (!IS_ON_POSTGRES) return { ports: {}, overrides: [] }
  const schema = await schemaOf(files)
  const isAlive = (): boolean => !files.isCrashed
  const databases = virtualDatabases({
    clock,
    isAlive,
    onOpen: () => schema.users.add(isAlive),
    onClose: () => schema.users.delete(isAlive),
  })
  // A test may let days pass: rarely is often enough, since one gateway alone misses no notification.
  const rarely = { lease_ms: 600_000, poll_ms: 600_000 }
  const value = { kind: 'postgres', url: await databaseUrl(), schema: schema.name, ...rarely }
  return { ports: { databases }, overrides: [{ key: 'storage', value, source: 'the test' }] }
}

const IDS = { name: '', text: 'select session_id as id from transcripts' }
const LINES = {
  name: '',
  text: `select header as line, 0 as position from transcripts where session_id = $1
    union all select line, position from entries where session_id = $1 order by position`,
}

/** The text of a transcript as a file has it, wherever it is kept. */
export async function transcriptText(files: MemoryFiles, sessionId: string): Promise<string | undefined> {
  const schema = files.text(SCHEMA_FILE)
  if (schema === undefined) return files.text(`/home/clew/sessions/${sessionId}.jsonl`)
  const lines = await askIdle(schema, (database) => database.query<{ line: string }>(LINES, [sessionId]))
  return lines.length === 0 ? undefined : lines.map(({ line }) => `${line}\n`).join('')
}

const PLANT = {
  name: '',
  text: `with planted as (
      insert into entries (session_id, position, id, parent, line)
      select $1, t.entries + at, id, parent, line from transcripts t,
        unnest($2::text[], $3::text[], $4::text[]) with ordinality as l (id, parent, line, at)
      where t.session_id = $1 returning 1)
    update transcripts set entries = entries + (select count(*) from planted) where session_id = $1`,
}

/** Lines that another program or an operator wrote behind a conversation, wherever it is kept. Not while it is open. */
export async function plantLines(
  files: MemoryFiles,
  sessionId: string,
  lines: readonly { readonly id: string; readonly parentId: string }[],
): Promise<void> {
  const texts = lines.map((line) => JSON.stringify(line))
  const schema = files.text(SCHEMA_FILE)
  if (schema === undefined) {
    const path = `/home/clew/sessions/${sessionId}.jsonl`
    return files.plant(path, [files.text(path) ?? '', ...texts.map((text) => `${text}\n`)].join(''))
  }
  const values = [sessionId, lines.map(({ id }) => id), lines.map(({ parentId }) => parentId), texts]
  await askIdle(schema, (database) => database.query(PLANT, values))
}

/** The conversations that have a transcript, archived ones included. */
export async function transcriptIds(files: MemoryFiles): Promise<readonly string[]> {
  const schema = files.text(SCHEMA_FILE)
  if (schema === undefined)
    return (await files.list('/home/clew/sessions')).flatMap((name) => /^(.+)\.jsonl/u.exec(name)?.[1] ?? [])
  const rows = await askIdle(schema, (database) => database.query<{ id: string }>(IDS, []))
  return rows.map(({ id }) => id)
}

async function schemaOf(files: MemoryFiles): Promise<Schema> {
  const known = files.text(SCHEMA_FILE)
  const used = known === undefined ? undefined : inUse.get(known)
  if (used !== undefined) {
    // The gateway that had it was killed, for longer than a lease of ordinary length.
    await askIdle(used.name, (database) => database.query(END_LEASES, []))
    return used
  }
  const schema = free.pop() ?? (await createSchema())
  inUse.set(schema.name, schema)
  files.plant(SCHEMA_FILE, schema.name)
  return schema
}

const TIME_DEFAULTS = {
  name: '',
  text: `select attrelid::regclass::text as table, attname as column, pg_get_expr(adbin, adrelid) as expression
    from pg_attrdef join pg_attribute on attrelid = adrelid and attnum = adnum join pg_class on pg_class.oid = adrelid
    where relnamespace = $1::regnamespace and pg_get_expr(adbin, adrelid) ~ '(now|clock_timestamp)\\('`,
}
const TIME = `returns timestamptz language sql stable as
  $$ select to_timestamp(current_setting('clew.now')::double precision / 1000) $$`

/** The tables as they are shipped, with the time of the database in the test's hand. */
async function createSchema(): Promise<Schema> {
  const name = freshSchema()
  const database = await openDatabase(name, { pool: 1 })
  const migrations = await readMigrations(nodeFiles, ownFile('storage/postgres/migrations'))
  await migrate(database, name, migrations, silentLog)
  const defaults = await database.query<Record<'table' | 'column' | 'expression', string>>(TIME_DEFAULTS, [name])
  await database.transaction(async (queries) => {
    await queries.run(`create function ${name}.now() ${TIME}; create function ${name}.clock_timestamp() ${TIME}`)
    await queries.run(`set local search_path = ${name}, pg_catalog`)
    for (const { table, column, expression } of defaults)
      await queries.run(`alter table ${table} alter column ${column} set default ${expression}`)
  })
  await database.close()
  return { name, users: new Set() }
}
