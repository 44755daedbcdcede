import { createServer, type Server } from 'node:net'
import type { TestProject } from 'vitest/node'
import { pgDatabases } from '../../src/platform/pg-databases.ts'
import { startServer, WITHOUT_DISK, type RunningServer } from './server.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** A port that answers with the address of the tests' PostgreSQL, and starts it for the first one who asks. */
    readonly databasePort: number
    /** What the names of this run's schemas begin with. */
    readonly schemaPrefix: string
  }
}

let starting: Promise<RunningServer> | undefined
let door: Server | undefined
const schemaPrefix = `test_${process.pid}_${Date.now().toString(36)}_`

/** One database server for the whole run, started when a test needs it; `CLEW_TEST_DATABASE_URL` replaces it. */
export async function setup(project: TestProject): Promise<void> {
  door = createServer((socket) => {
    socket.on('error', () => undefined)
    starting ??= startServer(WITHOUT_DISK)
    starting.then(
      ({ url }) => socket.end(JSON.stringify({ url })),
      (error: unknown) => socket.end(JSON.stringify({ problem: error instanceof Error ? error.message : 'unknown' })),
    )
  })
  project.provide('databasePort', await listening(door))
  project.provide('schemaPrefix', schemaPrefix)
}

export async function teardown(): Promise<void> {
  door?.close()
  const given = process.env['CLEW_TEST_DATABASE_URL']
  if (given !== undefined && given !== '') await dropSchemas(given)
  await starting?.then((server) => server.stop()).catch(() => undefined)
}

/** From a server that outlives the run; the tests' own goes as a whole. */
async function dropSchemas(url: string): Promise<void> {
  const options = { url, schema: 'public', pool: 1, timeoutMs: 20_000, application: 'clew tests' }
  const database = await pgDatabases.open(options)
  const ours = { name: '', text: 'select nspname as name from pg_namespace where starts_with(nspname, $1)' }
  for (const { name } of await database.query<{ name: string }>(ours, [schemaPrefix]))
    await database.transaction((queries) => queries.run(`drop schema ${name} cascade`))
  await database.close()
}

function listening(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : 0)
    })
  })
}
