import { createServer, type Server } from 'node:net'
import type { TestProject } from 'vitest/node'
import { startServer, WITHOUT_DISK, type RunningServer } from './server.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** A port that answers with the address of the tests' PostgreSQL, and starts it for the first one who asks. */
    readonly databasePort: number
  }
}

let starting: Promise<RunningServer> | undefined
let door: Server | undefined

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
}

export async function teardown(): Promise<void> {
  door?.close()
  await starting?.then((server) => server.stop()).catch(() => undefined)
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
