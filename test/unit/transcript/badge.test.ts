import { describe, expect, it } from 'vitest'
import { silentLog } from '../../../src/base/log.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { ScriptedProcesses } from '../../../src/testing/scripted-processes.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'
import { Badge } from '../../../src/transcript/badge.ts'
import { lockOf } from '../../../src/transcript/lock.ts'
import { never } from '../../support/transcripts.ts'

const BADGES = '/s/.locks'
const STALE_MS = 30 * 60_000
const lockPath = (name: string): string => `/s/${name}.jsonl.lock`

class NoLinks extends MemoryFiles {
  override async link(): Promise<void> {
    throw Object.assign(new Error('no links here'), { code: 'EPERM' })
  }
}

interface Scene {
  readonly clock: ManualClock
  readonly files: MemoryFiles
  readonly processes: ScriptedProcesses
  readonly badge: Badge
}

function scene(files?: MemoryFiles): Scene {
  const clock = new ManualClock()
  const disk = files ?? new MemoryFiles({ now: () => clock.now() })
  disk.plant('/s/anything', '')
  const processes = new ScriptedProcesses()
  const badge = new Badge({
    files: disk,
    clock,
    ids: new SeededIds(),
    processes,
    directory: BADGES,
    staleMs: STALE_MS,
  })
  return { clock, files: disk, processes, badge }
}

async function enter({ clock, files, processes, badge }: Scene, name: string): Promise<ReturnType<typeof lockOf>> {
  const ports = { files, clock, ids: new SeededIds(), processes, log: silentLog, staleMs: STALE_MS, badge }
  const lock = lockOf(lockPath(name), { ...ports, timeoutMs: 10_000, lingerMs: 0 })
  await lock.enter(never)
  return lock
}

const identityOf = ({ files }: Scene, name: string): string | undefined => files.statNow(lockPath(name))?.identity

async function ask({ files }: Scene, name: string): Promise<void> {
  const handle = await files.open(lockPath(name), 'update')
  await handle.write(' ', handle.stat().size)
  await handle.close()
}

describe('locks that are links', () => {
  it('are one file for all locks of a process, and none is left when it ends', async () => {
    const house = scene()
    const locks = await Promise.all(['a', 'b', 'c'].map((name) => enter(house, name)))
    expect(await house.files.list(BADGES)).toHaveLength(1)
    expect(new Set(['a', 'b', 'c'].map((name) => identityOf(house, name))).size).toBe(1)
    await Promise.all(locks.map((lock) => lock.leave()))
    expect(await house.files.list('/s')).toEqual(['.locks', 'anything'])
    await house.badge.close()
    expect(await house.files.list(BADGES)).toEqual([])
    expect(house.processes.leftovers).toEqual([])
  })

  it('never look old, however long the process has been there', async () => {
    const house = scene()
    await enter(house, 'a').then((lock) => lock.leave())
    await house.clock.advance(2 * STALE_MS)
    const lock = await enter(house, 'a')
    const { createdAt } = JSON.parse(house.files.text(lockPath('a')) ?? '') as { createdAt: string }
    expect(house.clock.now() - Date.parse(createdAt)).toBeLessThan(STALE_MS / 2)
    expect(await house.files.list(BADGES)).toHaveLength(1)
    await lock.leave()
  })

  it('are links to another file from the moment one of them was asked for', async () => {
    const house = scene()
    const first = await enter(house, 'a')
    const before = identityOf(house, 'a')
    await house.clock.advance(100)
    await ask(house, 'a')
    await first.leave()
    expect(first.isHeldNow()).toBe(false)
    const second = await enter(house, 'b')
    expect(identityOf(house, 'b')).not.toBe(before)
    expect(await house.files.list(BADGES)).toHaveLength(1)
    await second.leave()
  })

  it('are files of their own where there are no links', async () => {
    const house = scene(new NoLinks())
    const [first, second] = [await enter(house, 'a'), await enter(house, 'b')]
    expect(JSON.parse(house.files.text(lockPath('a')) ?? '')).toMatchObject(house.processes.self)
    expect(identityOf(house, 'a')).not.toBe(identityOf(house, 'b'))
    await first.leave()
    await second.leave()
  })

  it('do without the file they are links to when somebody removed it, once', async () => {
    const house = scene()
    await enter(house, 'a').then((lock) => lock.leave())
    for (const name of await house.files.list(BADGES)) await house.files.remove(`${BADGES}/${name}`)
    await enter(house, 'a').then((lock) => lock.leave())
    const [first, second] = [await enter(house, 'a'), await enter(house, 'b')]
    expect(identityOf(house, 'a')).toBe(identityOf(house, 'b'))
    await first.leave()
    await second.leave()
  })

  it('leave nothing behind on a full disk, and work when there is room again', async () => {
    const house = scene()
    house.files.limitSpace(10)
    for (let attempt = 0; attempt < 3; attempt++)
      await expect(enter(house, 'a')).rejects.toMatchObject({ code: 'ENOSPC' })
    expect(await house.files.list(BADGES)).toEqual([])
    house.files.limitSpace(10_000)
    await enter(house, 'a').then((lock) => lock.leave())
    expect(await house.files.list(BADGES)).toHaveLength(1)
  })

  it('come with a broom: files of killed processes go, those of living ones stay', async () => {
    const house = scene()
    const owner = (pid: number): string =>
      JSON.stringify({ ...house.processes.self, pid, createdAt: new Date(house.clock.now()).toISOString(), token: 't' })
    house.files.plant(`${BADGES}/dead`, owner(7))
    house.files.plant(`${BADGES}/living`, owner(8))
    house.processes.die({ ...house.processes.self, pid: 7 })
    await enter(house, 'a').then((lock) => lock.leave())
    await house.badge.close()
    expect(await house.files.list(BADGES)).toEqual(['living'])
  })
})
