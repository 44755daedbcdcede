import { describe, expect, it } from 'vitest'
import { silentLog } from '../../../src/base/log.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { DEFAULT_LIMITS, type TranscriptLimits } from '../../../src/transcript/limits.ts'
import { OpenTranscripts, type OpenTranscript } from '../../../src/transcript/open-transcripts.ts'
import { never, sessionId } from '../../support/transcripts.ts'

describe('transcripts that are open', () => {
  it('leave in the order in which they were last used, and never while somebody uses them', async () => {
    const { use, open } = world({ cacheCount: 1 })
    await (await use('first')).release()
    const first = await use('first')
    await (await use('second')).release()
    expect(open()).toEqual(['first', 'second'])
    await first.release()
    expect(open()).toEqual(['first'])
    await (await use('third')).release()
    expect(open()).toEqual(['third'])
  })

  it('leave when they hold too much together', async () => {
    const { use, open } = world({ cacheBytes: 3_500 })
    for (let count = 0; count < 10; count++) await (await use(`s${count}`)).release()
    expect(open()).toEqual(['s7', 's8', 's9'])
  })

  it('are found again when more are in use, one after the other, than there is room for', async () => {
    const { use, opened } = world({ cacheBytes: 5_500 })
    for (let round = 0; round < 10; round++)
      for (let count = 0; count < 10; count++) await (await use(`s${count}`)).release()
    // Ten in the first round, and five in each of the others: half of them have room.
    expect(opened()).toBeLessThanOrEqual(10 + 9 * 6)
  })

  it('make room again when those that stayed are not used any more', async () => {
    const { use, open, clock } = world({ cacheBytes: 2_500, cacheIdleMs: 1_000 })
    for (const name of ['a', 'b', 'c', 'a']) await (await use(name)).release()
    expect(open()).toEqual(['b', 'c'])
    await clock.advance(1_000)
    for (const name of ['a', 'a']) await (await use(name)).release()
    expect(open()).toEqual(['a'])
  })

  it('leave after their time, each after its own', async () => {
    const { use, open, clock } = world({ cacheIdleMs: 1_000 })
    await (await use('early')).release()
    await clock.advance(600)
    await (await use('late')).release()
    await clock.advance(500)
    expect(open()).toEqual(['late'])
    await clock.advance(1_000)
    expect(open()).toEqual([])
  })

  it('stay when one of two users lets go', async () => {
    const { use, open } = world({ cacheCount: 0 })
    const [one, other] = [await use('shared'), await use('shared')]
    await one.release()
    expect(open()).toEqual(['shared'])
    await other.release()
    expect(open()).toEqual([])
  })

  it('stay while lines of theirs are in the journal alone', async () => {
    const { use, open, clock, behind } = world({ cacheCount: 0, cacheIdleMs: 1_000 })
    behind.add('waiting')
    await (await use('waiting')).release()
    await (await use('other')).release()
    expect(open()).toEqual(['waiting'])
    behind.clear()
    await clock.advance(1_000)
    expect(open()).toEqual([])
  })

  it('make room for a new one when they have failed, and do not come back when their last user leaves', async () => {
    const { use, open, opened, failed } = world({})
    const before = await use('s')
    failed.add(before.transcript)
    const after = await use('s')
    expect(after.transcript).not.toBe(before.transcript)
    await before.release()
    expect(open()).toEqual(['s'])
    await after.release()
    const again = await use('s')
    expect(again.transcript).toBe(after.transcript)
    expect(opened()).toBe(2)
  })

  it('are opened for those who waited along when the one who asked first gives up', async () => {
    const { transcripts, open, opened, holdNext } = world({})
    const [hasty, patient] = [new AbortController(), new AbortController()]
    holdNext()
    const given = transcripts.use(sessionId('s'), hasty.signal)
    const waited = transcripts.use(sessionId('s'), patient.signal)
    hasty.abort(new Error('enough'))
    await expect(given).rejects.toThrow('enough')
    await waited
    expect(opened()).toBe(2)
    expect(open()).toEqual(['s'])
  })
})

/** Transcripts of 1 000 bytes each. */
function world(limits: Partial<TranscriptLimits>) {
  const clock = new ManualClock()
  const openNow: { readonly name: string; readonly it: unknown }[] = []
  const behind = new Set<string>()
  const failed = new Set<unknown>()
  let opened = 0
  let isHeld = false
  const open = async (name: string, signal: AbortSignal): Promise<OpenTranscript> => {
    opened++
    if (isHeld) {
      isHeld = false
      await new Promise((_resolve, reject) => {
        if (signal.aborted) reject(signal.reason)
        signal.addEventListener('abort', () => reject(signal.reason))
      })
    }
    const transcript = {
      heldBytes: 1_000,
      settled: async () => undefined,
      close: async () => {
        const at = openNow.findIndex(({ it }) => it === transcript)
        if (at >= 0) openNow.splice(at, 1)
      },
    }
    openNow.push({ name, it: transcript })
    const log = {
      rest: async () => undefined,
      get hasFailed() {
        return failed.has(transcript)
      },
      get isBehind() {
        return behind.has(name)
      },
    }
    return { log, transcript } as unknown as OpenTranscript
  }
  const transcripts = new OpenTranscripts({ clock, log: silentLog, limits: { ...DEFAULT_LIMITS, ...limits }, open })
  return {
    clock,
    transcripts,
    behind,
    failed,
    use: (name: string) => transcripts.use(sessionId(name), never),
    open: () => openNow.map(({ name }) => name),
    opened: () => opened,
    holdNext: () => (isHeld = true),
  }
}
