import { describe, expect, it } from 'vitest'
import { silentLog } from '../../../src/base/log.ts'
import type { Message } from '../../../src/core/message.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { ScriptedProcesses } from '../../../src/testing/scripted-processes.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'
import { writeLockOf, type WriteLock } from '../../../src/transcript/write-lock.ts'
import { DIRECTORY, never, openTranscriptHome, sessionId, userDraft } from '../../support/transcripts.ts'

const PATH = '/s/a.jsonl.lock'

interface Scene {
  readonly clock: ManualClock
  readonly files: MemoryFiles
  readonly processes: ScriptedProcesses
  readonly lock: WriteLock
}

const STALE_MS = 30 * 60_000
const USER = {}

function scene(): Scene {
  const clock = new ManualClock()
  const files = new MemoryFiles({ now: () => clock.now() })
  files.plant('/s/anything', '')
  const processes = new ScriptedProcesses()
  const ports = { files, clock, ids: new SeededIds(), processes, log: silentLog }
  const lock = writeLockOf(PATH, { ...ports, staleMs: STALE_MS, timeoutMs: 10_000 })
  return { clock, files, processes, lock }
}

function payload(clock: ManualClock, fields: object = {}): string {
  const createdAt = new Date(clock.now()).toISOString()
  return JSON.stringify({ pid: 42, startedAt: '7', host: 'test-host', createdAt, token: 't', ...fields })
}

const OTHER = { pid: 42, startedAt: '7', host: 'test-host' }

describe('the write lock', () => {
  it('writes who holds it, keeps it while it is in use, then removes it', async () => {
    const { clock, files, processes, lock } = scene()
    await lock.enter(USER, never)
    const written = files.text(PATH)
    expect(JSON.parse(written ?? '')).toMatchObject({ ...processes.self, token: expect.any(String) as string })
    expect(processes.leftovers).toContain(PATH)
    await lock.leave()
    await clock.advance(5 * 60_000)
    await lock.enter(USER, never)
    await lock.leave()
    expect(files.text(PATH)).toBe(written)
    await lock.letGo(USER)
    expect(files.text(PATH)).toBeUndefined()
    expect(processes.leftovers).not.toContain(PATH)
    expect(clock.pending).toBe(0)
  })

  it('stays until the last of its users lets go', async () => {
    const { files, lock } = scene()
    const other = {}
    for (const user of [USER, other]) await lock.enter(user, never).then(() => lock.leave())
    await lock.letGo(USER)
    expect(files.text(PATH)).toBeDefined()
    await lock.letGo(other)
    expect(files.text(PATH)).toBeUndefined()
  })

  it('never looks half an hour old while it is held: it is given up and taken anew before', async () => {
    const { clock, files, lock } = scene()
    await lock.enter(USER, never).then(() => lock.leave())
    await clock.advance(STALE_MS - 1)
    await lock.enter(USER, never).then(() => lock.leave())
    const { createdAt } = JSON.parse(files.text(PATH) ?? '') as { createdAt: string }
    expect(clock.now() - Date.parse(createdAt)).toBeLessThan(STALE_MS / 2)
    await lock.letGo(USER)
    expect(clock.pending).toBe(0)
  })

  it('lets callers of one process in one after the other, in order', async () => {
    const { lock } = scene()
    const order: number[] = []
    await Promise.all(
      [1, 2, 3].map(async (number) => {
        await lock.enter(USER, never)
        order.push(number)
        await Promise.resolve()
        order.push(number)
        await lock.leave()
      }),
    )
    expect(order).toEqual([1, 1, 2, 2, 3, 3])
    await lock.letGo(USER)
  })

  it('waits for a living owner and says who it is when the time is up', async () => {
    const { clock, files, lock } = scene()
    files.plant(PATH, payload(clock))
    const entering = lock.enter(USER, never).catch((error: unknown) => error)
    await clock.advance(11_000)
    expect(await entering).toMatchObject({ code: 'SESSION_LOCKED', facts: { ownerPid: 42, ownerHost: 'test-host' } })
    expect(JSON.parse(files.text(PATH) ?? '')).toMatchObject({ pid: 42 })
  })

  it('takes over from a dead owner at once', async () => {
    const { clock, files, processes, lock } = scene()
    files.plant(PATH, payload(clock))
    processes.die(OTHER)
    await lock.enter(USER, never)
    expect(JSON.parse(files.text(PATH) ?? '')).toMatchObject({ pid: processes.self.pid })
    await lock.leave()
    await lock.letGo(USER)
    expect(await files.list('/s')).toEqual(['anything'])
  })

  it('takes over from an owner that lives but has held it for half an hour', async () => {
    const { clock, files, lock } = scene()
    files.plant(PATH, payload(clock))
    await clock.advance(30 * 60_000 + 1)
    await lock.enter(USER, never)
    expect(JSON.parse(files.text(PATH) ?? '')).not.toMatchObject({ pid: 42 })
    await lock.leave()
    await lock.letGo(USER)
  })

  it('does not touch a lock whose owner is just writing it, and takes one that stays empty', async () => {
    const { clock, files, lock } = scene()
    files.plant(PATH, '')
    const entering = lock.enter(USER, never)
    await clock.advance(2_000)
    expect(files.text(PATH)?.trim()).toBe('')
    await clock.advance(10_000)
    await entering
    await lock.leave()
    await lock.letGo(USER)
  })

  it('reads locks of other programs, which know no start time', async () => {
    const { clock, files, processes, lock } = scene()
    files.plant(PATH, JSON.stringify({ pid: 42, createdAt: new Date(clock.now()).toISOString() }))
    processes.die({ ...OTHER, startedAt: '' })
    await lock.enter(USER, never)
    await lock.leave()
    await lock.letGo(USER)
  })

  it('gives up waiting when its caller does', async () => {
    const { clock, files, lock } = scene()
    files.plant(PATH, payload(clock))
    const abort = new AbortController()
    const entering = lock.enter(USER, abort.signal).catch((error: unknown) => error)
    await clock.advance(200)
    abort.abort(new Error('enough'))
    expect(await entering).toMatchObject({ message: 'enough' })
    files.plant(PATH, payload(clock))
    await files.remove(PATH)
    await lock.enter(USER, never)
    await lock.leave()
    await lock.letGo(USER)
  })

  async function ask(files: MemoryFiles): Promise<void> {
    const handle = await files.open(PATH, 'update')
    await handle.write(' ', handle.stat().size)
    await handle.close()
  }

  it('is given up right after the batch when another process asks for it', async () => {
    const { files, lock } = scene()
    await lock.enter(USER, never)
    await ask(files)
    await lock.leave()
    expect(files.text(PATH)).toBeUndefined()
  })

  it('is given up within a quarter of a second when another process asks between two batches', async () => {
    const { clock, files, lock } = scene()
    await lock.enter(USER, never)
    await lock.leave()
    await ask(files)
    await clock.advance(250)
    expect(files.text(PATH)).toBeUndefined()
    const entering = lock.enter(USER, never)
    await clock.advance(0)
    expect(files.text(PATH), 'the one who asked gets some time').toBeUndefined()
    await clock.advance(100)
    await entering
    await lock.leave()
    await lock.letGo(USER)
    expect(clock.pending).toBe(0)
  })
})

describe('an append whose lock was taken over', () => {
  it('fails with SESSION_LOCK_LOST and writes nothing; the next one goes on behind the new owner', async () => {
    const clock = new ManualClock()
    const files = new MemoryFiles({ now: () => clock.now() })
    const path = `${DIRECTORY}/sess_a.jsonl`
    let isTakenOver = false
    const takeOver = async (): Promise<{ message?: Message }> => {
      if (isTakenOver) return {}
      isTakenOver = true
      files.plant(`${path}.lock`, payload(clock))
      await clock.advance(10)
      return {}
    }
    const app = await openTranscriptHome({
      files,
      withJournal: false,
      clock,
      hooks: { before_message_write: takeOver },
    })
    const transcript = await app.store.open(sessionId('sess_a'), never)
    await expect(transcript.append([userDraft('late')])).rejects.toMatchObject({ code: 'SESSION_LOCK_LOST' })
    expect(files.text(path)).toBeUndefined()
    expect(JSON.parse(files.text(`${path}.lock`) ?? '')).toMatchObject({ pid: 42 })
    await files.remove(`${path}.lock`)
    await transcript.append([userDraft('again')])
    expect((await transcript.context()).messages).toHaveLength(1)
    await transcript.close()
    await app.close()
    expect(clock.pending).toBe(0)
  })
})
