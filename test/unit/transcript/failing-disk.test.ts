import { describe, expect, it } from 'vitest'
import { openJournal } from '../../../src/storage/files/journal.ts'
import { silentLog } from '../../../src/base/log.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { ScriptedProcesses } from '../../../src/testing/scripted-processes.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'
import { openFileStore } from '../../../src/transcript/file-store.ts'
import { TranscriptTopic } from '../../../src/transcript/topic.ts'
import { RunningClock } from '../../support/running-clock.ts'
import { nextTurn } from '../../support/loop-turns.ts'
import { DIRECTORY, entriesOf, never, openTranscriptHome, sessionId, userDraft } from '../../support/transcripts.ts'
import { LocalStorage } from '../../../src/storage/local/local-storage.ts'
import { DEFAULT_MESSAGE_LIMITS } from '../../../src/storage/local/message-rows.ts'

const SESSION = sessionId('sess_a')
const PATH = `${DIRECTORY}/sess_a.jsonl`

describe.each([{ withJournal: true }, { withJournal: false }])('a full disk (journal: $withJournal)', (mode) => {
  it('refuses the append, leaves nothing of it behind, and takes the next one when there is room', async () => {
    const files = new MemoryFiles()
    const app = await openTranscriptHome({ files, ...mode })
    const transcript = await app.store.open(SESSION, never)
    await transcript.append([userDraft('before')])
    const before = files.text(PATH)
    files.limitSpace(40)
    await expect(transcript.append([userDraft('too much')])).rejects.toMatchObject({ code: 'STORAGE_FULL' })
    expect(files.text(PATH)).toBe(before)
    files.limitSpace(1_000_000)
    await transcript.append([userDraft('after')])
    expect((await transcript.context()).messages).toHaveLength(2)
    await transcript.close()
    await app.close()
    const again = await openTranscriptHome({ files, ...mode, seed: 2 })
    const reopened = await again.store.open(SESSION, never)
    expect(reopened.repairs).toEqual([])
    expect((await reopened.context()).messages).toHaveLength(2)
    await reopened.close()
    await again.close()
  })
})

describe('a sync that fails', () => {
  it('stops the transcript; opened again it shows what was acknowledged and goes on', async () => {
    const files = new MemoryFiles()
    const app = await openTranscriptHome({ files, withJournal: false })
    const transcript = await app.store.open(SESSION, never)
    await transcript.append([userDraft('safe')])
    files.injectFault(files.operations + 1, 'EIO')
    await expect(transcript.append([userDraft('unsure')])).rejects.toMatchObject({ code: 'STORAGE_FAILED' })
    await expect(transcript.append([userDraft('never')])).rejects.toMatchObject({ code: 'STORAGE_FAILED' })
    await transcript.close()
    const again = await app.store.open(SESSION, never)
    await again.append([userDraft('after')])
    const disk = files.crash()
    const later = await openTranscriptHome({ files: disk, withJournal: false, seed: 2 })
    const texts = (await entriesOf(await later.store.open(SESSION, never))).map((entry) => JSON.stringify(entry))
    expect(texts.some((text) => text.includes('safe'))).toBe(true)
    expect(texts.some((text) => text.includes('after'))).toBe(true)
    expect(texts.some((text) => text.includes('never'))).toBe(false)
  })

  it('of the journal stops every transcript', async () => {
    const files = new MemoryFiles()
    const app = await openTranscriptHome({ files, withJournal: true })
    const transcript = await app.store.open(SESSION, never)
    await transcript.append([userDraft('safe')])
    files.injectFault(files.operations + 1, 'EIO')
    await expect(transcript.append([userDraft('unsure')])).rejects.toMatchObject({ code: 'STORAGE_FAILED' })
    const other = await app.store.open(sessionId('sess_b'), never)
    await expect(other.append([userDraft('neither')])).rejects.toMatchObject({ code: 'STORAGE_FAILED' })
    await app.store.close()
  })
})

describe('a file that cannot be written while the journal can', () => {
  it('catches up with the next append, and before the journal forgets', async () => {
    const files = new MemoryFiles()
    const app = await openTranscriptHome({ files, withJournal: true })
    const transcript = await app.store.open(SESSION, never)
    await transcript.append([userDraft('one')])
    files.injectFault(files.operations + 2, 'EIO')
    await transcript.append([userDraft('two')])
    expect(files.text(PATH)).not.toContain('"two"')
    await app.journal?.checkpoint()
    expect(files.text(PATH)).toContain('"two"')
    await transcript.append([userDraft('three')])
    expect((await transcript.context()).messages).toHaveLength(3)
    await transcript.close()
    await app.close()
    const disk = files.crash()
    const later = await openTranscriptHome({ files: disk, withJournal: true, seed: 2 })
    const reopened = await later.store.open(SESSION, never)
    expect((await reopened.context()).messages).toHaveLength(3)
    await later.close()
  })
})

describe('a file that still cannot be written when its store closes', () => {
  it('is completed from the journal by the next process', async () => {
    const files = new StubbornFiles()
    const app = await openTranscriptHome({ files, withJournal: true })
    const transcript = await app.store.open(SESSION, never)
    await transcript.append([userDraft('one')])
    files.isStubborn = true
    await transcript.append([userDraft('two')])
    await app.close()
    expect(files.text(PATH)).not.toContain('"two"')
    files.isStubborn = false
    const later = await openTranscriptHome({ files, withJournal: true, seed: 2 })
    const reopened = await later.store.open(SESSION, never)
    expect((await reopened.context()).messages).toMatchObject([{ content: 'one' }, { content: 'two' }])
    await later.close()
  })

  /** Lets nobody write the session's file. */
  class StubbornFiles extends MemoryFiles {
    isStubborn = false
    override async open(...args: Parameters<MemoryFiles['open']>): ReturnType<MemoryFiles['open']> {
      const handle = await super.open(...args)
      const refuse = async (): Promise<never> => {
        throw Object.assign(new Error('no'), { code: 'EIO' })
      }
      return args[0] === PATH
        ? { ...handle, write: (...write) => (this.isStubborn ? refuse() : handle.write(...write)) }
        : handle
    }
  }
})

describe('changes with an append', () => {
  const openBoth = async (files: MemoryFiles) => {
    const clock = new RunningClock()
    const storage = new LocalStorage({ clock, log: silentLog, limits: DEFAULT_MESSAGE_LIMITS })
    const topic = new TranscriptTopic()
    const topics = [topic, ...storage.topics]
    const journal = await openJournal({
      ids: new SeededIds(),
      files,
      directory: '/home/journal',
      topics,
      log: silentLog,
    })
    const ports = { files, clock, ids: new SeededIds(), processes: new ScriptedProcesses(), log: silentLog }
    const store = await openFileStore({ ...ports, directory: DIRECTORY, journal: { journal, topic, storage } })
    storage.attach(journal, store)
    return { store, storage, journal }
  }
  const CHANGE = { kind: 'set-state', section: 'tests', key: 'run', value: 1 } as const

  it('become durable in the same commit, and survive together', async () => {
    const files = new MemoryFiles()
    const { store, storage } = await openBoth(files)
    const transcript = await store.open(SESSION, never)
    await transcript.append([userDraft('answer')], { changes: [CHANGE] })
    expect(await storage.state.get('tests', 'run')).toBe(1)
    await store.close()
    const later = await openBoth(files)
    expect(await later.storage.state.get('tests', 'run')).toBe(1)
    expect((await (await later.store.open(SESSION, never)).context()).messages).toHaveLength(1)
    await later.store.close()
    await later.journal.close()
  })

  it('are refused by a store without a storage, and nothing is stored', async () => {
    const app = await openTranscriptHome({ files: new MemoryFiles(), withJournal: false })
    const transcript = await app.store.open(SESSION, never)
    const appending = transcript.append([userDraft('x')], { changes: [CHANGE] })
    await expect(appending).rejects.toMatchObject({ code: 'FIELD_INVALID' })
    expect(await transcript.branch()).toEqual([])
    await app.close()
  })
})

describe('lines over the limit', () => {
  it('are refused when they are to be written', async () => {
    const app = await openTranscriptHome({
      files: new MemoryFiles(),
      withJournal: false,
      limits: { maxLineBytes: 1_000 },
    })
    const transcript = await app.store.open(SESSION, never)
    await expect(transcript.append([userDraft('x'.repeat(2_000))])).rejects.toMatchObject({ code: 'ENTRY_TOO_LARGE' })
    await transcript.append([userDraft('short')])
    await app.close()
  })

  const line = (id: string, parentId: string | null): string =>
    `${JSON.stringify({ type: 'message', id, parentId, timestamp: '2026-01-01T00:00:00.000Z', message: { role: 'user', content: id, timestamp: 1 } })}\n`
  const header = `${JSON.stringify({ type: 'session', version: 3, id: 'sess_a', timestamp: '', cwd: '/' })}\n`
  const before = `${header}${line('00000001', null)}{"type":"message","id":"00000002","parentId":"00000001","x":"`
  const after = `"}\n${line('00000003', '00000002')}`

  it('are never loaded: a file with a line of 1 GB opens, and what stands around it is there', async () => {
    const files = new HoleFiles(before, 2 ** 30, after)
    const app = await openTranscriptHome({ files, withJournal: false })
    const transcript = await app.store.open(SESSION, never)
    expect((await transcript.context()).messages).toMatchObject([{ content: '00000001' }, { content: '00000003' }])
    expect(transcript.repairs).toContainEqual(expect.objectContaining({ kind: 'too-long' }))
    expect(files.largestRead).toBeLessThanOrEqual(32 * 1024 * 1024)
    await app.close()
  })

  it('stay where they are when something is appended', async () => {
    const files = new MemoryFiles()
    files.plant(PATH, before + 'x'.repeat(5_000) + after)
    const app = await openTranscriptHome({ files, withJournal: false, limits: { maxLineBytes: 1_000 } })
    const transcript = await app.store.open(SESSION, never)
    await transcript.append([userDraft('after')])
    expect((await transcript.context()).messages).toHaveLength(3)
    expect(files.text(PATH)).toContain('x'.repeat(5_000))
    await app.close()
  })
})

/** A file with a stretch of zeros in it that nobody has to keep in memory. */
class HoleFiles extends MemoryFiles {
  largestRead = 0
  readonly #parts: readonly [string, number, string]

  constructor(before: string, holeBytes: number, after: string) {
    super()
    this.#parts = [before, holeBytes, after]
    this.plant(PATH, 'a place for the name')
  }

  override async open(...args: Parameters<MemoryFiles['open']>): ReturnType<MemoryFiles['open']> {
    const handle = await super.open(...args)
    if (args[0] !== PATH) return handle
    const [before, hole, after] = this.#parts
    const size = before.length + hole + after.length
    const read = async (position: number, length: number): Promise<Uint8Array> => {
      this.largestRead = Math.max(this.largestRead, length)
      const bytes = Buffer.alloc(Math.max(0, Math.min(length, size - position)))
      bytes.write(before.slice(position, position + length), 0)
      const tail = before.length + hole
      if (position + length > tail) bytes.write(after.slice(Math.max(0, position - tail)), Math.max(0, tail - position))
      return bytes
    }
    return {
      ...handle,
      stat: () => ({ ...handle.stat(), size }),
      read,
      readInto: async (target, position) => {
        const bytes = await read(position, target.length)
        target.set(bytes)
        return bytes.length
      },
    }
  }
}

describe('transcripts nobody uses', () => {
  it('stay open 45 s, then let go of everything, and open again from the file', async () => {
    const files = new MemoryFiles()
    const app = await openTranscriptHome({ files, withJournal: false })
    const transcript = await app.store.open(SESSION, never)
    await transcript.append([userDraft('one')])
    await transcript.close()
    const text = files.text(PATH) ?? ''
    files.plant(PATH, text.replace('"one"', '"two"'))
    // The clock runs by itself: the sweep comes at once.
    for (let turn = 0; turn < 50; turn++) await nextTurn()
    const again = await app.store.open(SESSION, never)
    expect((await again.context()).messages).toMatchObject([{ content: 'two' }])
    await app.close()
  })

  it('leave earlier when they hold more than the cache may', async () => {
    const files = new MemoryFiles()
    const app = await openTranscriptHome({ files, withJournal: false, limits: { cacheCount: 0 } })
    const transcript = await app.store.open(SESSION, never)
    await transcript.append([userDraft('one')])
    await transcript.close()
    expect(files.text(`${PATH}.lock`)).toBeUndefined()
    await app.close()
  })
})
