import { sleep } from '../../base/async.ts'
import { backoffDelay, type Clock } from '../../base/clock.ts'
import { DatabaseError, type Database, type DatabaseOptions, type Databases } from '../../base/database.ts'
import type { Files } from '../../base/files.ts'
import type { Ids } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { GatewayError } from '../../core/errors.ts'
import type { WriteHooks } from '../../transcript/guard.ts'
import type { TranscriptLimits } from '../../transcript/limits.ts'
import type { HomeFiles, Storage } from '../storage.ts'
import { unavailable } from './group-commit.ts'
import { createHomeFiles } from './home-files.ts'
import { appliedVersion, migrate, newestOf, readMigrations, refuseNewer } from './migrate.ts'
import { PostgresStorage, type PostgresStorageOptions } from './postgres-storage.ts'
import { createPostgresTranscripts } from './transcripts.ts'

export interface OpenPostgresOptions {
  readonly databases: Databases
  readonly files: Files
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  /** The folder of the numbered files. */
  readonly migrations: string
  readonly url: string
  readonly schema: string
  readonly pool: number
  readonly leaseMs: number
  readonly pollMs?: number
  /** Where other nodes and operators see this one. */
  readonly address: string
  readonly version: string
  readonly limits: PostgresStorageOptions['limits']
  readonly transcriptLimits?: Partial<TranscriptLimits>
  /** What transcripts name as their working directory. */
  readonly cwd: string
  hooks(storage: Storage): WriteHooks
  /** A database that cannot be reached is waited for, until the signal; otherwise it is an error. */
  readonly waits?: boolean
  readonly signal: AbortSignal
}

const PAUSES = { firstMs: 500, maxMs: 10_000, jitter: 0.2 }
const STATEMENT_TIMEOUT_MS = 5_000

/**
 * A database whose schema is up to date, for a command: one that cannot be reached is an error at once. `settings.schema`
 * is created when it is missing.
 */
export function openMigrated(options: CommandOptions): Promise<Database> {
  const { files, log, migrations, settings } = options
  return openFor(options, async (database) =>
    migrate(database, settings.schema, await readMigrations(files, migrations), log),
  )
}

/** A database as it is, for a command that only reads: one without a schema of this version is refused. */
export function openPresent(options: Omit<CommandOptions, 'log'>): Promise<Database> {
  const { files, migrations, settings } = options
  return openFor(options, async (database) => {
    const known = newestOf(await readMigrations(files, migrations))
    const version = await appliedVersion(database, settings.schema)
    refuseNewer(version, known)
    if (version === 0)
      throw new GatewayError('STORAGE_FAILED', `the database has no schema "${settings.schema}" of Clew`, {})
    if (version < known)
      throw new GatewayError(
        'STORAGE_VERSION',
        `the schema has version ${version} and this program reads ${known}: start a gateway of this version on it once`,
        { version, known },
      )
  })
}

/** What a start would find; changes nothing. `version` is 0 when there is no schema yet. */
export async function inspectSchema(
  options: Omit<CommandOptions, 'log'>,
): Promise<{ readonly version: number; readonly known: number; readonly takesWriting: boolean }> {
  const { files, migrations, settings } = options
  const known = newestOf(await readMigrations(files, migrations))
  let version = 0
  let takesWriting = false
  const database = await openFor(options, async (opened) => {
    version = await appliedVersion(opened, settings.schema)
    refuseNewer(version, known)
    const [row] = await opened.query<{ takes: boolean }>(
      { name: '', text: `select not current_setting('transaction_read_only')::boolean as takes` },
      [],
    )
    takesWriting = row?.takes === true
  })
  await database.close()
  return { version, known, takesWriting }
}

type CommandOptions = Pick<OpenPostgresOptions, 'databases' | 'files' | 'log' | 'migrations'> & {
  readonly settings: DatabaseOptions
}

async function openFor(
  { databases, settings }: Pick<CommandOptions, 'databases' | 'settings'>,
  prepare: (database: Database) => Promise<void>,
): Promise<Database> {
  const database = await databases.open(settings)
  try {
    await prepare(database)
    return database
  } catch (error) {
    await database.close()
    if (!(error instanceof DatabaseError)) throw error
    throw error.failure === 'unreachable' ? unavailable(error) : explain(error)
  }
}

/** What of a home is the same on all nodes, without a node. */
export async function openHomeFiles(
  options: Parameters<typeof openMigrated>[0],
): Promise<{ readonly files: HomeFiles; close(): Promise<void> }> {
  const database = await openMigrated(options)
  return { files: createHomeFiles(database), close: () => database.close() }
}

/** Connects, waiting for a database that is away, and creates the schema or brings it up to date. */
export async function openPostgresStorage(options: OpenPostgresOptions): Promise<PostgresStorage> {
  const { databases, clock, ids, log, url, schema, pool, leaseMs, pollMs, address, version, limits, cwd } = options
  const database = await databases.open({
    url,
    schema,
    pool,
    timeoutMs: STATEMENT_TIMEOUT_MS,
    application: `clew ${version}`,
  })
  try {
    await migrateWhenReachable(database, options)
  } catch (error) {
    await database.close()
    throw error
  }
  const transcriptLimits = options.transcriptLimits === undefined ? {} : { limits: options.transcriptLimits }
  return new PostgresStorage({
    database,
    clock,
    ids,
    log,
    schema,
    node: `node-${ids.hex(12)}`,
    address,
    version,
    leaseMs,
    ...(pollMs === undefined ? {} : { pollMs }),
    limits,
    createTranscripts: (base) =>
      createPostgresTranscripts(base, {
        clock,
        ids,
        log,
        cwd,
        hooks: options.hooks(base.storage),
        ...transcriptLimits,
      }),
  })
}

const READ_ONLY = '25006'
/** Refused by a standby, which answers look-ups; changes nothing. */
const TAKES_WRITING = 'update schema_migrations set version = version where false'

async function migrateWhenReachable(
  database: Database,
  { files, clock, ids, log, schema, waits, signal, ...options }: OpenPostgresOptions,
): Promise<void> {
  const migrations = await readMigrations(files, options.migrations)
  for (let attempt = 0; ; attempt++) {
    try {
      await migrate(database, schema, migrations, log)
      await database.query({ name: '', text: TAKES_WRITING }, [])
      return
    } catch (error) {
      if (!(error instanceof DatabaseError)) throw error
      if (error.failure !== 'unreachable') throw explain(error)
      if (waits !== true) throw unavailable(error)
      const pauseMs = backoffDelay(attempt, PAUSES, ids)
      const what = error.state === READ_ONLY ? 'takes nothing at the moment, as a standby' : 'cannot be reached'
      log.warn(`the database ${what}; waiting for it`, { attempt: attempt + 1, pauseMs, reason: error.state })
      await sleep(clock, pauseMs, signal)
    }
  }
}

/** Waiting does not help: an operator has to do something. */
function explain(error: DatabaseError): GatewayError {
  const facts = { reason: error.state }
  const because = { cause: error }
  switch (error.failure) {
    case 'refused':
      return new GatewayError(
        'STORAGE_FAILED',
        'the database refused the user or the password: check storage.url',
        facts,
        because,
      )
    case 'missing':
      return new GatewayError(
        'STORAGE_FAILED',
        'the database that storage.url names does not exist: create it (createdb), or correct the name',
        facts,
        because,
      )
    case 'full':
      return new GatewayError('STORAGE_FULL', 'the database has no space left', facts, because)
    case 'unreachable':
    case 'statement':
      return new GatewayError(
        'STORAGE_FAILED',
        `the schema could not be made or used: ${hintOf(error)}`,
        facts,
        because,
      )
  }
}

/** What the server says of a migration names tables and rights, nothing that anybody wrote. */
function hintOf({ state, cause }: DatabaseError): string {
  const said = cause instanceof Error ? cause.message : state
  return state === '42501'
    ? `${said}: create it for the user of storage.url (create schema … authorization …), or give that user the right to make and use it`
    : said
}
