import type { Clock } from '../../base/clock.ts'
import type { Ids } from '../../base/ids.ts'
import { silentLog, type Log } from '../../base/log.ts'
import { createMemoryStore } from '../../transcript/memory-store.ts'
import type { RecordLog } from '../../base/journal.ts'
import { LocalStorage } from '../local/local-storage.ts'
import type { DeliveryLimits } from '../local/message-rows.ts'
import { DEFAULT_MESSAGE_LIMITS } from '../local/message-rows.ts'
import type { Storage } from '../storage.ts'

export interface MemoryStorageOptions {
  readonly clock: Clock
  readonly ids: Ids
  readonly log?: Log
  readonly limits?: Partial<DeliveryLimits>
}

/** Nothing outlives the process; everything else is as with files: the same tables, without a journal. */
export function createMemoryStorage({ clock, ids, log = silentLog, limits }: MemoryStorageOptions): Storage {
  const storage = new LocalStorage({ clock, log, limits: { ...DEFAULT_MESSAGE_LIMITS, ...limits } })
  const topics = new Map(storage.topics.map((topic) => [topic.name, topic]))
  const records: RecordLog = {
    async commit(batch) {
      // Where a journal waits for the disk, so that callers do not come to depend on what is at once.
      await Promise.resolve()
      for (const { topic, data } of batch) topics.get(topic)?.apply(data)
    },
  }
  const transcripts = createMemoryStore({
    clock,
    ids,
    log,
    commit: (changes, owner) => storage.commitWith([], changes, owner),
  })
  storage.attach(records, transcripts)
  return storage
}
