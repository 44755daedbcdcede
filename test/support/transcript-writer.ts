import { writeSync } from 'node:fs'
import { openJournal } from '../../src/storage/files/journal.ts'
import { silentLog } from '../../src/base/log.ts'
import { nodeFiles } from '../../src/platform/node-files.ts'
import { nodeProcesses } from '../../src/platform/node-processes.ts'
import { systemClock, systemIds } from '../../src/platform/system.ts'
import { openFileStore } from '../../src/transcript/file-store.ts'
import { TranscriptTopic } from '../../src/transcript/topic.ts'
import { never, sessionId, userDraft } from './transcripts.ts'

/**
 * A process that appends, for tests that kill it. Arguments: home, session, name, how many writers, how many appends
 * each, `journal` or `alone`. Prints the text of every acknowledged append, a line each, at once.
 */
const [home = '', session = '', name = '', writers = '1', appends = '1', mode = 'alone'] = process.argv.slice(2)

const ports = { files: nodeFiles, clock: systemClock, ids: systemIds, processes: nodeProcesses, log: silentLog }
const topic = new TranscriptTopic()
const journal =
  mode === 'journal'
    ? await openJournal({
        ids: systemIds,
        files: nodeFiles,
        directory: `${home}/journal`,
        topics: [topic],
        log: silentLog,
      })
    : undefined
const store = await openFileStore({
  ...ports,
  directory: `${home}/sessions`,
  ...(journal === undefined ? {} : { journal: { journal, topic } }),
})
const transcript = await store.open(sessionId(session), never)
writeSync(1, 'ready\n')

async function write(writer: number): Promise<void> {
  for (let i = 0; i < Number(appends); i++) {
    const text = `${name}.${writer}.${i}`
    await transcript.append([userDraft(text)])
    writeSync(1, `${text}\n`)
  }
}

await Promise.all(Array.from({ length: Number(writers) }, (_, writer) => write(writer)))
await transcript.close()
await store.close()
await journal?.close()
