import * as vitest from 'vitest'
import { silentLog } from '../../../src/base/log.ts'
import { openFilesStorage } from '../../../src/storage/files/files-storage.ts'
import { DEFAULT_MESSAGE_LIMITS } from '../../../src/storage/local/message-rows.ts'
import { DEFAULT_LEDGER } from '../../../src/storage/local/usage-ledger.ts'
import { createMemoryStorage } from '../../../src/storage/memory/memory-storage.ts'
import { RunningClock } from '../../support/running-clock.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { ScriptedProcesses } from '../../../src/testing/scripted-processes.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'
import { openTestNode } from '../../support/postgres-storage.ts'
import { emptySchema, endLeases, freshSchema } from '../../support/test-database.ts'
import { describeStorage } from './all.ts'
import type { StorageUnderTest } from './given.ts'

const START = 1_000_000

describeStorage('memory', vitest, async () => {
  const storage = createMemoryStorage({ clock: new RunningClock(START), ids: new SeededIds() })
  await storage.start()
  return { storage, close: () => storage.close() }
})

describeStorage('files', vitest, () => openFiles(new MemoryFiles()))

const schema = freshSchema()

describeStorage('PostgreSQL', vitest, async () => {
  await (await openTestNode(schema)).close()
  await emptySchema(schema)
  return openNode()
})

/** A killed node leaves its row behind; its lease has run out when the next one looks. */
async function openNode(): Promise<StorageUnderTest> {
  const storage = await openTestNode(schema)
  await storage.start()
  return {
    storage,
    async restart() {
      await storage.kill()
      await endLeases(schema)
      return openNode()
    },
    close: () => storage.close(),
  }
}

async function openFiles(files: MemoryFiles): Promise<StorageUnderTest> {
  const opened = await openFilesStorage({
    files,
    clock: new RunningClock(START, () => !files.isCrashed),
    ids: new SeededIds(),
    processes: new ScriptedProcesses(),
    log: silentLog,
    paths: {
      journal: '/home/journal',
      journalHead: '/home/journal-head.json',
      transcripts: '/home/sessions',
      sessionsFile: '/home/sessions.json',
      rows: '/home/rows',
      archive: '/home/archive',
      workspace: '/home/workspace',
    },
    limits: DEFAULT_MESSAGE_LIMITS,
    usage: DEFAULT_LEDGER,
    state: {},
    durability: 'sync',
    cacheBytes: 1024 * 1024,
    wasAbandoned: false,
    fence: () => undefined,
    hooks: () => ({}),
    onFailed: () => undefined,
  })
  await opened.storage.start()
  return { storage: opened.storage, restart: () => openFiles(files.kill()), close: () => opened.close() }
}
