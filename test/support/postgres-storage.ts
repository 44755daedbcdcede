import { ownFile } from '../../src/platform/own-folder.ts'
import { silentLog } from '../../src/base/log.ts'
import { NEVER } from '../../src/base/async.ts'
import { nodeFiles } from '../../src/platform/node-files.ts'
import { pgDatabases } from '../../src/platform/pg-databases.ts'
import { systemClock, systemIds } from '../../src/platform/system.ts'
import { openPostgresStorage, type OpenPostgresOptions } from '../../src/storage/postgres/open.ts'
import type { PostgresStorage } from '../../src/storage/postgres/postgres-storage.ts'
import { databaseUrl } from './test-database.ts'

/** One node on a schema of the tests' database. */
export async function openTestNode(
  schema: string,
  options: Partial<OpenPostgresOptions> = {},
): Promise<PostgresStorage> {
  return openPostgresStorage({
    databases: pgDatabases,
    migrations: ownFile('storage/postgres/migrations'),
    files: nodeFiles,
    clock: systemClock,
    ids: systemIds,
    log: silentLog,
    url: await databaseUrl(),
    schema,
    pool: 4,
    leaseMs: 10_000,
    address: '127.0.0.1:0',
    version: '0',
    limits: {
      rememberMs: 60_000,
      outboxPerAccount: 100,
      usage: { days: 400, hours: 50_000 },
      mostEntries: { windows: 1_000 },
    },
    cwd: '/work',
    hooks: () => ({}),
    signal: NEVER,
    ...options,
  })
}
