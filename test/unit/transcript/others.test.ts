import { describe, expect, it } from 'vitest'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import type { Transcript } from '../../../src/transcript/store.ts'
import { DIRECTORY, entriesOf, never, openTranscriptHome, sessionId, userDraft } from '../../support/transcripts.ts'

const PATH = `${DIRECTORY}/sess_a.jsonl`

interface Scene {
  readonly clock: ManualClock
  readonly transcript: Transcript
  open(): Promise<Transcript>
  /** As pi does: no lock, one write to the end of the file. */
  foreignAppend(id: string): Promise<void>
}

async function scene(withJournal: boolean): Promise<Scene> {
  const clock = new ManualClock()
  const files = new MemoryFiles({ now: () => clock.now() })
  const { store } = await openTranscriptHome({ files, clock, withJournal })
  const open = (): Promise<Transcript> => store.open(sessionId('sess_a'), never)
  const transcript = await open()
  await transcript.append([userDraft('ours')])
  return {
    clock,
    transcript,
    open,
    async foreignAppend(id) {
      const [parentId, timestamp] = [transcript.leafId, '2026-01-01T00:00:00.000Z']
      const message = { role: 'user', content: 'theirs', timestamp: 1 }
      const handle = await files.open(PATH, 'append')
      await handle.write(`${JSON.stringify({ type: 'message', id, parentId, timestamp, message })}\n`)
      await handle.close()
    },
  }
}

const THEIRS = 'fe0fe0fe'

describe('two stores of one process', () => {
  it('see what the other wrote, append by append', async () => {
    const clock = new ManualClock()
    const files = new MemoryFiles({ now: () => clock.now() })
    const stores = await Promise.all(
      [1, 2].map((seed) => openTranscriptHome({ files, clock, seed, withJournal: false })),
    )
    const transcripts = await Promise.all(stores.map(({ store }) => store.open(sessionId('sess_a'), never)))
    let parentId: string | null = null
    // Twice in a row makes a burst.
    for (const who of [0, 0, 0, 1, 0, 1, 1, 1, 0, 0]) {
      const [entry] = (await transcripts[who]?.append([userDraft('in turn')])) ?? []
      expect(entry?.parentId).toBe(parentId)
      parentId = entry?.id ?? null
    }
  })
})

describe.each([true, false])('a program that appends without the lock (journal: %s)', (withJournal) => {
  it('is continued by whoever opens the transcript next', async () => {
    const { open, foreignAppend } = await scene(withJournal)
    await foreignAppend(THEIRS)
    const [entry] = await (await open()).append([userDraft('after')])
    expect(entry?.parentId).toBe(THEIRS)
  })

  it('is continued by whoever has read the transcript', async () => {
    const { transcript, foreignAppend } = await scene(withJournal)
    await transcript.context()
    await foreignAppend(THEIRS)
    const [entry] = await transcript.append([userDraft('after')])
    expect(entry?.parentId).toBe(THEIRS)
  })

  it('is noticed by the next append, also in the middle of a burst', async () => {
    const { transcript, foreignAppend } = await scene(withJournal)
    await transcript.append([userDraft('burst')])
    await foreignAppend(THEIRS)
    const [inBurst] = await transcript.append([userDraft('burst, 中文')])
    expect(inBurst?.parentId).toBe(THEIRS)
    expect(await entriesOf(transcript)).toHaveLength(4)
    expect(await transcript.entry(inBurst?.id ?? transcript.leafId!)).toEqual(inBurst)
    expect(await transcript.entry(THEIRS as never)).toMatchObject({ id: THEIRS })
  })
})

describe('a file whose name somebody else has not made durable', () => {
  it('is there after a power cut when we have acknowledged something in it', async () => {
    const clock = new ManualClock()
    const files = new MemoryFiles({ now: () => clock.now() })
    const theirs = await openTranscriptHome({ files, clock, withJournal: true })
    await (await theirs.store.open(sessionId('sess_a'), never)).append([userDraft('theirs')])
    const ours = await openTranscriptHome({ files, clock, withJournal: false, seed: 2 })
    await (await ours.store.open(sessionId('sess_a'), never)).append([userDraft('ours')])
    expect(files.crash().text(PATH)).toContain('"ours"')
  })
})

describe('a line that was spoilt and written again', () => {
  it('keeps its id', async () => {
    const clock = new ManualClock()
    const files = new MemoryFiles({ now: () => clock.now() })
    const { store } = await openTranscriptHome({ files, clock, withJournal: false })
    const transcript = await store.open(sessionId('sess_a'), never)
    await transcript.append([userDraft('first')])
    const [entry] = await transcript.append([userDraft('second')])
    await store.close()
    const [last] = (files.text(PATH) ?? '').split('\n').slice(-2)
    files.plant(PATH, `${(files.text(PATH) ?? '').slice(0, -1)}\0{"type":"custom","id":"${THEIRS}"}\n${last}\n`)
    const again = await openTranscriptHome({ files, clock, withJournal: false, seed: 2 })
    const reopened = await again.store.open(sessionId('sess_a'), never)
    expect((await entriesOf(reopened)).map(({ id }) => id)).toContain(entry?.id)
    expect(reopened.leafId).toBe(entry?.id)
    expect(reopened.repairs.map(({ kind }) => kind)).toEqual(['corrupt'])
    expect((await reopened.context()).messages).toHaveLength(2)
  })
})
