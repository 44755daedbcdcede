import type pg from 'pg'
import {
  DatabaseError,
  type Database,
  type DatabaseFailure,
  type DatabaseOptions,
  type Databases,
  type Listening,
  type Queries,
  type SqlValue,
  type Statement,
} from '../base/database.ts'

const INT8 = 20
const JSON_TYPE = 114
const JSONB = 3802

/** Counters stay far below 2^53, and JSON is read by those who check it. */
const types = {
  async overrides(): Promise<NonNullable<pg.ClientConfig['types']>> {
    const { default: driver } = await import('pg')
    const asText = (value: string): string => value
    const ours: Readonly<Record<number, (value: string) => unknown>> = {
      [INT8]: Number,
      [JSON_TYPE]: asText,
      [JSONB]: asText,
    }
    const getTypeParser = (oid: number, format?: 'text' | 'binary'): unknown =>
      ours[oid] ?? driver.types.getTypeParser(oid, format)
    return { getTypeParser }
  },
}

/** The driver is loaded when the first database is opened: a gateway on files never pays for it. */
export const pgDatabases: Databases = {
  async open(options) {
    const { default: driver } = await import('pg')
    const settings = settingsOf(options, await types.overrides())
    // The driver waits for what this returns, which its types do not say.
    const onConnect = (client: pg.ClientBase): unknown => client.query(SETTINGS, [options.schema])
    const pool = new driver.Pool({ ...settings, max: options.pool, idleTimeoutMillis: 30_000, onConnect })
    // A connection that ends while it is idle is replaced; without a listener its error would end the program.
    pool.on('error', () => undefined)
    return new PgDatabase(pool, () => new driver.Client(settings))
  },
}

/**
 * What correctness depends on, whatever is set for the user or the database: a statement that waits for a lock sees what
 * its last holder did, and what is done is on the disk. They are said by a statement, because poolers refuse settings that
 * come with the beginning of a connection.
 */
const SETTINGS = `select set_config('search_path', $1, false), set_config('synchronous_commit', 'on', false),
  set_config('default_transaction_isolation', 'read committed', false)`

function settingsOf(
  { url, timeoutMs, application }: DatabaseOptions,
  parsers: NonNullable<pg.ClientConfig['types']>,
): pg.ClientConfig {
  return {
    connectionString: url,
    application_name: application,
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 5_000,
    types: parsers,
  }
}

class PgDatabase implements Database {
  readonly #pool: pg.Pool
  readonly #newClient: () => pg.Client
  #ending: Promise<void> | undefined

  constructor(pool: pg.Pool, newClient: () => pg.Client) {
    this.#pool = pool
    this.#newClient = newClient
  }

  get connections(): number {
    return this.#pool.totalCount
  }

  async query<Row>(statement: Statement, values: readonly SqlValue[]): Promise<readonly Row[]> {
    try {
      const { rows } = await this.#pool.query({ ...statement, values: [...values] })
      return rows as Row[]
    } catch (error) {
      throw describeFailure(error)
    }
  }

  async transaction<T>(work: (queries: Queries) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect().catch((error: unknown) => {
      throw describeFailure(error)
    })
    const ignore = (): void => undefined
    client.on('error', ignore)
    let broken: Error | undefined
    try {
      await client.query('begin')
      const result = await work(queriesOn(client))
      await client.query('commit')
      return result
    } catch (error) {
      await client.query('rollback').catch((failed: Error) => {
        broken = failed
      })
      throw error instanceof DatabaseError ? error : describeFailure(error)
    } finally {
      client.removeListener('error', ignore)
      client.release(broken)
    }
  }

  async listen(channels: readonly string[], heard: (payload: string) => void, onLost: () => void): Promise<Listening> {
    const client = this.#newClient()
    let isOver = false
    const lost = (): void => {
      if (isOver) return
      isOver = true
      void client.end().catch(() => undefined)
      onLost()
    }
    // The driver emits both for one lost connection.
    client.on('error', lost)
    client.on('end', lost)
    client.on('notification', ({ payload }) => heard(payload ?? ''))
    try {
      await client.connect()
      for (const channel of channels) await client.query(`listen ${client.escapeIdentifier(channel)}`)
    } catch (error) {
      isOver = true
      void client.end().catch(() => undefined)
      throw describeFailure(error)
    }
    return {
      async close() {
        isOver = true
        await client.end().catch(() => undefined)
      },
    }
  }

  async close(): Promise<void> {
    // The driver refuses to be ended twice; a gateway may be stopped twice.
    this.#ending ??= this.#pool.end()
    await this.#ending
  }
}

/** A step that builds an index on many rows is not away, and neither is a node that waits until another has done it. */
const MIGRATION_MS = 86_400_000

function queriesOn(client: pg.PoolClient): Queries {
  return {
    async query<Row>(statement: Statement, values: readonly SqlValue[]) {
      const { rows } = await client.query({ ...statement, values: [...values] })
      return rows as Row[]
    },
    async run(sql) {
      // The driver's types lack what it reads.
      const query: pg.QueryConfig & { readonly query_timeout: number } = { text: sql, query_timeout: MIGRATION_MS }
      await client.query(query)
    },
  }
}

const FAILURES: readonly (readonly [RegExp, DatabaseFailure])[] = [
  [/^28/, 'refused'],
  [/^3D000$/, 'missing'],
  [/^(53100|54)/, 'full'],
  // Connection lost, too many connections, shutting down or starting up, deadlock and serialization, a lock or a statement
  // that was waited for too long, a standby that takes nothing: all of them pass.
  [/^(08|53|57P0|40|E|57014|55P03|25006)/, 'unreachable'],
  [/^[0-9A-Z]{5}$/, 'statement'],
]

function describeFailure(error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  const state = typeof code === 'string' ? code : 'none'
  const failure = FAILURES.find(([pattern]) => pattern.test(state))?.[1]
  if (failure !== undefined) return new DatabaseError(failure, state, error)
  // The driver has no code for a connection that ended or a wait that was too long.
  const isOfConnection = error instanceof Error && /connection|timeout|terminated|not queryable/iu.test(error.message)
  return isOfConnection ? new DatabaseError('unreachable', state, error) : error
}
