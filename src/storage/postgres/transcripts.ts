import type { Clock } from '../../base/clock.ts'
import type { Database } from '../../base/database.ts'
import type { Ids } from '../../base/ids.ts'
import type { Log } from '../../base/log.ts'
import { GatewayError } from '../../core/errors.ts'
import type { SessionId } from '../../core/ids.ts'
import { blobId, type Blobs } from '../../transcript/blobs.ts'
import type { WriteHooks } from '../../transcript/guard.ts'
import { createHandle } from '../../transcript/open-transcripts.ts'
import { DEFAULT_LIMITS, type TranscriptLimits, capOf } from '../../transcript/limits.ts'
import { FORMAT_VERSION } from '../../transcript/line.ts'
import type { TranscriptStore } from '../../transcript/store.ts'
import { LogTranscript } from '../../transcript/transcript.ts'
import { fromColumn, toColumn } from './column-text.ts'
import { PostgresLog } from './entry-log.ts'
import type { TranscriptBase } from './postgres-storage.ts'

export interface PostgresTranscriptsOptions {
  readonly clock: Clock
  readonly ids: Ids
  readonly log: Log
  readonly cwd: string
  readonly hooks: WriteHooks
  readonly limits?: Partial<TranscriptLimits>
}

const EXISTS = { name: 'transcript_exists', text: 'select from transcripts where session_id = $1 and entries > 0' }
const RENAME = {
  name: 'transcript_rename',
  text: `with blob as (update blobs set session_id = $2 where session_id = $1)
    update transcripts set session_id = $2 where session_id = $1 returning session_id`,
}
const REMOVE = {
  name: 'transcript_remove',
  text: `with blob as (delete from blobs where session_id = any ($1)) delete from transcripts where session_id = any ($1)`,
}
const PUT_BLOB = {
  name: 'blob_put',
  text: 'insert into blobs (session_id, id, content) values ($1, $2, $3) on conflict do nothing',
}
const GET_BLOB = { name: 'blob_get', text: 'select content from blobs where session_id = $1 and id = $2' }

interface Kept {
  readonly transcript: LogTranscript
  readonly log: PostgresLog
  users: number
}

/**
 * Transcripts as rows. One that is open is shared on its node and held in memory; closed ones stay there within
 * `cacheBytes`, and are looked at before they are used again: another node may have written meanwhile.
 */
export function createPostgresTranscripts(base: TranscriptBase, options: PostgresTranscriptsOptions): TranscriptStore {
  const { database } = base
  const limits = { ...DEFAULT_LIMITS, ...options.limits }
  const kept = new Map<SessionId, Promise<Kept>>()

  const load = async (sessionId: SessionId, signal: AbortSignal): Promise<Kept> => {
    const { clock, ids, log, cwd, hooks } = options
    const timestamp = new Date(clock.now()).toISOString()
    const header = { type: 'session', version: FORMAT_VERSION, id: sessionId, timestamp, cwd } as const
    const isNew = base.entriesOf(sessionId) === 0
    const lines = new PostgresLog({ sessionId, database, commit: base.commit, header, isNew })
    const blobs = createBlobs(database, sessionId, limits.maxBlobBytes)
    const guard = { sessionId, clock, log, blobs, hooks, hookTimeoutMs: limits.hookTimeoutMs, cap: capOf(limits) }
    const transcript = await LogTranscript.open(
      { sessionId, log: lines, clock, ids, maxLineBytes: limits.maxLineBytes, guard },
      signal,
    )
    return { transcript, log: lines, users: 0 }
  }

  /** One that another node wrote to meanwhile is read anew, also while a turn that lost its session still has it. */
  const isCurrent = async ({ transcript, log: lines }: Kept, sessionId: SessionId): Promise<boolean> => {
    if (await lines.isCurrent(base.entriesOf(sessionId))) return true
    // What this node is writing at this moment is in the database before it is known here.
    await transcript.settled()
    return lines.isCurrent(undefined)
  }

  const current = async (sessionId: SessionId, signal: AbortSignal): Promise<Kept> => {
    const known = kept.get(sessionId)
    if (known !== undefined) {
      const one = await known.catch(() => undefined)
      if (one !== undefined && (await isCurrent(one, sessionId))) return one
    }
    if (kept.get(sessionId) !== known) return current(sessionId, signal)
    const loading = load(sessionId, signal)
    kept.set(sessionId, loading)
    loading.catch(() => kept.get(sessionId) === loading && kept.delete(sessionId))
    return loading
  }

  /** The ones used longest ago go first. */
  const shrink = async (): Promise<void> => {
    const all = await Promise.all([...kept].map(async ([id, one]) => [id, await one.catch(() => undefined)] as const))
    let bytes = all.reduce((sum, [, one]) => sum + (one?.log.heldBytes ?? 0), 0)
    for (const [id, one] of all) {
      if (bytes <= limits.cacheBytes) return
      if (one === undefined || one.users > 0) continue
      kept.delete(id)
      bytes -= one.log.heldBytes
    }
  }

  const forget = async (sessionId: SessionId): Promise<void> => {
    const one = await kept.get(sessionId)?.catch(() => undefined)
    await one?.transcript.settled()
    kept.delete(sessionId)
  }

  return {
    async open(sessionId, signal) {
      signal.throwIfAborted()
      const one = await current(sessionId, signal)
      one.users++
      kept.delete(sessionId)
      kept.set(sessionId, Promise.resolve(one))
      return createHandle(one.transcript, createBlobs(database, sessionId, limits.maxBlobBytes), async () => {
        one.users--
        await shrink()
      })
    },
    async exists(sessionId) {
      return (await database.query(EXISTS, [toColumn(sessionId)])).length > 0
    },
    async archive(sessionId) {
      await forget(sessionId)
      await database.query(RENAME, [toColumn(sessionId), archivedName(sessionId)])
    },
    async restore(sessionId) {
      const renamed = await database.query(RENAME, [archivedName(sessionId), toColumn(sessionId)])
      if (renamed.length === 0)
        throw new GatewayError('ARCHIVE_NOT_FOUND', 'no archived transcript of this session', { sessionId })
      kept.delete(sessionId)
    },
    async remove(sessionId) {
      await forget(sessionId)
      await database.query(REMOVE, [[toColumn(sessionId), archivedName(sessionId)]])
    },
    async close() {
      for (const one of kept.values()) await (await one.catch(() => undefined))?.transcript.close()
      kept.clear()
    },
  }
}

function archivedName(sessionId: SessionId): string {
  return `archived:${toColumn(sessionId)}`
}

function createBlobs(database: Pick<Database, 'query'>, sessionId: SessionId, maxBytes: number): Blobs {
  return {
    async put(text) {
      const bytes = Buffer.byteLength(text)
      if (bytes > maxBytes)
        throw new GatewayError('ENTRY_TOO_LARGE', 'the tool result is larger than a blob may be', { bytes, maxBytes })
      const id = blobId(text)
      await database.query(PUT_BLOB, [toColumn(sessionId), id, toColumn(text)])
      return id
    },
    async get(id) {
      const [row] = await database.query<{ content: string }>(GET_BLOB, [toColumn(sessionId), toColumn(id)])
      return row === undefined ? undefined : fromColumn(row.content)
    },
  }
}
