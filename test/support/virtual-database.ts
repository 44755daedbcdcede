import type { Clock } from '../../src/base/clock.ts'
import { DatabaseError, type Database, type Databases } from '../../src/base/database.ts'
import { pgDatabases } from '../../src/platform/pg-databases.ts'
import { duringOutsideWork } from '../../src/testing/outside-work.ts'

/** A connection that idled for 30 s is replaced, and the new one does not know the time yet. */
const TIME_IS_KNOWN_MS = 10_000
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
      const real = await pgDatabases.open({
        ...options,
        schema: `${options.schema},pg_catalog`,
        pool: 1,
        timeoutMs: 30_000,
      })
      deps.onOpen()
      return withTime(real, deps)
    },
  }
}

function withTime(
  real: Database,
  { clock, isAlive, onClose }: { readonly clock: Clock; isAlive(): boolean; onClose(): void },
): Database {
  let set: { readonly time: number; readonly at: number } | undefined
  const outside = <T>(work: () => Promise<T>): Promise<T> => {
    if (!isAlive()) return Promise.reject(new DatabaseError('unreachable', 'killed', undefined))
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
      await duringOutsideWork(real.close())
    },
  }
}
