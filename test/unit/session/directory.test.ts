import { describe, expect, it } from 'vitest'
import { openJournal, type Journal } from '../../../src/storage/files/journal.ts'
import { silentLog } from '../../../src/base/log.ts'
import type { SessionId, SessionKey } from '../../../src/core/ids.ts'
import type { SessionRecord } from '../../../src/core/inbound.ts'
import type { Clock } from '../../../src/base/clock.ts'
import { SessionDirectory } from '../../../src/storage/local/directory.ts'
import { ExportHistory, SessionsFile } from '../../../src/storage/files/sessions-file.ts'
import type { SessionPage, SessionQuery } from '../../../src/storage/storage.ts'
import type { FileHandle, OpenMode } from '../../../src/base/files.ts'
import { TableFile } from '../../../src/storage/tables/table-file.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'

interface OpenDirectory {
  readonly files: MemoryFiles
  readonly clock: ManualClock
  readonly journal: Journal
  readonly directory: SessionDirectory
  readonly file: SessionsFile
}

async function openDirectory(files: MemoryFiles, exportMs = 0): Promise<OpenDirectory> {
  const clock = new ManualClock()
  let looks = 0
  /** Each look at it is so many milliseconds later than the one before: an export looks twice. */
  const slow: Clock = {
    now: () => clock.now(),
    monotonic: () => clock.monotonic() + exportMs * looks++,
    after: (ms, run) => clock.after(ms, run),
  }
  const kept = new TableFile({ files, ids: new SeededIds(), log: silentLog, directory: '/home/rows' })
  const directory = new SessionDirectory(clock, kept)
  await kept.open()
  const history = new ExportHistory(directory)
  const journal = await openJournal({
    ids: new SeededIds(),
    files,
    directory: '/home/journal',
    topics: [directory, history, kept],
    log: silentLog,
  })
  await kept.start()
  const file = new SessionsFile({
    ids: new SeededIds(),
    files,
    clock: slow,
    log: silentLog,
    path: '/home/sessions.json',
    journal,
    directory,
    history,
  })
  return { files, clock, journal, directory, file }
}

function row(id: string, updatedAt: number, extra: Record<string, unknown> = {}): SessionRecord {
  return { sessionId: `sess_${id}` as SessionId, updatedAt, ...extra }
}

async function keysOf(directory: SessionDirectory, query: SessionQuery): Promise<readonly SessionKey[]> {
  return (await directory.list(query)).sessions.map(({ key }) => key)
}

async function put(open: OpenDirectory, key: string, record: SessionRecord): Promise<void> {
  await open.journal.commit([open.directory.recordOf({ kind: 'put-session', key: key as SessionKey, record })])
  open.file.changed()
}

describe('the session directory', () => {
  it('lists newest first, in pages that neither repeat nor skip', async () => {
    const open = await openDirectory(new MemoryFiles())
    for (let i = 0; i < 7; i++) await put(open, `k${i}`, row(`${i}`, 1000 + i))
    await put(open, 'k2', row('2', 2000))
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const page: SessionPage = await open.directory.list({ limit: 3, ...(cursor === undefined ? {} : { cursor }) })
      seen.push(...page.sessions.map(({ key }) => key))
      cursor = page.nextCursor
    } while (cursor !== undefined)
    expect(seen).toEqual(['k2', 'k6', 'k5', 'k4', 'k3', 'k1', 'k0'])
  })

  it('filters by prefix and refuses a cursor it did not make', async () => {
    const open = await openDirectory(new MemoryFiles())
    await put(open, 'a:1', row('1', 1))
    await put(open, 'b:1', row('2', 2))
    expect(await keysOf(open.directory, { limit: 10, prefix: 'a:' })).toEqual(['a:1'])
    await expect(open.directory.list({ limit: 10, cursor: 'nonsense' })).rejects.toEqual(
      expect.objectContaining({ code: 'FIELD_INVALID' }),
    )
  })

  it('finds a key exactly first, then folded, and a session by its id', async () => {
    const open = await openDirectory(new MemoryFiles())
    await put(open, 'Alpha', row('1', 1))
    expect((await open.directory.resolve(' ALPHA '))?.key).toBe('Alpha')
    await put(open, 'ALPHA', row('2', 2))
    expect((await open.directory.resolve('Alpha'))?.record.sessionId).toBe('sess_1')
    expect((await open.directory.byId('sess_2'))?.key).toBe('ALPHA')
    expect(await open.directory.byId('sess_9')).toBeUndefined()
  })

  it('has every row, in the same order, after a restart and after a checkpoint', async () => {
    const open = await openDirectory(new MemoryFiles())
    for (let i = 0; i < 100; i++) await put(open, `k${i % 40}`, row(`${i % 40}`, i))
    await open.journal.checkpoint()
    await put(open, 'k0', row('0', 500))
    await open.journal.commit([open.directory.recordOf({ kind: 'delete-session', key: 'k1' as SessionKey })])
    const before = await open.directory.list({ limit: 100 })
    const again = await openDirectory(open.files.crash())
    expect(await again.directory.list({ limit: 100 })).toEqual(before)
    expect(again.directory.size).toBe(39)
  })
})

describe('the time of a change', () => {
  it('never falls behind an earlier one, also when the wall clock is set back', async () => {
    const open = await openDirectory(new MemoryFiles())
    await put(open, 'a', row('1', open.directory.now()))
    open.clock.stepWallTime(-3_600_000)
    await put(open, 'b', row('2', open.directory.now()))
    expect(await keysOf(open.directory, { limit: 2 })).toEqual(['b', 'a'])
    expect(open.directory.now()).toBeGreaterThan(open.clock.now())
  })

  it('does not fall after a restart with a clock that is behind: the list stays in the order of the changes', async () => {
    const open = await openDirectory(new MemoryFiles())
    await open.clock.advance(3_600_000)
    for (const key of ['a', 'b']) await put(open, key, row(key, open.directory.now()))
    const again = await openDirectory(open.files.kill())
    expect(again.clock.now()).toBeLessThan(open.clock.now())
    for (const key of ['c', 'a']) await put(again, key, row(key, again.directory.now()))
    expect(await keysOf(again.directory, { limit: 9 })).toEqual(['a', 'c', 'b'])
  })
})

describe('sessions.json', () => {
  it('is written within two seconds and is the map the seed shows', async () => {
    const open = await openDirectory(new MemoryFiles())
    await put(open, 'webhook:msg-001', row('1', 1699000000000, { lastTo: 'msg-001' }))
    expect(open.files.text('/home/sessions.json')).toBeUndefined()
    await open.clock.advance(2_000)
    expect(JSON.parse(open.files.text('/home/sessions.json') ?? '')).toEqual({
      'webhook:msg-001': { sessionId: 'sess_1', updatedAt: 1699000000000, lastTo: 'msg-001' },
    })
  })

  it('is exact after a clean stop', async () => {
    const open = await openDirectory(new MemoryFiles())
    await put(open, 'a', row('1', 1))
    await open.file.close()
    expect(Object.keys(JSON.parse(open.files.text('/home/sessions.json') ?? ''))).toEqual(['a'])
    expect(open.clock.pending).toBe(0)
  })

  it('of another program is adopted with the fields we do not know', async () => {
    const files = new MemoryFiles()
    files.plant(
      '/home/sessions.json',
      JSON.stringify({ 'webhook:old': row('old', 5, { thinkingLevel: 'high', foreign: { a: 1 } }) }),
    )
    const open = await openDirectory(files)
    expect(await open.file.adopt()).toEqual({ adopted: 1 })
    expect((await open.directory.resolve('webhook:old'))?.record['foreign']).toEqual({ a: 1 })
  })

  it('of our own making does not bring a deleted session back', async () => {
    const open = await openDirectory(new MemoryFiles())
    await put(open, 'gone', row('1', 1))
    await open.file.close()
    await open.journal.commit([open.directory.recordOf({ kind: 'delete-session', key: 'gone' as SessionKey })])
    const again = await openDirectory(open.files.kill())
    expect(await again.file.adopt()).toEqual({ adopted: 0 })
    expect(again.directory.size).toBe(0)
  })

  it('cut in the middle is kept aside, and its readable rows are taken over', async () => {
    const files = new MemoryFiles()
    const whole = JSON.stringify({ a: row('1', 1), b: row('2', 2), c: row('3', 3) }, null, 2)
    files.plant('/home/sessions.json', whole.slice(0, whole.indexOf('sess_3')))
    const open = await openDirectory(files)
    const result = await open.file.adopt()
    expect(result.adopted).toBe(2)
    expect(await keysOf(open.directory, { limit: 9 })).toEqual(['b', 'a'])
    expect(files.text(result.quarantined ?? '')).toBe(whole.slice(0, whole.indexOf('sess_3')))
  })

  it('with zero bytes is not taken for an empty open when the journal knows better', async () => {
    const open = await openDirectory(new MemoryFiles())
    await put(open, 'a', row('1', 1))
    await open.file.close()
    const disk = open.files.kill()
    disk.plant('/home/sessions.json', '')
    const again = await openDirectory(disk)
    await again.file.adopt()
    expect(again.directory.size).toBe(1)
  })
})

describe('a row with fields of another type', () => {
  it('is adopted with the types we read, other fields kept, and can be listed, reset and chosen a model for', async () => {
    const files = new MemoryFiles()
    const odd = row('a', 1, {
      archived: [null, { sessionId: 'sess_old', at: 1, title: 5 }, { sessionId: 5 }],
      deliveryContext: 'odd',
      lastTo: 42,
      modelOverride: {},
      theirs: { kept: true },
    })
    files.plant('/home/sessions.json', JSON.stringify({ k: odd, gone: { sessionId: 5, updatedAt: 1 } }))
    const { file, directory, journal } = await openDirectory(files)
    await file.adopt()
    expect(await directory.get('k' as SessionKey)).toEqual({
      ...row('a', 1),
      archived: [{ sessionId: 'sess_old', at: 1 }],
      lastTo: '42',
      theirs: { kept: true },
    })
    expect(directory.size).toBe(1)
    await file.close()
    await journal.close()
  })
})

describe('the export of rows that are on disk', () => {
  it('is made of slices, and is not made again while nothing changed', async () => {
    const files = new CountedFiles()
    const open = await openDirectory(files)
    for (let start = 0; start < 20_000; start += 1_000)
      await open.journal.commit(
        Array.from({ length: 1_000 }, (_, at) =>
          open.directory.recordOf({
            kind: 'put-session',
            key: `k${start + at}` as SessionKey,
            record: row(`${start + at}`, start + at, { preview: 'x'.repeat(200) }),
          }),
        ),
      )
    await open.journal.checkpoint()
    expect(open.directory.heldBytes / 20_000).toBeLessThan(300)
    await open.file.close()
    expect(Object.keys(JSON.parse(files.text('/home/sessions.json') ?? '')).length).toBe(20_000)
    expect(files.exported).toBeGreaterThan(5_000_000)
    expect(files.largest).toBeLessThan(1_300_000)
    await open.journal.close()
    const again = await openDirectory(files.kill())
    expect(await again.file.adopt()).toEqual({ adopted: 0 })
    expect(again.directory.size).toBe(20_000)
  })
})

/** Counts what is written to `sessions.json`. */
class CountedFiles extends MemoryFiles {
  exported = 0
  largest = 0

  override async open(path: string, mode: OpenMode, permissions?: number): Promise<FileHandle> {
    const handle = await super.open(path, mode, permissions)
    if (!path.includes('sessions.json')) return handle
    return {
      ...handle,
      write: async (bytes, position) => {
        this.exported += bytes.length
        this.largest = Math.max(this.largest, bytes.length)
        return handle.write(bytes, position)
      },
    }
  }
}

describe('the export of many sessions', () => {
  const written = (open: OpenDirectory): string => open.files.text('/home/sessions.json') ?? ''

  it.each([
    { sessions: 1_000, exportMs: 30, behindMs: 1_500 },
    { sessions: 1_001, exportMs: 30, behindMs: 3_000 },
    { sessions: 1_001, exportMs: 4, behindMs: 1_500 },
  ])('of $sessions that takes $exportMs ms follows after $behindMs ms', async ({ sessions, exportMs, behindMs }) => {
    const open = await openDirectory(new MemoryFiles(), exportMs)
    for (let i = 0; i < sessions - 1; i++) await put(open, `k${i}`, row(`${i}`, 1000 + i))
    await open.clock.advance(1_500)
    await put(open, 'latest', row('latest', 9_000))
    await open.clock.advance(behindMs - 1)
    expect(written(open)).not.toContain('sess_latest')
    await open.clock.advance(1)
    expect(written(open)).toContain('sess_latest')
    await open.file.close()
  })

  it('waits for its share before the first one too: a million rows must not be written for the first message', async () => {
    const open = await openDirectory(new MemoryFiles())
    const rows = Array.from({ length: 10_000 }, (_, at) =>
      open.directory.recordOf({ kind: 'put-session', key: `k${at}` as SessionKey, record: row(`${at}`, 1_000 + at) }),
    )
    await open.journal.commit(rows)
    await put(open, 'latest', row('latest', 20_000))
    await open.clock.advance(4_999)
    expect(written(open)).toBe('')
    await open.clock.advance(10)
    expect(written(open)).toContain('sess_latest')
    await open.file.close()
  })
})
