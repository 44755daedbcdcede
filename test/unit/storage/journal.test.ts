import { describe, expect, it } from 'vitest'
import { JournalFailed, openJournal, type Journal } from '../../../src/storage/files/journal.ts'
import { silentLog, type Log, type LogFacts } from '../../../src/base/log.ts'
import type { JournalTopic } from '../../../src/base/journal.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'

interface Owner {
  readonly journal: Journal
  readonly applied: unknown[]
  readonly failures: JournalFailed[]
  lose(): void
}

const lost = new Error('another process owns it')

async function open(
  files: MemoryFiles,
  isLostAt: (look: number) => boolean = () => false,
  log: Log = silentLog,
): Promise<Owner> {
  const applied: string[] = []
  const failures: JournalFailed[] = []
  let isLost = false
  let looks = 0
  const topic: JournalTopic<string> = {
    name: 't',
    read: (data) => (typeof data === 'string' ? data : undefined),
    apply: (data) => void applied.push(data),
    snapshot: () => applied,
  }
  const journal = await openJournal({
    ids: new SeededIds(),
    files,
    directory: '/journal',
    topics: [topic],
    log,
    fence: () => (isLost || isLostAt(looks++) ? lost : undefined),
    onFailed: (error) => failures.push(error),
  })
  return { journal, applied, failures, lose: () => (isLost = true) }
}

const record = (data: string) => [{ topic: 't', data }]

it('a journal that was checkpointed before its first commit keeps what is committed afterwards', async () => {
  const files = new MemoryFiles()
  const first = await open(files)
  await first.journal.checkpoint()
  await first.journal.commit(record('kept'))
  const second = await open(files.kill())
  expect(second.applied).toEqual(['kept'])
  expect(second.journal.recovery).toMatchObject({ damagedLines: 0, missingBatches: 0, unfinishedLines: 0 })
})

describe('a journal whose owner lost its home', () => {
  it('acknowledges nothing more, says so once, and leaves the files alone', async () => {
    const files = new MemoryFiles()
    const first = await open(files)
    await first.journal.commit(record('acknowledged'))
    first.lose()
    const before = await files.list('/journal')
    await expect(first.journal.commit(record('late'))).rejects.toMatchObject({ cause: lost })
    await expect(first.journal.commit(record('later'))).rejects.toBeInstanceOf(JournalFailed)
    await first.journal.close()
    expect(first.failures).toHaveLength(1)
    expect(await files.list('/journal')).toEqual(before)
    expect((await open(files)).applied).toEqual(['acknowledged'])
  })

  it('does not acknowledge a batch that was synced while another process took over', async () => {
    const files = new MemoryFiles()
    const looksOfRecovery = 2
    // The look before the write passes, the one after the sync does not.
    const first = await open(files, (look) => look > looksOfRecovery)
    await expect(first.journal.commit(record('raced'))).rejects.toBeInstanceOf(JournalFailed)
    expect(first.applied).toEqual([])
  })

  it('takes no snapshot over the new owner and removes none of its segments', async () => {
    const files = new MemoryFiles()
    const first = await open(files)
    await first.journal.commit(record('one'))
    const second = await open(files)
    first.lose()
    await second.journal.commit(record('two'))
    const before = await files.list('/journal')
    await expect(first.journal.checkpoint()).rejects.toBeInstanceOf(JournalFailed)
    await first.journal.close()
    expect(await files.list('/journal')).toEqual(before)
    expect((await open(files)).applied).toEqual(['one', 'two'])
  })

  it('is not recovered, and a blank segment of the owner stays where it is', async () => {
    const files = new MemoryFiles()
    const owner = await open(files)
    await expect(open(files, () => true)).rejects.toMatchObject({ cause: lost })
    await owner.journal.commit(record('kept'))
    expect((await open(files)).applied).toEqual(['kept'])
  })
})

it('a record that no topic can use costs only itself, is named by its topic, and its file is kept', async () => {
  const files = new MemoryFiles()
  const first = await open(files)
  await first.journal.commit([
    { topic: 't', data: 'one' },
    { topic: 't', data: { not: 'a text' } },
    { topic: 'of a later version', data: 'words of a user' },
    { topic: 't', data: 'two' },
  ])
  const logged: LogFacts[] = []
  const log: Log = { ...silentLog, error: (_message, facts = {}) => void logged.push(facts) }
  const disk = files.kill()
  const second = await open(disk, () => false, log)
  expect(second.applied).toEqual(['one', 'two'])
  expect(second.journal.recovery).toMatchObject({ records: 4, rejectedRecords: 2, damagedLines: 0 })
  expect(logged).toEqual([
    { topic: 't', rejected: 1 },
    { topic: 'unknown', rejected: 1 },
  ])
  await second.journal.checkpoint()
  const kept = disk.text('/journal/1.damaged')
  expect(kept).toContain('words of a user')
  const third = await open(disk.kill())
  expect(third.applied).toEqual(['one', 'two'])
  expect(third.journal.recovery).toMatchObject({ rejectedRecords: 0 })
})
