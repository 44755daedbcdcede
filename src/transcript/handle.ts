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
  const ask = <T>(question: (transcript: LogTranscript) => Promise<T>): Promise<T> => {
    try {
      return question(live())
    } catch (error) {
      return Promise.reject(error)
    }
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
    append: (drafts, options) => ask((transcript) => transcript.append(drafts, options)),
    context: () => ask((transcript) => transcript.context()),
    branch: (from) => ask((transcript) => transcript.branch(from)),
    async *entries() {
      yield* live().entries()
    },
    entry: (id) => ask((transcript) => transcript.entry(id)),
    branchTo: (id, options) => ask((transcript) => transcript.branchTo(id, options)),
    branchWithSummary: (id, summary, options) =>
      ask((transcript) => transcript.branchWithSummary(id, summary, options)),
    blob: (id) => blobs.get(id),
    async close() {
      if (closed) return
      closed = true
      await onClose()
    },
  }
}
