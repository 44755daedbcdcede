import { describe, expect, it } from 'vitest'
import { silentLog } from '../../../src/base/log.ts'
import { OpenFiles } from '../../../src/transcript/transcript-file.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { DIRECTORY, never, openTranscriptHome, sessionId, userDraft } from '../../support/transcripts.ts'

describe('the descriptors of transcripts', () => {
  it('are given back by those used longest ago, beyond the limit', async () => {
    const rested: string[] = []
    const file = (name: string) => ({ rest: async () => void rested.push(name) })
    const [a, b, c] = [file('a'), file('b'), file('c')]
    const open = new OpenFiles({ clock: new ManualClock(), log: silentLog, max: 2, restAfterMs: 1_000 })
    for (const used of [a, b, a, c]) open.use(used)
    expect(rested).toEqual(['b'])
    open.forget(a)
    open.use(b)
    expect(rested).toEqual(['b'])
    await open.close()
  })

  it('and locks are held by no more transcripts than the limit says, and by none that was not written for a while', async () => {
    const clock = new ManualClock()
    const files = new MemoryFiles({ now: () => clock.now() })
    const app = await openTranscriptHome({ files, clock, withJournal: true, limits: { maxOpenFiles: 3 } })
    const locks = async (): Promise<number> =>
      (await files.list(DIRECTORY)).filter((name) => name.endsWith('.lock')).length
    const transcripts = await Promise.all(
      Array.from({ length: 10 }, (_, at) => app.store.open(sessionId(`sess_${at}`), never)),
    )
    for (const round of [1, 2]) {
      for (const transcript of transcripts) await transcript.append([userDraft(`round ${round}`)])
      await clock.advance(0)
      expect(await locks()).toBe(3)
    }
    await clock.advance(3_000)
    expect(await locks()).toBe(0)
    for (const transcript of transcripts) await transcript.append([userDraft('once more')])
    for (const transcript of transcripts) await transcript.close()
    expect(await locks()).toBe(3)
    await clock.advance(3_000)
    expect(await locks()).toBe(0)
    await app.close()
    expect(clock.pending).toBe(0)
  })
})
