import { describe, it } from 'vitest'
import { openJournal } from '../../src/storage/files/journal.ts'
import { silentLog } from '../../src/base/log.ts'
import { describeTranscriptStore } from '../../src/testing/contracts/transcript-store.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../src/testing/memory-files.ts'
import { ScriptedProcesses } from '../../src/testing/scripted-processes.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'
import { openFileStore, type FileTranscriptStore } from '../../src/transcript/file-store.ts'
import { createMemoryStore } from '../../src/transcript/memory-store.ts'
import { TranscriptTopic } from '../../src/transcript/topic.ts'

const runner = { describe, it }

describeTranscriptStore('the memory store', runner, async () => ({
  store: createMemoryStore({ clock: new ManualClock(), ids: new SeededIds() }),
}))

for (const durability of ['sync', 'fast'] as const) {
  describeTranscriptStore(`the file store on its own (${durability})`, runner, async () => {
    const clock = new ManualClock()
    const files = new MemoryFiles({ now: () => clock.now() })
    const ids = new SeededIds()
    const open = (): Promise<FileTranscriptStore> =>
      openFileStore({
        files,
        clock,
        ids,
        processes: new ScriptedProcesses(),
        log: silentLog,
        directory: '/home/sessions',
        durability,
      })
    return { store: await open(), reopen: open }
  })
}

describeTranscriptStore('the file store over a journal', runner, async () => {
  const clock = new ManualClock()
  const files = new MemoryFiles({ now: () => clock.now() })
  const ids = new SeededIds()
  const processes = new ScriptedProcesses()
  const open = async (): Promise<FileTranscriptStore> => {
    const topic = new TranscriptTopic()
    const journal = await openJournal({
      ids: new SeededIds(),
      files,
      directory: '/home/journal',
      topics: [topic],
      log: silentLog,
    })
    return openFileStore({
      files,
      clock,
      ids,
      processes,
      log: silentLog,
      directory: '/home/sessions',
      journal: { journal, topic },
    })
  }
  return { store: await open(), reopen: open }
})
