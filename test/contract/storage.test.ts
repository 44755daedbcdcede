import { describe, it } from 'vitest'
import { createMemoryStorage } from '../../src/storage/memory/memory-storage.ts'
import { describeStorage } from '../../src/testing/contracts/storage.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'
import { openTestNode } from '../support/postgres-storage.ts'
import { emptySchema, freshSchema } from '../support/test-database.ts'

const runner = { describe, it }

describeStorage('storage in memory', runner, async () => {
  const clock = new ManualClock()
  return { storage: createMemoryStorage({ clock, ids: new SeededIds() }), now: () => clock.now() }
})

const schema = freshSchema()

describeStorage('storage in PostgreSQL', runner, async () => {
  const storage = await openTestNode(schema)
  await emptySchema(schema)
  return { storage, reopen: () => openTestNode(schema) }
})
