import { describe, expect, it } from 'vitest'
import { silentLog } from '../../src/base/log.ts'
import type { SessionId, SessionKey } from '../../src/core/ids.ts'
import type { SessionRecord } from '../../src/core/inbound.ts'
import { openJournal, type Journal } from '../../src/storage/files/journal.ts'
import { SessionDirectory } from '../../src/storage/local/directory.ts'
import { TableFile, type TableLosses } from '../../src/storage/tables/table-file.ts'
import { ManualClock } from '../../src/testing/manual-clock.ts'
import { MemoryFiles, type Fault } from '../../src/testing/memory-files.ts'
import { SeededIds } from '../../src/testing/seeded-ids.ts'

interface OpenRows {
  readonly files: MemoryFiles
  readonly kept: TableFile
  readonly directory: SessionDirectory
  readonly journal: Journal
  readonly losses: TableLosses
}

/** Limits so low that a few rows are written apart from checkpoints, saved as an image and written anew. */
async function openRows(files = new MemoryFiles(), ids = new SeededIds()): Promise<OpenRows> {
  const kept = new TableFile({
    files,
    ids,
    log: silentLog,
    directory: '/home/rows',
    unwrittenRows: 4,
    readLines: 2,
    wasteBytes: 300,
  })
  const directory = new SessionDirectory(new ManualClock(), kept)
  await kept.open()
  const journal = await openJournal({
    files,
    ids,
    log: silentLog,
    directory: '/home/journal',
    topics: [directory, kept],
  })
  return { files, kept, directory, journal, losses: await kept.start() }
}

type Rows = ReadonlyMap<string, number>
type Step = { readonly put: string; readonly at: number } | { readonly gone: string } | 'checkpoint'

function recordOf(key: string, at: number): SessionRecord {
  return {
    sessionId: `sess_${key}` as SessionId,
    updatedAt: at,
    title: `${key} "quoted\\" ${'é'.repeat(at % 7)}\n`,
    chat: { root: 'all', last: `${key}-${at}` },
  }
}

function applied(rows: Rows, step: Step): Rows {
  const next = new Map(rows)
  if (step === 'checkpoint') return next
  if ('gone' in step) next.delete(step.gone)
  else next.set(step.put, step.at)
  return next
}

async function take({ journal, directory }: OpenRows, step: Step): Promise<void> {
  if (step === 'checkpoint') return journal.checkpoint()
  const key = ('put' in step ? step.put : step.gone) as SessionKey
  const change =
    'put' in step
      ? ({ kind: 'put-session', key, record: recordOf(key, step.at) } as const)
      : ({ kind: 'delete-session', key } as const)
  await journal.commit([directory.recordOf(change)])
}

/** What every look-up says of the rows. */
async function seen({ directory }: OpenRows): Promise<Rows> {
  const listed = new Map<string, number>()
  let cursor: string | undefined
  do {
    const page = await directory.list({ limit: 3, ...(cursor === undefined ? {} : { cursor }) })
    for (const { key, record } of page.sessions) listed.set(key, record.updatedAt)
    cursor = page.nextCursor
  } while (cursor !== undefined)
  const times = [...listed.values()]
  expect(times).toEqual(times.toSorted((a, b) => b - a))
  expect(directory.size).toBe(listed.size)
  const scanned = new Set<string>()
  await directory.scan((row) => scanned.add(typeof row === 'string' ? (JSON.parse(row) as [string])[0] : row.key))
  expect([...scanned].toSorted()).toEqual([...listed.keys()].toSorted())
  for (const [key, at] of listed) {
    expect(await directory.get(key as SessionKey)).toEqual(recordOf(key, at))
    expect((await directory.resolve(key.toUpperCase()))?.key).toBe(key)
    expect((await directory.byId(`sess_${key}`))?.key).toBe(key)
    const caller = { owner: 'x', sees: 'all' } as const
    expect((await directory.marked({ kind: 'last', value: `${key}-${at}` }, caller, 5)).map((row) => row.key)).toEqual([
      key,
    ])
    const found = await directory.list({ limit: 50, search: `${key} "QUOTED\\"` })
    expect(found.sessions.map((row) => row.key)).toEqual([key])
  }
  return listed
}

const LETTERS = ['a', 'b', 'c', 'd', 'e', 'f']
let time = 0
const STEPS: readonly Step[] = [
  ...LETTERS.map((put) => ({ put, at: ++time })),
  'checkpoint',
  ...['b', 'a'].map((put) => ({ put, at: ++time })),
  { gone: 'c' },
  'checkpoint',
  ...LETTERS.map((put) => ({ put, at: ++time })),
  { gone: 'd' },
  'checkpoint',
  { put: 'g', at: ++time },
  { gone: 'a' },
]

/** What was confirmed, and what may be there or not. */
async function run(open: OpenRows): Promise<{ readonly sure: Rows; readonly last: Rows }> {
  let sure: Rows = new Map()
  for (const step of STEPS) {
    const next = applied(sure, step)
    try {
      await take(open, step)
    } catch {
      if (open.files.isCrashed) return { sure, last: next }
      continue
    }
    sure = next
  }
  await open.journal.close().catch(() => undefined)
  await open.kept.close().catch(() => undefined)
  return { sure, last: sure }
}

function sorted(rows: Rows): readonly (readonly [string, number])[] {
  return [...rows].toSorted(([a], [b]) => (a < b ? -1 : 1))
}

describe('rows that were not changed lately', () => {
  it('are all there after a crash at every disk operation', async () => {
    const whole = await openRows()
    await run(whole)
    const { operations } = whole.files
    expect(operations).toBeGreaterThan(100)
    expect((await whole.files.kill().list('/home/rows')).toSorted()).toEqual(['2.rows', '2.slots'])
    for (let at = 0; at < operations; at++)
      for (const fault of ['crash-before', 'crash-torn', 'crash-after'] satisfies Fault[]) {
        const files = new MemoryFiles()
        files.injectFault(at, fault)
        let found: { readonly sure: Rows; readonly last: Rows } = { sure: new Map(), last: new Map() }
        const open = await openRows(files).catch(() => undefined)
        if (open !== undefined) found = await run(open)
        const seeds = new SeededIds(at)
        const partly = files.crash(() => seeds.fraction())
        for (const disk of [files.crash(), partly, files.kill()]) {
          const again = await openRows(disk, new SeededIds(7))
          const where = `${fault} at ${at}`
          expect(again.losses, where).toEqual({ isCut: false, damagedRows: 0 })
          const rows = sorted(await seen(again))
          expect([sorted(found.sure), sorted(found.last)], where).toContainEqual(rows)
          if (disk !== partly) continue
          // What the crash tore off is no damage, however late it is read again.
          await take(again, { put: 'z', at: 1_000 })
          await again.journal.checkpoint()
          const later = again.files.kill()
          for (const name of await later.list('/home/rows'))
            if (name.endsWith('.slots')) await later.remove(`/home/rows/${name}`)
          const last = await openRows(later, new SeededIds(8))
          expect(last.losses, where).toEqual({ isCut: false, damagedRows: 0 })
          expect(sorted(await seen(last)), where).toEqual(sorted(applied(new Map(rows), { put: 'z', at: 1_000 })))
        }
      }
  })

  it('are all there after any disk operation failed once', async () => {
    const whole = await openRows()
    await run(whole)
    for (let at = 0; at < whole.files.operations; at++)
      for (const fault of ['ENOSPC', 'EIO'] satisfies Fault[]) {
        const files = new MemoryFiles()
        files.injectFault(at, fault)
        const open = await openRows(files).catch(() => undefined)
        const { sure } = open === undefined ? { sure: new Map<string, number>() } : await run(open)
        const again = await openRows(files.kill(), new SeededIds(7))
        // A commit whose sync failed may be there although nobody was told so; nothing confirmed is missing.
        const rows = await seen(again)
        for (const [key, time] of sure)
          expect(rows.get(key) ?? 0, `${fault} at ${at}`).toBeGreaterThanOrEqual(rows.has(key) ? time : 0)
        expect(again.losses.isCut, `${fault} at ${at}`).toBe(false)
      }
  })

  it('that a removed or cut file held are reported as lost', async () => {
    const open = await openRows()
    await run(open)
    const removed = open.files.kill()
    await removed.remove('/home/rows/2.rows')
    expect((await openRows(removed)).losses.isCut).toBe(true)
    const cut = open.files.kill()
    const file = await cut.open('/home/rows/2.rows', 'update')
    await file.truncate(file.stat().size - 10)
    expect((await openRows(cut)).losses.isCut).toBe(true)
  })

  it('that a cut file held are not known any more, whatever the image of the index says', async () => {
    const open = await openRows()
    await run(open)
    const whole = (await open.files.open('/home/rows/2.rows', 'read')).stat().size
    for (let size = whole - 1; size > 0; size -= 13) {
      const files = open.files.kill()
      await (await files.open('/home/rows/2.rows', 'update')).truncate(size)
      const again = await openRows(files)
      expect(again.losses.isCut, `${size} bytes`).toBe(true)
      const rows = applied(await seen(again), { put: 'z', at: 1_000 })
      await take(again, { put: 'z', at: 1_000 })
      await again.journal.checkpoint()
      expect(sorted(await seen(await openRows(again.files.kill()))), `${size} bytes`).toEqual(sorted(rows))
    }
  })

  it('are found without the image of their index, and with one that is damaged', async () => {
    const open = await openRows()
    const { sure } = await run(open)
    const without = open.files.kill()
    await without.remove('/home/rows/2.slots')
    expect(sorted(await seen(await openRows(without)))).toEqual(sorted(sure))
    for (let at = 0; at < 400; at += 7) {
      const damaged = open.files.kill()
      const file = await damaged.open('/home/rows/2.slots', 'update')
      const [byte = 0] = await file.read(at % file.stat().size, 1)
      await file.write(Uint8Array.of(byte ^ 0x55), at % file.stat().size)
      expect(sorted(await seen(await openRows(damaged))), `byte ${at}`).toEqual(sorted(sure))
    }
  })

  it('are the same after random changes, checkpoints and restarts', async () => {
    const ids = new SeededIds(42)
    let open = await openRows(new MemoryFiles(), ids)
    let rows: Rows = new Map()
    for (let turn = 1; turn <= 600; turn++) {
      const key = `key${Math.floor(ids.fraction() * 20)}`
      const dice = ids.fraction()
      const step: Step = dice < 0.7 ? { put: key, at: turn } : dice < 0.93 ? { gone: key } : 'checkpoint'
      rows = applied(rows, step)
      await take(open, step)
      if (turn % 40 > 0) continue
      expect(sorted(await seen(open))).toEqual(sorted(rows))
      const files = ids.fraction() < 0.5 ? open.files.kill() : open.files.crash(() => ids.fraction())
      open = await openRows(files, ids)
      expect(sorted(await seen(open)), `turn ${turn}`).toEqual(sorted(rows))
    }
  })
})
