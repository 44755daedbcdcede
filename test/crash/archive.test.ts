import { describe, expect, it } from 'vitest'
import { openJournal, type Journal } from '../../src/storage/files/journal.ts'
import { silentLog } from '../../src/base/log.ts'
import type { SessionId, SessionKey } from '../../src/core/ids.ts'
import { SessionArchive } from '../../src/storage/local/session-archive.ts'
import { FileArchivedRows } from '../../src/storage/files/archived-rows.ts'
import { SessionDirectory } from '../../src/storage/local/directory.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { MemoryFiles, type Fault } from '../../src/testing/memory-files.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'

interface OpenArchive {
  readonly files: MemoryFiles
  readonly journal: Journal
  readonly directory: SessionDirectory
  readonly archive: SessionArchive
}

async function openArchive(files = new MemoryFiles()): Promise<OpenArchive> {
  const ids = new SeededIds()
  const directory = new SessionDirectory(new ManualClock())
  const journal = await openJournal({
    ids: new SeededIds(),
    files,
    directory: '/journal',
    topics: [directory],
    log: silentLog,
  })
  const rows = await FileArchivedRows.open({ files, ids, directory: '/archive' })
  return {
    files,
    journal,
    directory,
    archive: new SessionArchive({ journal, directory, rows, onChanged: () => undefined }),
  }
}

const KEYS = ['a', 'b', 'c'].map((key) => key as SessionKey)

async function openWithRows(): Promise<OpenArchive> {
  const open = await openArchive()
  const { journal, directory } = open
  await journal.commit(
    KEYS.map((key) =>
      directory.recordOf({ kind: 'put-session', key, record: { sessionId: `sess_${key}` as SessionId, updatedAt: 1 } }),
    ),
  )
  return open
}

async function moveThereAndBack({ directory, archive }: OpenArchive): Promise<void> {
  await archive.archive(KEYS.map((key) => ({ key, record: directory.held(key) ?? never() })))
  for (const key of KEYS) await archive.bringBack(key)
}

function never(): never {
  throw new Error('no such row')
}

/** Every conversation is found under its key, whichever side it is on, with its own id. */
async function expectAllFound(open: OpenArchive, where: string): Promise<void> {
  for (const key of KEYS) {
    await open.archive.bringBack(key)
    expect(open.directory.held(key)?.sessionId, `${key} ${where}`).toBe(`sess_${key}`)
  }
}

describe('a conversation on its way into the archive or out of it', () => {
  it('is found after a crash at every disk operation', async () => {
    const whole = await openWithRows()
    const before = whole.files.operations
    await moveThereAndBack(whole)
    const operations = whole.files.operations - before
    expect(operations).toBeGreaterThan(20)
    for (let at = 0; at < operations; at++)
      for (const fault of ['crash-before', 'crash-torn', 'crash-after'] satisfies Fault[]) {
        const open = await openWithRows()
        open.files.injectFault(open.files.operations + at, fault)
        await moveThereAndBack(open).catch(() => undefined)
        const where = `after ${fault} at operation ${at} of ${operations}`
        for (const files of [open.files.crash(), open.files.kill()])
          await expectAllFound(await openArchive(files), where)
      }
  })

  it('stays in the index when a change comes first in the journal', async () => {
    const open = await openWithRows()
    const { journal, directory, archive } = open
    const [key] = KEYS as [SessionKey]
    const record = directory.held(key) ?? never()
    const change = journal.commit([directory.recordOf({ kind: 'change-session', key, fields: { updatedAt: 2 } })])
    const archived = archive.archive([{ key, record }])
    await change
    expect(await archived).toBe(0)
    expect(directory.held(key)).toMatchObject({ sessionId: 'sess_a', updatedAt: 2 })
    expect(await archive.list({ limit: 10 })).toEqual({ rows: [] })
  })

  it('keeps two keys apart that differ by case only', async () => {
    const { journal, directory, archive } = await openArchive()
    const keys = ['Key', 'key'].map((key) => key as SessionKey)
    await journal.commit(
      keys.map((key) =>
        directory.recordOf({
          kind: 'put-session',
          key,
          record: { sessionId: `sess_${key}` as SessionId, updatedAt: 1 },
        }),
      ),
    )
    await archive.archive(keys.map((key) => ({ key, record: directory.held(key) ?? never() })))
    expect(await archive.bringBack('key')).toBe(true)
    expect(directory.held('key' as SessionKey)?.sessionId).toBe('sess_key')
    expect((await archive.list({ limit: 10 })).rows.map(({ key }) => key)).toEqual(['Key'])
  })
})
