import { GatewayError } from '../core/errors.ts'
import type { Blobs } from './blobs.ts'
import type { Transcript } from './store.ts'
import type { LogTranscript } from './transcript.ts'

/** One opener's view of a shared transcript. Closing it ends this view only. */
export function createHandle(shared: LogTranscript, blobs: Blobs, onClose: () => Promise<void>): Transcript {
  let closed = false
  const live = (): LogTranscript => {
    if (closed)
      throw new GatewayError('TRANSCRIPT_CLOSED', 'the transcript was closed', { sessionId: shared.sessionId })
    return shared
  }
  return {
    sessionId: shared.sessionId,
    get header() {
      return shared.header
    },
    get leafId() {
      return shared.leafId
    },
    get repairs() {
      return shared.repairs
    },
    append: async (drafts, options) => live().append(drafts, options),
    context: async () => live().context(),
    branch: async (from) => live().branch(from),
    async *entries() {
      yield* live().entries()
    },
    entry: async (id) => live().entry(id),
    branchTo: async (id) => live().branchTo(id),
    branchWithSummary: async (id, summary) => live().branchWithSummary(id, summary),
    blob: (id) => blobs.get(id),
    async close() {
      if (closed) return
      closed = true
      await onClose()
    },
  }
}
