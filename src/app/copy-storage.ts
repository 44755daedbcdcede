import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseError, type Database, type Queries } from '../base/database.ts'
import { makeDurableDirectory } from '../base/files.ts'
import { GatewayError } from '../core/errors.ts'
import { ownFile } from '../platform/own-folder.ts'
import { copyItems, finishCopy, verifyCopy, type CopyStart } from '../storage/copy/copy.ts'
import type { ImageReader, ImageWriter, ItemKind, Progress } from '../storage/copy/image.ts'
import type { Tallies } from '../storage/copy/tally.ts'
import { HomeReader, type HomeImageOptions } from '../storage/files/home-reader.ts'
import { HomeWriter } from '../storage/files/home-writer.ts'
import { toStorageError } from '../storage/postgres/group-commit.ts'
import { openMigrated, openPresent } from '../storage/postgres/open.ts'
import { PostgresReader } from '../storage/postgres/image-reader.ts'
import { PostgresWriter } from '../storage/postgres/image-writer.ts'
import { lockHome } from './home-lock.ts'
import { homePaths, type HomePaths } from './home.ts'
import type { Platform } from './platform.ts'

/** One side of a copy. */
export type CopyPlace =
  | { readonly kind: 'files'; readonly home: string }
  | { readonly kind: 'postgres'; readonly url: string; readonly schema: string }

export interface CopyRequest {
  readonly from: CopyPlace
  readonly to: CopyPlace
  onProgress?(kind: ItemKind, done: number): void
  readonly signal: AbortSignal
}

export interface CopyReport {
  readonly start: CopyStart
  /** What both sides hold. */
  readonly tallies: Tallies
  /** Damaged transcripts of the source: the copy has them repaired. */
  readonly repaired: number
}

/**
 * Copies everything durable from files to PostgreSQL or back, and compares both sides at the end. Refuses sides that a
 * gateway uses. Interrupted, it goes on with the next call; a repeat of a complete copy only compares.
 */
export async function copyStorage(platform: Platform, request: CopyRequest): Promise<CopyReport> {
  const { from, to, onProgress, signal } = request
  return withSource(platform, from, (source) =>
    withTarget(platform, to, async ({ writer, withReader }) => {
      const options = { source: source.reader, target: writer, from: describe(from), signal }
      const start = await copyItems({ ...options, ...(onProgress === undefined ? {} : { onProgress }) })
      const tallies = await withReader((reader) => verifyCopy(source.reader, reader))
      await source.requireUnused()
      if (start !== 'complete') await finishCopy(writer, options.from)
      return { start, tallies, repaired: source.repaired() }
    }),
  )
}

interface Source {
  readonly reader: ImageReader
  repaired(): number
  /** Throws when a gateway began to use it since. */
  requireUnused(): Promise<void>
}

interface Target {
  readonly writer: ImageWriter
  /** Reads it anew. */
  withReader<T>(use: (reader: ImageReader) => Promise<T>): Promise<T>
}

function withSource<T>(platform: Platform, place: CopyPlace, use: (source: Source) => Promise<T>): Promise<T> {
  if (place.kind === 'files')
    return withHome(platform, place.home, 'must-exist', (paths) =>
      withHomeReader(platform, paths, (reader) =>
        use({ reader, repaired: () => reader.repaired, requireUnused: async () => undefined }),
      ),
    )
  return withDatabase(platform, place, openPresent, (database) =>
    database.transaction(async (queries) => {
      const reader = new PostgresReader(queries)
      await reader.begin()
      return use({ reader, repaired: () => 0, requireUnused: () => requireUnused(database) })
    }),
  )
}

function withTarget<T>(platform: Platform, place: CopyPlace, use: (target: Target) => Promise<T>): Promise<T> {
  if (place.kind === 'files')
    return withHome(platform, place.home, 'make', async (paths) => {
      const withReader: Target['withReader'] = (read) => withHomeReader(platform, paths, read)
      const found = await withHomeReader(platform, paths, async ({ progress }) => progress)
      if (found?.state === 'done') return use({ writer: finished(found), withReader })
      const writer = await HomeWriter.open(imageOptions(platform, paths))
      try {
        return await use({ writer, withReader })
      } finally {
        await writer.close()
      }
    })
  return withDatabase(platform, place, openMigrated, (database) =>
    database.transaction(async (lock) => {
      await lockSchema(lock)
      return use({
        writer: new PostgresWriter(database),
        withReader: (read) =>
          database.transaction(async (queries) => {
            const reader = new PostgresReader(queries)
            await reader.begin()
            return read(reader)
          }),
      })
    }),
  )
}

/** A copy that is complete is not even opened for writing. */
function finished(progress: Progress): ImageWriter {
  const refuse = (): Promise<never> => Promise.reject(new Error('the copy is complete'))
  return { progress: async () => progress, isEmpty: async () => false, write: refuse, complete: refuse }
}

/** Locked, so that no gateway can start in it meanwhile. */
async function withHome<T>(
  platform: Platform,
  home: string,
  missing: 'must-exist' | 'make',
  use: (paths: HomePaths) => Promise<T>,
): Promise<T> {
  const paths = homePaths(home, {})
  const stat = await platform.files.stat(paths.home)
  if (stat === undefined && missing === 'must-exist')
    throw new GatewayError('HOME_NOT_FOUND', `there is no home at ${paths.home}`, { home: paths.home })
  if (stat === undefined) await makeDurableDirectory(platform.files, paths.home)
  const lock = await lockHome(platform, paths.home, paths.lock, () => undefined)
  try {
    return await use(paths)
  } finally {
    await lock.release()
  }
}

/** The journal is replayed and transcripts are repaired in a folder beside, which goes at the end. */
async function withHomeReader<T>(
  platform: Platform,
  paths: HomePaths,
  use: (reader: HomeReader) => Promise<T>,
): Promise<T> {
  const { files, ids } = platform
  const scratch = join(tmpdir(), `clew-copy-${ids.hex(16)}`)
  await files.makeDirectory(scratch)
  try {
    const reader = await HomeReader.open(imageOptions(platform, paths), scratch)
    try {
      return await use(reader)
    } finally {
      await reader.close()
    }
  } finally {
    await files.removeDirectory(scratch)
  }
}

function imageOptions({ files, clock, ids, processes, log }: Platform, paths: HomePaths): HomeImageOptions {
  return { files, clock, ids, processes, log, paths }
}

const MIGRATIONS = ownFile('storage/postgres/migrations')
const STATEMENT_TIMEOUT_MS = 60_000
/** One reads or writes, one holds the lock, one compares. */
const CONNECTIONS = 3

async function withDatabase<T>(
  platform: Platform,
  { url, schema }: Extract<CopyPlace, { kind: 'postgres' }>,
  open: typeof openMigrated,
  use: (database: Database) => Promise<T>,
): Promise<T> {
  const { databases } = platform
  if (databases === undefined) throw new GatewayError('CONFIG_INVALID', 'there is no driver for PostgreSQL here', {})
  const settings = { url, schema, pool: CONNECTIONS, timeoutMs: STATEMENT_TIMEOUT_MS, application: 'clew storage copy' }
  const database = await open({ ...platform, databases, migrations: MIGRATIONS, settings })
  try {
    await requireUnused(database)
    return await use(database)
  } catch (error) {
    throw error instanceof DatabaseError ? toStorageError(error) : error
  } finally {
    await database.close()
  }
}

/** By the database's clock, and by the lease that each node has. */
const IN_USE = {
  name: '',
  text: `select id, address from nodes where heartbeat_at > clock_timestamp() - 3 * (lease_until - heartbeat_at)`,
}

async function requireUnused(database: Database): Promise<void> {
  const nodes = await database.query<{ id: string; address: string }>(IN_USE, [])
  const [node] = nodes
  if (node === undefined) return
  throw new GatewayError(
    'STORAGE_IN_USE',
    `a gateway uses the database (${node.id} at ${node.address}${nodes.length > 1 ? `, and ${nodes.length - 1} more` : ''}); stop it, or wait until three leases of a killed one have passed`,
    { nodes: nodes.length },
  )
}

/** Until the transaction ends: two copies into one schema would mix. */
async function lockSchema(queries: Queries): Promise<void> {
  const text = `select pg_try_advisory_xact_lock(hashtextextended(current_schema || chr(10) || 'copy', 0)) as is_ours`
  const [row] = await queries.query<{ is_ours: boolean }>({ name: '', text }, [])
  if (row?.is_ours !== true)
    throw new GatewayError('STORAGE_IN_USE', 'another copy into this schema is under way', { nodes: 0 })
}

/** Without user and password: it is stored in the copy. */
function describe(place: CopyPlace): string {
  if (place.kind === 'files') return `home ${homePaths(place.home, {}).home}`
  const { host, pathname } = new URL(place.url)
  return `PostgreSQL ${host}${pathname} schema ${place.schema}`
}
