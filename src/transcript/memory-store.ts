import type { Clock } from '../base/clock.ts'
import type { Ids } from '../base/ids.ts'
import { silentLog, type Log } from '../base/log.ts'
import type { Entry } from '../core/entry.ts'
import { GatewayError } from '../core/errors.ts'
import type { SessionId } from '../core/ids.ts'
import { createMemoryBlobs, type Blobs } from './blobs.ts'
import type { WriteHooks } from './guard.ts'
import { createHandle } from './open-transcripts.ts'
import { capOf, DEFAULT_LIMITS, type TranscriptLimits } from './limits.ts'
import { FORMAT_VERSION } from './line.ts'
import { MemoryLog, type CommitChanges } from './memory-log.ts'
import type { TranscriptStore } from './store.ts'
import { LogTranscript } from './transcript.ts'

/** What a store in memory needs; nothing of it survives the process. */
export interface MemoryStoreOptions {
  readonly clock: Clock
  readonly ids: Ids
  readonly log?: Log
  readonly cwd?: string
  readonly hooks?: WriteHooks
  readonly limits?: Partial<TranscriptLimits>
  /** Where the changes of an append go; without it they are refused. */
  readonly commit?: CommitChanges
  readonly onAppended?: (sessionId: SessionId, entries: readonly Entry[]) => void
}

interface Kept {
  readonly transcript: LogTranscript
  readonly blobs: Blobs
}

/** Transcripts that live as long as the store does. For tests, demos and callers that keep nothing. */
export function createMemoryStore(options: MemoryStoreOptions): TranscriptStore {
  const limits = { ...DEFAULT_LIMITS, ...options.limits }
  const active = new Map<SessionId, Promise<Kept>>()
  const archived = new Map<SessionId, Promise<Kept>>()

  const create = async (sessionId: SessionId, signal: AbortSignal): Promise<Kept> => {
    const { clock, ids, log = silentLog, cwd = '/', hooks = {}, commit, onAppended } = options
    const timestamp = new Date(clock.now()).toISOString()
    const blobs = createMemoryBlobs()
    const transcript = await LogTranscript.open(
      {
        sessionId,
        log: new MemoryLog({ type: 'session', version: FORMAT_VERSION, id: sessionId, timestamp, cwd }, commit),
        clock,
        ids,
        maxLineBytes: limits.maxLineBytes,
        guard: { sessionId, clock, log, blobs, hooks, hookTimeoutMs: limits.hookTimeoutMs, cap: capOf(limits) },
        ...(onAppended === undefined ? {} : { onAppended }),
      },
      signal,
    )
    return { transcript, blobs }
  }

  return {
    async open(sessionId, signal) {
      signal.throwIfAborted()
      let kept = active.get(sessionId)
      if (kept === undefined) {
        kept = create(sessionId, signal)
        active.set(sessionId, kept)
      }
      const { transcript, blobs } = await kept
      return createHandle(transcript, blobs, async () => undefined)
    },
    async exists(sessionId) {
      const kept = await active.get(sessionId)
      return kept !== undefined && kept.transcript.heldBytes > 0
    },
    async archive(sessionId) {
      const kept = active.get(sessionId)
      if (kept === undefined) return
      active.delete(sessionId)
      archived.set(sessionId, kept)
    },
    async restore(sessionId) {
      const kept = archived.get(sessionId)
      if (kept === undefined) {
        throw new GatewayError('ARCHIVE_NOT_FOUND', 'no archived transcript of this session', { sessionId })
      }
      archived.delete(sessionId)
      active.set(sessionId, kept)
    },
    async remove(sessionId) {
      active.delete(sessionId)
      archived.delete(sessionId)
    },
    async close() {
      for (const kept of active.values()) await (await kept).transcript.close()
    },
  }
}
