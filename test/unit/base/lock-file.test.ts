import { describe, expect, it } from 'vitest'
import {
  createLockFile,
  isAbandoned,
  readLockHolder,
  takeOver,
  type IsStale,
  type LockFileDeps,
  type OwnedLockFile,
} from '../../../src/base/lock-file.ts'
import type { ProcessIdentity, Processes } from '../../../src/base/processes.ts'
import { ManualClock, settle } from '../../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { ScriptedProcesses } from '../../../src/testing/scripted-processes.ts'
import { seededRandom, SeededIds } from '../../../src/testing/seeded-ids.ts'
import { Interleaving } from '../../support/interleaved-files.ts'

const PATH = '/home/gateway.lock'
const SEED = 20261116
const never: IsStale = () => false

function lockText(pid: number): string {
  return `${JSON.stringify({ pid, startedAt: '1', host: 'h', createdAt: '2026-01-01T00:00:00.000Z', token: `t${pid}` })}\n`
}

/** What a starter does: as `lockHome`, and the transcript's lock, use these functions. */
async function lock(deps: LockFileDeps): Promise<OwnedLockFile | undefined> {
  for (let attempt = 0; attempt < 5; attempt++) {
    const created = await createLockFile(PATH, deps)
    if (created !== undefined) return created
    const holder = await readLockHolder(PATH, deps)
    if (holder === undefined) continue
    if (!isAbandoned(holder, never, deps)) return undefined
    const taken = await takeOver(PATH, holder, never, deps)
    if (taken !== undefined) return taken
  }
  return undefined
}

describe('many starters on the lock of a dead process, at any interleaving', () => {
  const starters = ['a', 'b', 'c', 'd']

  function race(seed: number, deaths: number): Promise<{ owners: string[]; dead: ReadonlySet<string> }> {
    const random = seededRandom(seed)
    const clock = new ManualClock()
    const disk = new MemoryFiles({ now: () => clock.now() })
    disk.plant(PATH, lockText(7))
    const interleaving = new Interleaving(disk, random)
    const deadPids = new Set([7])
    const dead = new Set<string>()
    const won = new Map<string, OwnedLockFile>()
    const running = new Set(starters)
    for (const [index, name] of starters.entries()) {
      const self: ProcessIdentity = { pid: 100 + index, startedAt: '1', host: 'h' }
      const processes: Processes = { self, isAlive: ({ pid }) => !deadPids.has(pid), onExit: () => () => undefined }
      const deps = { files: interleaving.filesOf(name), clock, ids: new SeededIds(seed * 10 + index), processes }
      void lock(deps).then((owned) => {
        running.delete(name)
        if (owned !== undefined) won.set(name, owned)
      })
    }
    const killOne = (): void => {
      const name = starters[Math.floor(random() * starters.length)] ?? 'a'
      interleaving.kill(name)
      dead.add(name)
      deadPids.add(100 + starters.indexOf(name))
    }
    const run = async (): Promise<{ owners: string[]; dead: ReadonlySet<string> }> => {
      for (let step = 0; await interleaving.step(); step++) {
        if (dead.size < deaths && random() < 0.1) killOne()
        const living = [...won.keys()].filter((name) => !dead.has(name))
        expect(living.length, `seed ${seed}, step ${step}: ${living.join()}`).toBeLessThanOrEqual(1)
        for (const name of living) expect(won.get(name)?.isHeld(), `seed ${seed}: ${name} lost its lock`).toBe(true)
      }
      return { owners: [...won.keys()], dead }
    }
    return run()
  }

  it('gives it to exactly one of them', async () => {
    for (let seed = SEED; seed < SEED + 300; seed++) expect((await race(seed, 0)).owners).toHaveLength(1)
  })

  it('never to two living ones, also when starters die in the middle of it', async () => {
    let survived = 0
    for (let seed = SEED; seed < SEED + 300; seed++) {
      const { owners, dead } = await race(seed, 2)
      if (owners.some((name) => !dead.has(name))) survived++
    }
    expect(survived).toBeGreaterThan(100)
  })
})

describe('a lock file', () => {
  function scene(pid = 1): LockFileDeps & { files: MemoryFiles; clock: ManualClock; processes: ScriptedProcesses } {
    const clock = new ManualClock()
    const files = new MemoryFiles({ now: () => clock.now() })
    files.plant('/home/anything', '')
    return { clock, files, ids: new SeededIds(pid), processes: new ScriptedProcesses({ pid }) }
  }

  it('that is not the judged one is never touched', async () => {
    const deps = scene()
    deps.files.plant(PATH, lockText(7))
    const judged = await readLockHolder(PATH, deps)
    if (judged === undefined) throw new Error('no lock')
    deps.files.plant(PATH, lockText(8))
    expect(await takeOver(PATH, judged, never, deps)).toBeUndefined()
    expect(deps.files.text(PATH)).toBe(lockText(8))
    expect(await deps.files.list('/home')).toEqual(['anything', 'gateway.lock'])
  })

  it('is taken over from a dead claimant of a dead owner, and nothing is left beside it', async () => {
    const deps = scene()
    deps.files.plant(PATH, lockText(7))
    deps.processes.die({ pid: 7, startedAt: '1', host: 'h' })
    const killed = scene(2)
    killed.processes.die({ pid: 7, startedAt: '1', host: 'h' })
    deps.processes.die(killed.processes.self)
    const judged = await readLockHolder(PATH, deps)
    if (judged === undefined) throw new Error('no lock')
    const files = new Proxy(deps.files, {
      get: (target, name) =>
        name === 'rename' ? () => new Promise(() => undefined) : (Reflect.get(target, name) as () => void).bind(target),
    })
    void takeOver(PATH, judged, never, { ...killed, files })
    await settle()
    expect(await deps.files.list('/home')).toHaveLength(3)
    const taken = await takeOver(PATH, judged, never, deps)
    expect(taken?.isHeld()).toBe(true)
    expect(await deps.files.list('/home')).toEqual(['anything', 'gateway.lock'])
    await taken?.release()
    expect(await deps.files.list('/home')).toEqual(['anything'])
  })

  it('is no longer held when another one stands in its place, and its release leaves that one there', async () => {
    const deps = scene()
    const owned = await createLockFile(PATH, deps)
    expect(owned?.isHeld()).toBe(true)
    deps.files.plant(PATH, lockText(9))
    expect(owned?.isHeld()).toBe(false)
    await owned?.release()
    expect(deps.files.text(PATH)).toBe(lockText(9))
    expect(deps.processes.leftovers).toEqual([])
  })

  it('without an owner belongs to a process that is just writing it, for three seconds of any direction', async () => {
    const deps = scene()
    deps.files.plant(PATH, '')
    const holder = await readLockHolder(PATH, deps)
    if (holder === undefined) throw new Error('no lock')
    expect(isAbandoned(holder, never, deps)).toBe(false)
    deps.clock.stepWallTime(-3_600_000)
    expect(isAbandoned(holder, never, deps)).toBe(true)
  })
})
