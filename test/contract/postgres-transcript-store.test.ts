import { describe, it } from 'vitest'
import { describeTranscriptStore } from '../../src/testing/contracts/transcript-store.ts'
import { openTestNode } from '../support/postgres-storage.ts'
import { emptySchema, freshSchema } from '../support/test-database.ts'

const schema = freshSchema()

describeTranscriptStore('the store in PostgreSQL', { describe, it }, async () => {
  const first = await openTestNode(schema)
  await emptySchema(schema)
  const second = await openTestNode(schema)
  return {
    store: first.transcripts,
    reopen: async () => second.transcripts,
    async close() {
      await first.close()
      await second.close()
    },
  }
})
