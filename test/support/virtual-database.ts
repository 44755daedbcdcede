import type { Clock } from '../../src/base/clock.ts'
import { DatabaseError, type Database, type DatabaseOptions, type Databases } from '../../src/base/database.ts'
import { pgDatabases } from '../../src/platform/pg-databases.ts'
import { duringOutsideWork } from '../../src/testing/outside-work.ts'
import { databaseUrl } from './test-database.ts'

/** A connection that idled for 30 s is replaced, and the new one does not know the time yet. */
const TIME_IS_KNOWN_MS = 10_000
const NOTHING = { name: 'nothing', text: 'select' }
const SET_TIME = { name: 'set_time', text: `select set_config('clew.now', $1, false)` }

/**
 * A real PostgreSQL whose time is the test's. The functions of time in a schema of `virtual-schemas.ts` read a setting of
 * the connection, which is set before the first statement after each change: one connection, statements in order.
 */
export function virtualDatabases(deps: {
  readonly clock: Clock
  /** False once the program that asks was killed: nothing of it reaches the database any more. */
  isAlive(): boolean
  onOpen(): void
  onClose(): void
}): Databases {
  return {
    async open(options) {
      const real = idle.get(options.schema)?.pop() ?? (await openReal(options))
      deps.onOpen()
      return withTime(real, { ...deps, giveBack: () => giveBack(options.schema, real) })
    },
  }
}

/**
 * Connections that a gateway has closed, by schema: the next gateway there goes on with one of them. PostgreSQL plans every
 * statement anew on each connection, which takes longer than most tests.
 */
const idle = new Map<string, Database[]>()

function openReal(options: DatabaseOptions): Promise<Database> {
  return pgDatabases.open({ ...options, schema: `${options.schema},pg_catalog`, pool: 1, timeoutMs: 30_000 })
}

function giveBack(schema: string, real: Database): void {
  idle.set(schema, [...(idle.get(schema) ?? []), real])
}

/** A statement of a test about its schema, on a connection that is there anyway. */
export async function askIdle<T>(schema: string, work: (database: Database) => Promise<T>): Promise<T> {
  const real = idle.get(schema)?.pop() ?? (await openReal({ ...TESTS, url: await databaseUrl(), schema }))
  try {
    await real.query(SET_TIME, ['0'])
    return await work(real)
  } finally {
    giveBack(schema, real)
  }
}

const TESTS = { pool: 1, timeoutMs: 30_000, application: 'clew tests' }

function withTime(
  real: Database,
  {
    clock,
    isAlive,
    onClose,
    giveBack,
  }: { readonly clock: Clock; isAlive(): boolean; onClose(): void; giveBack(): void },
): Database {
  let isClosed = false
  let set: { readonly time: number; readonly at: number } | undefined
  const outside = <T>(work: () => Promise<T>): Promise<T> => {
    if (!isAlive() || isClosed) return Promise.reject(new DatabaseError('unreachable', 'killed', undefined))
    const time = clock.now()
    const at = performance.now()
    if (set?.time !== time || at - set.at > TIME_IS_KNOWN_MS) {
      set = { time, at }
      duringOutsideWork(real.query(SET_TIME, [String(time)])).catch(() => undefined)
    }
    return duringOutsideWork(work())
  }
  return {
    get connections() {
      return real.connections
    },
    query: (statement, values) => outside(() => real.query(statement, values)),
    transaction: (work) => outside(() => real.transaction(work)),
    async listen(channels, heard, onLost) {
      const listening = await outside(() => real.listen(channels, heard, onLost))
      return { close: () => duringOutsideWork(listening.close()) }
    },
    async close() {
      onClose()
      if (isClosed) return
      isClosed = true
      // A transaction that goes on is awaited: nothing can be asked on the one connection before its end.
      const isUsable = await duringOutsideWork(real.query(NOTHING, [])).then(
        () => isAlive(),
        () => false,
      )
      if (isUsable) giveBack()
      else await duringOutsideWork(real.close())
    },
  }
}
