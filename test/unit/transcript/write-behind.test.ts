import { beforeEach, describe, expect, it } from 'vitest'
import { deferred } from '../../../src/base/deferred.ts'
import { ManualClock, settle } from '../../../src/testing/manual-clock.ts'
import { ScriptedProcesses } from '../../../src/testing/scripted-processes.ts'
import type { TranscriptLimits } from '../../../src/transcript/limits.ts'
import type { Transcript } from '../../../src/transcript/store.ts'
import { MoodyFiles } from '../../support/moody-files.ts'
import { DIRECTORY, entriesOf, never, openHouse, sessionId, userDraft, type House } from '../../support/transcripts.ts'

const SESSION = sessionId('sess_a')
const PATH = `${DIRECTORY}/sess_a.jsonl`
/** Whatever can be put off is put off. */
const CROWDED: Partial<TranscriptLimits> = { writeBehindFrom: 1 }

let clock: ManualClock
let files: MoodyFiles
let house: House
let transcript: Transcript

async function open(limits: Partial<TranscriptLimits>): Promise<void> {
  house = await openHouse({ files, clock, withJournal: true, limits })
  transcript = await house.store.open(SESSION, never)
  await transcript.append([userDraft('first')])
}

beforeEach(() => {
  clock = new ManualClock()
  files = new MoodyFiles({ now: () => clock.now() })
})

const linesOf = (path = PATH): string[] => (files.text(path) ?? '').split('\n').slice(0, -1)

const texts = async (from: Transcript): Promise<unknown[]> =>
  (await from.context()).messages.map((message) => ('content' in message ? message.content : undefined))

describe('a store that has little to do', () => {
  it('has every line in its file when it acknowledges it', async () => {
    await open({})
    for (const text of ['one', 'two', 'three']) {
      await transcript.append([userDraft(text)])
      expect(files.text(PATH)).toContain(`"${text}"`)
    }
  })
})

describe('a store in which many append at once', () => {
  it('writes several lines of a session at a time, soon after they are durable', async () => {
    await open({ writeBehindFrom: 4 })
    const others = await Promise.all(
      Array.from({ length: 7 }, (_, at) => house.store.open(sessionId(`sess_${at}`), never)),
    )
    for (const other of others) await other.append([userDraft('first')])
    files.writes = 0
    const all = [transcript, ...others]
    await Promise.all(
      all.map(async (one) => {
        for (let count = 0; count < 5; count++) await one.append([userDraft(`line ${count}`)])
      }),
    )
    await clock.advance(20)
    expect(files.writes).toBeLessThan(5 * all.length)
    for (const one of all) {
      expect(linesOf(`${DIRECTORY}/${one.sessionId}.jsonl`)).toHaveLength(7)
      expect(await entriesOf(one)).toHaveLength(6)
    }
  })
})

describe('lines that are durable and not in their file yet', () => {
  it('get there within the time that is set', async () => {
    await open({ ...CROWDED, writeBehindMs: 8 })
    await transcript.append([userDraft('later')])
    await clock.advance(7)
    expect(files.text(PATH)).not.toContain('later')
    await clock.advance(1)
    expect(files.text(PATH)).toContain('later')
  })

  it('get there at once when they are many', async () => {
    await open({ ...CROWDED, writeBehindBytes: 1_000 })
    await transcript.append([userDraft('short')])
    expect(files.text(PATH)).not.toContain('short')
    await transcript.append([userDraft('long'.repeat(250))])
    expect(files.text(PATH)).toContain('short')
    expect(files.text(PATH)).toContain('longlong')
  })

  it('are found by whoever reads', async () => {
    await open(CROWDED)
    const [entry] = await transcript.append([userDraft('later')])
    expect(await transcript.entry(entry!.id)).toEqual(entry)
    await transcript.append([userDraft('still later')])
    expect(await entriesOf(transcript)).toHaveLength(3)
    await transcript.append([userDraft('last')])
    expect(await transcript.branch()).toHaveLength(4)
  })

  it('are in the file before the lock goes to somebody else', async () => {
    await open(CROWDED)
    await transcript.append([userDraft('later')])
    const second = await openHouse({ files, clock, withJournal: false, seed: 2 })
    const other = await second.store.open(SESSION, never)
    const [entry] = await other.append([userDraft('theirs')])
    expect(entry?.parentId).toBe(transcript.leafId)
    expect(await texts(other)).toEqual(['first', 'later', 'theirs'])
  })

  it('are in the file when the lock is given up', async () => {
    await open({ ...CROWDED, writeBehindMs: 60_000 })
    await transcript.append([userDraft('later')])
    await clock.advance(150)
    expect(await files.stat(`${PATH}.lock`)).toBeUndefined()
    expect(files.text(PATH)).toContain('later')
  })

  it('are in the file, durably, before the journal forgets them', async () => {
    await open(CROWDED)
    await transcript.append([userDraft('later')])
    await house.journal?.checkpoint()
    const later = await openHouse({ files: files.crash(), clock, withJournal: true, seed: 2, processes: dead() })
    expect(await texts(await later.store.open(SESSION, never))).toEqual(['first', 'later'])
  })

  it('are in the file when the store is closed', async () => {
    await open(CROWDED)
    await transcript.append([userDraft('later')])
    await house.close()
    expect(files.text(PATH)).toContain('later')
    expect(clock.pending).toBe(0)
  })

  it('come from the journal after a crash', async () => {
    await open(CROWDED)
    await transcript.append([userDraft('later')])
    await transcript.append([userDraft('last')])
    expect(files.text(PATH)).not.toContain('later')
    const later = await openHouse({ files: files.crash(), clock, withJournal: true, seed: 2, processes: dead() })
    expect(await texts(await later.store.open(SESSION, never))).toEqual(['first', 'later', 'last'])
  })

  it('are not written by somebody who lost the lock, and follow when it is back', async () => {
    await open(CROWDED)
    await transcript.append([userDraft('later')])
    await files.remove(`${PATH}.lock`)
    await clock.advance(30)
    expect(files.text(PATH)).not.toContain('later')
    await transcript.append([userDraft('last')])
    expect(await texts(transcript)).toEqual(['first', 'later', 'last'])
    expect(files.text(PATH)).toContain('later')
  })

  it('go behind what a program without the lock wrote meanwhile, and are found there', async () => {
    await open(CROWDED)
    const [ours] = await transcript.append([userDraft('later')])
    const handle = await files.open(PATH, 'append')
    await handle.write('{"type":"custom","id":"fe0fe0fe","parentId":null,"timestamp":"","customType":"theirs"}')
    await handle.close()
    expect((await entriesOf(transcript)).map(({ id }) => id)).toEqual(expect.arrayContaining(['fe0fe0fe', ours?.id]))
    const [next] = await transcript.append([userDraft('next')])
    expect(next?.parentId).toBe(ours?.id)
    await house.close()
    expect(linesOf()).toHaveLength(5)
  })

  it('stay before a line that became durable meanwhile: the last line of a file is its leaf', async () => {
    await open({ writeBehindFrom: 2 })
    const other = await house.store.open(sessionId('sess_b'), never)
    await other.append([userDraft('first')])
    const [[kept]] = await Promise.all([transcript.append([userDraft('kept')]), other.append([userDraft('crowd')])])
    expect(files.text(PATH)).not.toContain('kept')
    const gate = deferred()
    files.gate = gate.promise
    const appending = transcript.append([userDraft('last')])
    await settle()
    await files.appendAsForeign(PATH, 'fe0fe0fe')
    await clock.advance(20)
    gate.resolve()
    const [last] = await appending
    expect(last?.parentId).toBe(kept?.id)
    await house.close()
    const later = await openHouse({ files, clock, withJournal: true, seed: 2 })
    expect(await texts(await later.store.open(SESSION, never))).toEqual(['first', 'kept', 'last'])
  })

  it('are written once, also by a slow write that others look at half-way', async () => {
    await open(CROWDED)
    await transcript.append([userDraft('one')])
    const gate = deferred()
    files.slow = gate.promise
    await clock.advance(20)
    const appending = transcript.append([userDraft('two')])
    await clock.advance(50)
    const reading = entriesOf(transcript)
    await clock.advance(50)
    files.slow = undefined
    gate.resolve()
    await appending
    expect(await reading).toHaveLength(3)
    await transcript.append([userDraft('three')])
    await house.close()
    expect(linesOf().map((line) => /"content":"(\w+)"/.exec(line)?.[1])).toEqual([
      undefined,
      'first',
      'one',
      'two',
      'three',
    ])
  })

  it('are not cut off with a part of a later one when somebody wrote between them', async () => {
    await open({})
    // The second of a burst has looked at the file, and the next ones rely on that.
    await transcript.append([userDraft('second')])
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
    await house.close()
    expect(linesOf().map((line) => /"content":"([\w ]+)"/.exec(line)?.[1])).toEqual([
      undefined,
      'first',
      'second',
      undefined,
      'behind theirs',
      'half of it',
    ])
  })

  it('survive a power cut also when their file began with them, late', async () => {
    house = await openHouse({ files, clock, withJournal: true })
    transcript = await house.store.open(SESSION, never)
    const gate = deferred()
    files.gate = gate.promise
    const appending = transcript.append([userDraft('first')])
    await clock.advance(30)
    await files.remove(`${PATH}.lock`)
    gate.resolve()
    await appending
    expect(files.text(PATH)).toBeUndefined()
    await house.journal?.checkpoint()
    const later = await openHouse({ files: files.crash(), clock, withJournal: true, seed: 2, processes: dead() })
    expect(await texts(await later.store.open(SESSION, never))).toEqual(['first'])
  })

  it('wait for a disk that is full, and keep their order', async () => {
    await open(CROWDED)
    files.isFull = true
    await transcript.append([userDraft('one')])
    await transcript.append([userDraft('two')])
    await clock.advance(20)
    await transcript.append([userDraft('three')]).catch(() => undefined)
    files.isFull = false
    await transcript.append([userDraft('four')])
    await house.close()
    const lines = linesOf()
    const places = ['first', 'one', 'two', 'four'].map((text) => lines.findIndex((line) => line.includes(`"${text}"`)))
    expect(places).toEqual(places.toSorted((a, b) => a - b))
    expect(places).not.toContain(-1)
  })
})

/** The processes of a later start: the one before is gone. */
function dead(): ScriptedProcesses {
  const processes = new ScriptedProcesses({ pid: 2_000, startedAt: '2' })
  processes.die(new ScriptedProcesses().self)
  return processes
}
