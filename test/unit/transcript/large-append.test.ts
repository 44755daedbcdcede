import { describe, expect, it } from 'vitest'
import type { Clock } from '../../../src/base/clock.ts'
import type { Ids } from '../../../src/base/ids.ts'
import type { EntryDraft } from '../../../src/core/entry.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'
import { createMemoryStore } from '../../../src/transcript/memory-store.ts'
import type { Transcript } from '../../../src/transcript/store.ts'
import { RunningClock } from '../../support/running-clock.ts'
import { assistantDraft, never, resultDraft, sessionId, userDraft } from '../../support/transcripts.ts'

function open(clock: Clock = new RunningClock(), ids: Ids = new SeededIds()): Promise<Transcript> {
  return createMemoryStore({ clock, ids }).open(sessionId('sess_a'), never)
}

const questions = (count: number): EntryDraft[] => Array.from({ length: count }, (_, at) => userDraft(`question ${at}`))

/** An answer that asks for so many tools, and what they said. */
function calls(count: number): EntryDraft[] {
  const ids = Array.from({ length: count }, (_, at) => `c${at}`)
  return [assistantDraft('', ids), ...ids.map((id) => resultDraft(id, 'seen'))]
}

/** Processor time of these appends one after another, in milliseconds, at best. */
async function costOf(appends: readonly EntryDraft[][]): Promise<number> {
  let best = Number.POSITIVE_INFINITY
  for (let run = 0; run < 3; run++) {
    const transcript = await open()
    const before = process.cpuUsage()
    for (const drafts of appends) await transcript.append(drafts)
    const { user, system } = process.cpuUsage(before)
    best = Math.min(best, (user + system) / 1000)
  }
  return best
}

describe('an append of many entries', () => {
  it.each([
    ['messages', (count: number) => questions(count)],
    ['results of one answer', (count: number) => calls(count)],
  ])('costs about as much as the same entries in small ones: %s', async (_, drafts) => {
    const small = await costOf(Array.from({ length: 32 }, () => drafts(250)))
    expect((await costOf([drafts(32 * 250)])) / small).toBeLessThan(2.5)
  })

  it('lets others have a turn', async () => {
    const time = new RunningClock()
    const seeded = new SeededIds()
    let named = 0
    let most = 0
    const clock: Clock = {
      now: () => time.now(),
      monotonic: () => time.monotonic(),
      after(delayMs, callback) {
        named = 0
        return time.after(delayMs, callback)
      },
    }
    const ids: Ids = {
      uuid: () => seeded.uuid(),
      fraction: () => seeded.fraction(),
      hex(length) {
        most = Math.max(most, ++named)
        return seeded.hex(length)
      },
    }
    const transcript = await open(clock, ids)
    expect(await transcript.append(questions(2_048))).toHaveLength(2_048)
    expect(most).toBeLessThanOrEqual(256)
  })

  it('leaves nothing of itself when an entry far behind is refused', async () => {
    const transcript = await open()
    await transcript.append([userDraft('before')])
    const refused = transcript.append([...questions(600), { type: 'message', message: { role: '' } as never }])
    await expect(refused).rejects.toMatchObject({ code: 'FIELD_INVALID' })
    await transcript.append([userDraft('after')])
    expect((await transcript.context()).messages).toMatchObject([{ content: 'before' }, { content: 'after' }])
  })
})
