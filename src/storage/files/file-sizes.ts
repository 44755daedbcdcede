import type { SessionId } from '../../core/ids.ts'
import type { FileSizes } from '../../transcript/topic.ts'
import { plainForm, TABLE, type Tables } from '../tables/table.ts'

const FORM = plainForm((value) => (typeof value === 'number' && Number.isSafeInteger(value) ? value : undefined))

/** How long transcripts are known to be, with those not in use on disk. */
export function fileSizes(tables: Tables): FileSizes {
  const sizes = tables.table(TABLE.transcripts, FORM)
  return {
    find: (sessionId) => sizes.find(sessionId),
    set: (sessionId, bytes) => sizes.put(sessionId, bytes),
    delete: (sessionId) => void sizes.delete(sessionId),
    held: () => [],
    async *newestFirst() {
      for await (const { key, value } of sizes.rows('older')) yield [key as SessionId, value]
    },
  }
}
