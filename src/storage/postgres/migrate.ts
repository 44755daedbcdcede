import { DatabaseError, type Database, type Queries } from '../../base/database.ts'
import { readWhole, type Files } from '../../base/files.ts'
import type { Log } from '../../base/log.ts'
import { GatewayError } from '../../core/errors.ts'

/** One step of the schema. Steps only ever go forward; one that was released is never changed. */
export interface Migration {
  readonly version: number
  readonly name: string
  readonly sql: string
}

/** Any constant: all programs that migrate a schema of ours wait for one another on it. */
const LOCK = 0x436c6577

/** Names are taken into statements in quotation marks. */
const SCHEMA_NAME = /^(?!pg_)[a-z_][a-z0-9_]{0,62}$/

/** The numbered files of a folder, in order: `0001-tables.sql` is version 1. */
export async function readMigrations(files: Files, directory: string): Promise<readonly Migration[]> {
  const names = (await files.list(directory)).filter((name) => /^\d{4}-[a-z-]+\.sql$/.test(name))
  return Promise.all(
    names.map(async (name) => ({
      version: Number(name.slice(0, 4)),
      name: name.slice(5, -'.sql'.length),
      sql: await readText(files, `${directory}/${name}`),
    })),
  )
}

/**
 * Creates the schema or brings it up to date; each step is a transaction of its own under a lock of the database, so
 * that several nodes may start at once. A schema of a newer program is refused and stays as it is.
 */
export async function migrate(
  database: Database,
  schema: string,
  migrations: readonly Migration[],
  log: Log,
): Promise<void> {
  if (!SCHEMA_NAME.test(schema))
    throw new GatewayError(
      'CONFIG_INVALID',
      'storage.schema: small letters, digits and _ only, and no pg_ at the beginning',
      {},
    )
  if ((await appliedVersion(database, schema)) === newestOf(migrations)) return
  for (const migration of migrations) await applyOne(database, schema, migration, migrations, log)
}

async function applyOne(
  database: Database,
  schema: string,
  migration: Migration,
  all: readonly Migration[],
  log: Log,
): Promise<void> {
  const isNew = await database.transaction(async (queries) => {
    // An operator's limits are meant for other statements.
    await queries.run(`set local statement_timeout = 0; set local lock_timeout = 0`)
    await queries.run(`select pg_advisory_xact_lock(${LOCK})`)
    // To ask for what is there needs the right to make it, which the user may not have.
    if (!(await hasSchema(queries, schema))) await queries.run(`create schema "${schema}"`)
    await queries.run(
      `create table if not exists "${schema}".schema_migrations
        (version integer primary key, name text not null, applied_at timestamptz not null default now())`,
    )
    const version = await versionIn(queries, schema)
    refuseNewer(version, newestOf(all))
    if (version >= migration.version) return false
    await queries.run(`set local search_path = "${schema}"`)
    await queries.run(migration.sql)
    await queries.query(
      { name: '', text: `insert into "${schema}".schema_migrations (version, name) values ($1, $2)` },
      [migration.version, migration.name],
    )
    return true
  })
  if (isNew) log.info('the schema was brought up to date', { schema, version: migration.version, name: migration.name })
}

/** A version above ours was made by a newer program, whose tables we would misread. */
export function refuseNewer(version: number, ours: number): void {
  if (version <= ours) return
  throw new GatewayError(
    'STORAGE_VERSION',
    `the schema has version ${version} and this program knows ${ours}: start the newer program, or restore a backup`,
    { version, known: ours },
  )
}

/** The schema's version; 0 when there is none. */
export async function appliedVersion(database: Database, schema: string): Promise<number> {
  try {
    const [row] = await database.query<{ version: number }>(
      {
        name: 'schema_version',
        text: `select coalesce(max(version), 0) as version from "${schema}".schema_migrations`,
      },
      [],
    )
    return row?.version ?? 0
  } catch (error) {
    // No such table, or no such schema.
    if (error instanceof DatabaseError && /^(42P01|3F000)$/.test(error.state)) return 0
    throw error
  }
}

async function hasSchema(queries: Queries, schema: string): Promise<boolean> {
  const found = await queries.query({ name: '', text: 'select from pg_namespace where nspname = $1' }, [schema])
  return found.length > 0
}

async function versionIn(queries: Queries, schema: string): Promise<number> {
  const [row] = await queries.query<{ version: number }>(
    { name: '', text: `select coalesce(max(version), 0) as version from "${schema}".schema_migrations` },
    [],
  )
  return row?.version ?? 0
}

export function newestOf(migrations: readonly Migration[]): number {
  return migrations.at(-1)?.version ?? 0
}

const MAX_MIGRATION_BYTES = 1024 * 1024

async function readText(files: Files, path: string): Promise<string> {
  const bytes = await readWhole(files, path, MAX_MIGRATION_BYTES)
  return Buffer.from(bytes ?? []).toString('utf8')
}
