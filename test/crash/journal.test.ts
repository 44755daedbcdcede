import { crc32 } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import type { JournalTopic } from '../../src/base/journal.ts'
import { openJournal, type Journal, type JournalOptions } from '../../src/storage/files/journal.ts'
import { silentLog } from '../../src/base/log.ts'
import { MemoryFiles, type Fault } from '../../src/testing/memory-files.ts'
import { seededRandom, SeededIds } from '../../src/testing/seeded-ids.ts'

/** A counter map: `apply` sets, so that applying a run of records again changes nothing. */
class MapTopic implements JournalTopic<[string, number]> {
  readonly name: string
  readonly state = new Map<string, number>()
  constructor(name: string) {
    this.name = name
  }
  read(data: unknown): [string, number] | undefined {
    return Array.isArray(data) && typeof data[1] === 'number' ? [String(data[0]), data[1]] : undefined
  }
  apply([key, value]: [string, number]): void {
    this.state.set(key, value)
  }
  *snapshot(): Iterable<[string, number]> {
    yield* this.state
  }
}

type Sizes = Pick<JournalOptions, 'segmentBytes' | 'prepareAfterBytes'>

/** The log grows as it is written, or is written into segments made ready ahead, several for one workload. */
const SIZES: readonly (readonly [string, Sizes])[] = [
  ['growing', {}],
  ['in prepared segments', { segmentBytes: 500, prepareAfterBytes: 1 }],
]

async function openOn(files: MemoryFiles, sizes: Sizes = {}): Promise<{ journal: Journal; a: MapTopic; b: MapTopic }> {
  const a = new MapTopic('a')
  const b = new MapTopic('b')
  const journal = await openJournal({
    ids: new SeededIds(),
    files,
    directory: '/home/journal',
    topics: [a, b],
    log: silentLog,
    ...sizes,
  })
  return { journal, a, b }
}

/** Commits pairs over both topics with checkpoints in between; returns the numbers acknowledged before the crash. */
async function workload(files: MemoryFiles, sizes: Sizes): Promise<number[]> {
  const acknowledged: number[] = []
  try {
    const { journal } = await openOn(files, sizes)
    for (let round = 0; round < 4; round++) {
      const commits = [0, 1, 2].map(async (offset) => {
        const number = round * 3 + offset
        await journal.commit([
          { topic: 'a', data: [`k${number}`, number] },
          { topic: 'b', data: [`k${number}`, number] },
        ])
        acknowledged.push(number)
      })
      await Promise.all(commits)
      if (round % 2 === 1) await journal.checkpoint()
    }
    await journal.close()
  } catch {
    // the crash
  }
  return acknowledged
}

const FAULTS: readonly Fault[] = ['crash-before', 'crash-torn', 'crash-after']

/** Commits are numbered in the order they were made. */
function expectPrefix(state: ReadonlyMap<string, number>, acknowledged: readonly number[], point: string): void {
  const kept = [...state.values()]
  expect(kept, point).toEqual(kept.map((_, number) => number))
  expect(kept.length, point).toBeGreaterThanOrEqual(acknowledged.length)
}

describe.each(SIZES)('the journal after a power cut, %s', (name, sizes) => {
  it('keeps the acknowledged commits and perhaps the next ones, both topics alike, at every crash point', async () => {
    const healthy = new MemoryFiles()
    expect(await workload(healthy, sizes)).toHaveLength(12)
    let points = 0
    for (let at = 0; at < healthy.operations; at++) {
      for (const fault of FAULTS) {
        for (let seed = 0; seed < 8; seed++) {
          const point = `at ${at} ${fault} ${seed}`
          const files = new MemoryFiles()
          files.injectFault(at, fault)
          const acknowledged = await workload(files, sizes)
          const after = files.crash(seed === 0 ? undefined : seededRandom(seed * 7919 + at))
          const { journal, a, b } = await openOn(after, sizes)
          expectPrefix(a.state, acknowledged, point)
          expect([...b.state], point).toEqual([...a.state])
          expect(journal.recovery, point).toMatchObject({ damagedLines: 0, missingBatches: 0 })
          await journal.commit([{ topic: 'a', data: ['later', a.state.size] }])
          // Without a clean end: what the first recovery dropped must stay dropped.
          const again = await openOn(after.crash(), sizes)
          expect([...again.a.state], point).toEqual([...a.state])
          expect(again.journal.recovery, point).toMatchObject({ damagedLines: 0, missingBatches: 0 })
          points++
        }
      }
    }
    console.info(`journal, ${name}: ${points} crash points tried`)
  })

  it('survives a crash during recovery and checkpoint of a crashed log', async () => {
    const first = new MemoryFiles()
    first.injectFault(20, 'crash-torn')
    const acknowledged = await workload(first, sizes)
    const probe = first.crash(seededRandom(3))
    const { journal } = await openOn(probe, sizes)
    await journal.close()
    for (let at = 0; at < probe.operations; at++) {
      const disk = first.crash(seededRandom(3))
      disk.injectFault(at, 'crash-torn')
      await openOn(disk, sizes)
        .then(
          ({ journal: reopened }) => reopened.close(),
          () => undefined,
        )
        .catch(() => undefined)
      const { a } = await openOn(disk.crash(seededRandom(at)), sizes)
      expectPrefix(a.state, acknowledged, `at ${at}`)
    }
  })
})

describe('a batch', () => {
  it('is everything one thing leads to before it waits for something outside', async () => {
    const files = new MemoryFiles()
    const { journal } = await openOn(files)
    const commit = (value: number): Promise<void> => journal.commit([{ topic: 'a', data: ['k', value] }])
    const first = commit(1)
    let second: Promise<void> | undefined
    await Promise.resolve()
      .then(() => undefined)
      .then(() => undefined)
      .then(() => (second = commit(2)).then(() => undefined))
    await Promise.all([first, second])
    await commit(3)
    expect(batchesOf(files.text('/home/journal/1.log'))).toEqual(['1.0', '1.1', '2.0'])
    await journal.close()
  })
})

/** The batch of every line and its place there. */
function batchesOf(log: string | undefined): (string | undefined)[] {
  return (log ?? '')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split(' ')[1])
}

describe('segments made ready ahead', () => {
  const sizes = { segmentBytes: 400, prepareAfterBytes: 1 }

  it('hold a beginning of the batch that was under way, whichever of its sectors reached the disk', async () => {
    const lengths = new Set<number>()
    for (let seed = 0; seed < 300; seed++) {
      const files = new MemoryFiles()
      const { journal } = await openOn(files, { segmentBytes: 4_000, prepareAfterBytes: 1 })
      await journal.commit([{ topic: 'a', data: ['k0', 0] }])
      await journal.checkpoint()
      await journal.commit([{ topic: 'a', data: ['k1', 1] }])
      files.injectFault(files.operations + 1, 'crash-before')
      const batch = [2, 3, 4, 5, 6, 7, 8, 9].map((number) =>
        journal.commit([{ topic: 'a', data: [`k${number}`, number] }]).catch(() => undefined),
      )
      await Promise.all(batch)
      const { journal: reopened, a } = await openOn(files.crash(seededRandom(seed)))
      expectPrefix(a.state, [0, 1], `seed ${seed}`)
      expect(reopened.recovery, `seed ${seed}`).toMatchObject({ damagedLines: 0, missingBatches: 0 })
      lengths.add(a.state.size)
    }
    // Nothing of it, all of it, and what lies between.
    expect(lengths.size).toBeGreaterThan(4)
  })

  it('are written one after the other, and none is left behind by a clean end', async () => {
    const files = new MemoryFiles()
    const { journal } = await openOn(files, sizes)
    for (let number = 0; number < 40; number++) await journal.commit([{ topic: 'a', data: [`k${number}`, number] }])
    const names = await files.list('/home/journal')
    expect(names.length).toBeGreaterThan(3)
    // The last one is blank: ready, and not begun.
    expect(files.text(`/home/journal/${names.length}.log`)).toBe('\0'.repeat(400))
    await journal.close()
    expect(await files.list('/home/journal')).toEqual([`${names.length - 1}.snap`])
    expect([...(await openOn(files, sizes)).a.state]).toHaveLength(40)
  })

  it('that a crash left unused are removed at the next start', async () => {
    const files = new MemoryFiles()
    const { journal } = await openOn(files, sizes)
    await journal.commit([{ topic: 'a', data: ['x', 1] }])
    await journal.checkpoint()
    const disk = files.kill()
    await openOn(disk, sizes)
    expect(await disk.list('/home/journal')).toEqual(['1.snap', '3.log'])
  })

  it('are done without when the disk is full', async () => {
    const files = new MemoryFiles()
    const { journal, a } = await openOn(files, { segmentBytes: 10_000, prepareAfterBytes: 1 })
    files.limitSpace(2_000)
    await journal.commit([{ topic: 'a', data: ['first', 1] }])
    await journal.checkpoint()
    for (let number = 0; number < 10; number++) await journal.commit([{ topic: 'a', data: [`k${number}`, number] }])
    expect(await files.list('/home/journal')).toEqual(['1.snap', '2.log'])
    expect([...(await openOn(files.crash())).a.state]).toEqual([...a.state])
  })

  it('keep what stands behind damage: a batch that another one follows was complete', async () => {
    const files = new MemoryFiles()
    const { journal } = await openOn(files, { segmentBytes: 4_000, prepareAfterBytes: 1 })
    await journal.commit([{ topic: 'a', data: ['first', 0] }])
    await journal.checkpoint()
    await Promise.all([1, 2, 3].map((number) => journal.commit([{ topic: 'a', data: [`k${number}`, number] }])))
    await journal.commit([{ topic: 'a', data: ['last', 9] }])
    const disk = files.crash()
    const [name] = (await disk.list('/home/journal')).filter((each) => each.endsWith('.log'))
    const path = `/home/journal/${name}`
    disk.plant(path, (disk.text(path) ?? '').replace('"k1"', '\0\0\0\0'))
    const { journal: reopened, a } = await openOn(disk)
    expect([...a.state.keys()]).toEqual(['first', 'k2', 'k3', 'last'])
    expect(reopened.recovery.damagedLines).toBe(1)
  })
})

describe('a journal from before batches had numbers', () => {
  it('is read', async () => {
    const files = new MemoryFiles()
    const lines = ['["a",["x",1]]', '["a",["y",2]]'].map((record) => {
      const body = `[${record}]`
      return `${crc32(body).toString(16).padStart(8, '0')} ${body}\n`
    })
    files.plant('/home/journal/1.log', lines.join(''))
    expect([...(await openOn(files)).a.state]).toEqual([
      ['x', 1],
      ['y', 2],
    ])
  })
})

describe('the journal and a failing disk', () => {
  it('acknowledges nothing more after a failed sync', async () => {
    const files = new MemoryFiles()
    const { journal } = await openOn(files)
    await journal.commit([{ topic: 'a', data: ['x', 1] }])
    files.injectFault(files.operations + 1, 'EIO')
    await expect(journal.commit([{ topic: 'a', data: ['y', 1] }])).rejects.toMatchObject({ name: 'JournalFailed' })
    await expect(journal.commit([{ topic: 'a', data: ['z', 1] }])).rejects.toMatchObject({ name: 'JournalFailed' })
  })

  it('refuses a commit on a full disk, leaves nothing of it behind, and goes on when there is room again', async () => {
    const files = new MemoryFiles()
    const { journal, a } = await openOn(files)
    files.limitSpace(10)
    await expect(journal.commit([{ topic: 'a', data: ['x', 1] }])).rejects.toMatchObject({ name: 'JournalRefused' })
    files.limitSpace(10_000)
    await journal.commit([{ topic: 'a', data: ['y', 2] }])
    expect([...a.state]).toEqual([['y', 2]])
    expect([...(await openOn(files.crash())).a.state]).toEqual([['y', 2]])
  })

  it('loses only the lines that damage touches, and keeps the damaged segment', async () => {
    const files = new MemoryFiles()
    const { journal } = await openOn(files)
    for (const key of ['p', 'q', 'r']) await journal.commit([{ topic: 'a', data: [key, 1] }])
    const disk = files.crash()
    const text = disk.text('/home/journal/1.log') ?? ''
    disk.plant('/home/journal/1.log', text.replace('"q"', '"Q"'))
    const { journal: reopened, a } = await openOn(disk)
    expect([...a.state.keys()]).toEqual(['p', 'r'])
    expect(reopened.recovery.damagedLines).toBe(1)
    await reopened.checkpoint()
    expect(await disk.list('/home/journal')).toContain('1.damaged')
  })
})

describe('the journal after a kill and then a power cut', () => {
  it('does not lose what the start in between has already built on', async () => {
    const files = new MemoryFiles()
    const { journal } = await openOn(files)
    await journal.commit([{ topic: 'a', data: ['first', 1] }])
    // The line is written, its sync never happens: the process dies.
    files.injectFault(files.operations + 1, 'crash-before')
    await journal.commit([{ topic: 'a', data: ['second', 2] }]).catch(() => undefined)
    const killed = files.kill()
    const between = await openOn(killed)
    expect(between.a.state.get('second')).toBe(2)
    await between.journal.commit([{ topic: 'a', data: ['third', 3] }])
    const { a } = await openOn(killed.crash())
    expect([...a.state.keys()].toSorted()).toEqual(['first', 'second', 'third'])
  })
})
