import { describe, expect, it } from 'vitest'
import { openJournal, type Journal, type JournalTopic } from '../../src/base/journal.ts'
import { silentLog } from '../../src/base/log.ts'
import { MemoryFiles, type Fault } from '../../src/testing/memory-files.ts'
import { seededRandom } from '../../src/testing/seeded-ids.ts'

/** A counter map: `apply` sets, so that applying a run of records again changes nothing. */
class MapTopic implements JournalTopic {
  readonly name: string
  readonly state = new Map<string, number>()
  constructor(name: string) {
    this.name = name
  }
  apply(data: unknown): void {
    const [key, value] = data as [string, number]
    this.state.set(key, value)
  }
  *snapshot(): Iterable<[string, number]> {
    yield* this.state
  }
}

async function openOn(files: MemoryFiles): Promise<{ journal: Journal; a: MapTopic; b: MapTopic }> {
  const a = new MapTopic('a')
  const b = new MapTopic('b')
  const journal = await openJournal({ files, directory: '/home/journal', topics: [a, b], log: silentLog })
  return { journal, a, b }
}

/** Commits pairs over both topics with checkpoints in between; returns the numbers acknowledged before the crash. */
async function workload(files: MemoryFiles): Promise<number[]> {
  const acknowledged: number[] = []
  try {
    const { journal } = await openOn(files)
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

describe('the journal after a power cut', () => {
  it('keeps every acknowledged commit, and commits over two topics together, at every crash point', async () => {
    const healthy = new MemoryFiles()
    expect(await workload(healthy)).toHaveLength(12)
    let points = 0
    for (let at = 0; at < healthy.operations; at++) {
      for (const fault of FAULTS) {
        for (let seed = 0; seed < 4; seed++) {
          const files = new MemoryFiles()
          files.injectFault(at, fault)
          const acknowledged = await workload(files)
          const after = files.crash(seed === 0 ? undefined : seededRandom(seed * 7919 + at))
          const { journal, a, b } = await openOn(after)
          for (const number of acknowledged) expect(a.state.get(`k${number}`), `at ${at} ${fault} ${seed}`).toBe(number)
          expect([...b.state.keys()].sort()).toEqual([...a.state.keys()].sort())
          await journal.commit([{ topic: 'a', data: ['later', 1] }])
          await journal.close()
          expect((await openOn(after)).a.state.get('later')).toBe(1)
          points++
        }
      }
    }
    console.info(`journal: ${points} crash points tried`)
  })

  it('survives a crash during recovery and checkpoint of a crashed log', async () => {
    const first = new MemoryFiles()
    first.injectFault(20, 'crash-torn')
    const acknowledged = await workload(first)
    const probe = first.crash(seededRandom(3))
    const { journal } = await openOn(probe)
    await journal.close()
    for (let at = 0; at < probe.operations; at++) {
      const disk = first.crash(seededRandom(3))
      disk.injectFault(at, 'crash-torn')
      await openOn(disk)
        .then(
          ({ journal: reopened }) => reopened.close(),
          () => undefined,
        )
        .catch(() => undefined)
      const { a } = await openOn(disk.crash(seededRandom(at)))
      for (const number of acknowledged) expect(a.state.get(`k${number}`)).toBe(number)
    }
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
