import { beforeEach, describe, expect, it } from 'vitest'
import { deferred } from '../../../src/base/async.ts'
import type { Entry } from '../../../src/core/entry.ts'
import { ManualClock, settle } from '../../../src/testing/manual-clock.ts'
import { ScriptedProcesses } from '../../../src/testing/scripted-processes.ts'
import type { Transcript } from '../../../src/transcript/store.ts'
import { FaultyFiles } from '../../support/faulty-files.ts'
import {
  DIRECTORY,
  entriesOf,
  never,
  openTranscriptHome,
  sessionId,
  userDraft,
  type TranscriptHome,
} from '../../support/transcripts.ts'

const SESSION = sessionId('sess_a')
const PATH = `${DIRECTORY}/sess_a.jsonl`

let clock: ManualClock
let files: FaultyFiles
let app: TranscriptHome
let transcript: Transcript

async function open(): Promise<void> {
  app = await openTranscriptHome({ files, clock, withJournal: true })
  transcript = await app.store.open(SESSION, never)
  await transcript.append([userDraft('first')])
}

beforeEach(() => {
  clock = new ManualClock()
  files = new FaultyFiles({ now: () => clock.now() })
})

const linesOf = (): string[] => (files.text(PATH) ?? '').split('\n').slice(0, -1)

const texts = async (from: Transcript): Promise<unknown[]> =>
  (await from.context()).messages.map((message) => ('content' in message ? message.content : undefined))

it('a file holds every line when it is acknowledged', async () => {
  await open()
  for (const text of ['one', 'two', 'three']) {
    await transcript.append([userDraft(text)])
    expect(files.text(PATH)).toContain(`"${text}"`)
  }
})

/** Acknowledged, because the journal has it, and not in the file, which could not be written. */
async function appendBehind(text: string): Promise<Entry> {
  files.isFull = true
  const [entry] = await transcript.append([userDraft(text)])
  files.isFull = false
  if (entry === undefined) throw new Error('nothing was appended')
  return entry
}

describe('lines that are durable and could not be written to their file', () => {
  beforeEach(() => open())

  it('are found by readers', async () => {
    const entry = await appendBehind('later')
    expect(await transcript.entry(entry.id)).toEqual(entry)
    await appendBehind('still later')
    expect(await entriesOf(transcript)).toHaveLength(3)
    await appendBehind('last')
    expect(await transcript.branch()).toHaveLength(4)
  })

  it('are in the file before the lock goes to another process', async () => {
    await appendBehind('later')
    await transcript.append([userDraft('next')])
    expect(linesOf()).toHaveLength(4)
    expect(await texts(transcript)).toEqual(['first', 'later', 'next'])
  })

  it('are in the file, durably, before the journal forgets them', async () => {
    await appendBehind('later')
    await app.journal?.checkpoint()
    const later = await openTranscriptHome({
      files: files.crash(),
      clock,
      withJournal: true,
      seed: 2,
      processes: dead(),
    })
    expect(await texts(await later.store.open(SESSION, never))).toEqual(['first', 'later'])
  })

  it('are in the file when the store is closed', async () => {
    await appendBehind('later')
    await app.close()
    expect(files.text(PATH)).toContain('later')
    expect(clock.pending).toBe(0)
  })

  it('are carried on by the journal when the store is closed and the file still cannot be written', async () => {
    await appendBehind('later')
    files.isFull = true
    await app.close()
    files.isFull = false
    const later = await openTranscriptHome({ files, clock, withJournal: true, seed: 2, processes: dead() })
    expect(await texts(await later.store.open(SESSION, never))).toEqual(['first', 'later'])
  })

  it('come from the journal after a crash', async () => {
    await appendBehind('later')
    files.isFull = true
    await transcript.append([userDraft('last')]).catch(() => undefined)
    expect(files.text(PATH)).not.toContain('later')
    const later = await openTranscriptHome({
      files: files.crash(),
      clock,
      withJournal: true,
      seed: 2,
      processes: dead(),
    })
    expect((await texts(await later.store.open(SESSION, never))).slice(0, 2)).toEqual(['first', 'later'])
  })

  it('go behind what a program without the lock wrote meanwhile, and are found there', async () => {
    const ours = await appendBehind('later')
    await files.appendAsForeign(PATH, 'fe0fe0fe')
    expect((await entriesOf(transcript)).map(({ id }) => id)).toEqual(expect.arrayContaining(['fe0fe0fe', ours.id]))
    const [next] = await transcript.append([userDraft('next')])
    expect(next?.parentId).toBe(ours.id)
    await app.close()
    expect(linesOf()).toHaveLength(5)
  })

  it('are not cut off with a part of a later one when another program wrote between them', async () => {
    await files.appendAsForeign(PATH, 'fe0fe0fe')
    await transcript.append([userDraft('behind theirs')])
    const before = files.text(PATH)
    const gate = deferred()
    files.slow = gate.promise
    const appending = transcript.append([userDraft('half of it')])
    await settle()
    expect(files.text(PATH)?.length).toBeGreaterThan(before?.length ?? 0)
    files.isFull = true
    gate.resolve()
    await appending
    expect(files.text(PATH)).toBe(before)
    files.isFull = false
    files.slow = undefined
    await app.close()
    expect(linesOf().map((line) => /"content":"([\w ]+)"/.exec(line)?.[1])).toEqual([
      undefined,
      'first',
      undefined,
      'behind theirs',
      'half of it',
    ])
  })

  it.each([
    ['an append', async () => void (await transcript.append([userDraft('next')]))],
    ['a checkpoint of the journal', async () => app.journal?.checkpoint()],
    ['another reader', async () => void (await entriesOf(transcript))],
  ])('are written once when a reader and %s write them at the same time', async (_, other) => {
    await appendBehind('later')
    const orders: (readonly (() => Promise<unknown>)[])[] = [
      [() => entriesOf(transcript), other],
      [other, () => entriesOf(transcript)],
    ]
    for (const [at, [first, second]] of orders.entries()) {
      const gate = deferred()
      files.slow = gate.promise
      const before = first?.()
      await settle()
      expect(files.halfway).toBe(1)
      const after = second?.()
      await settle()
      expect(files.halfway).toBe(1)
      files.slow = undefined
      gate.resolve()
      await Promise.all([before, after])
      expect(transcript.repairs).toEqual([])
      await appendBehind(`again ${at}`)
    }
    await transcript.append([userDraft('last')])
    const ids = linesOf().map((line) => (JSON.parse(line) as { id: string }).id)
    expect(new Set(ids).size).toBe(ids.length)
    for (const text of ['later', 'again 0', 'again 1', 'last'])
      expect(linesOf().filter((line) => line.includes(`"${text}"`))).toHaveLength(1)
  })

  it('wait for a disk that is full, and keep their order', async () => {
    await appendBehind('one')
    files.isFull = true
    await expect(transcript.append([userDraft('two')])).rejects.toMatchObject({ code: 'STORAGE_FULL' })
    files.isFull = false
    await transcript.append([userDraft('three')])
    await app.close()
    const lines = linesOf()
    const places = ['first', 'one', 'three'].map((text) => lines.findIndex((line) => line.includes(`"${text}"`)))
    expect(places).toEqual(places.toSorted((a, b) => a - b))
    expect(places).not.toContain(-1)
  })
})

describe('lines whose lock was lost while they were committed', () => {
  it('are not written by the one who lost it, and follow when the lock is back', async () => {
    await open()
    const gate = deferred()
    files.gate = gate.promise
    const appending = transcript.append([userDraft('later')])
    await settle()
    await files.remove(`${PATH}.lock`)
    gate.resolve()
    files.gate = undefined
    await appending
    expect(files.text(PATH)).not.toContain('later')
    await transcript.append([userDraft('last')])
    expect(await texts(transcript)).toEqual(['first', 'later', 'last'])
    expect(files.text(PATH)).toContain('later')
  })

  it('survive a power cut also when their file began with them', async () => {
    app = await openTranscriptHome({ files, clock, withJournal: true })
    transcript = await app.store.open(SESSION, never)
    const gate = deferred()
    files.gate = gate.promise
    const appending = transcript.append([userDraft('first')])
    await settle()
    await files.remove(`${PATH}.lock`)
    gate.resolve()
    await appending
    expect(files.text(PATH)).toBeUndefined()
    await app.journal?.checkpoint()
    const later = await openTranscriptHome({
      files: files.crash(),
      clock,
      withJournal: true,
      seed: 2,
      processes: dead(),
    })
    expect(await texts(await later.store.open(SESSION, never))).toEqual(['first'])
  })
})

/** The processes of a later start: the one before is gone. */
function dead(): ScriptedProcesses {
  const processes = new ScriptedProcesses({ pid: 2_000, startedAt: '2' })
  processes.die(new ScriptedProcesses().self)
  return processes
}
