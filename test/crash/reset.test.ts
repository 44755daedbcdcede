import { afterEach, describe, expect, it } from 'vitest'
import type { SessionKey } from '../../src/core/ids.ts'
import type { PhoneTask } from '../../src/simulator/xiaoyi/phone-task.ts'
import type { Fault } from '../../src/testing/memory-files.ts'
import { ENDS_BY_COUNT } from '../support/ends-by-count.ts'
import { closeAll, type Inside, kill, openInside, openOutside, type Outside } from '../support/xiaoyi-gateway.ts'

afterEach(closeAll)

interface Scene {
  readonly outside: Outside
  readonly inside: Inside
  readonly key: SessionKey
  readonly tasks: readonly PhoneTask[]
}

/** Something to forget, a turn that streams, a message that waits behind it. */
async function openScene(): Promise<Scene> {
  const outside = await openOutside({ newSessionAfterClear: false, idleLimitMs: 1_000_000 })
  const { simulator, clock } = outside
  const inside = await openInside(outside)
  const key = `agent:main:xiaoyi:dm:${simulator.sessionId}` as SessionKey
  simulator.say('the secret is 42')
  await clock.advance(5_000)
  const tasks = [simulator.say('hang'), simulator.say('later')]
  await clock.advance(3_000)
  return { outside, inside, key, tasks }
}

const sessionIdOf = async ({ app }: Inside, key: SessionKey): Promise<string | undefined> =>
  (await app.storage.sessions.get(key))?.sessionId

describe('a clear that a crash interrupts', () => {
  it('has happened whole or not at all, wherever it was', ENDS_BY_COUNT, async () => {
    const whole = await openScene()
    const before = whole.inside.files.operations
    whole.outside.simulator.clear()
    await whole.outside.clock.advance(1_000)
    const operations = whole.inside.files.operations - before
    await closeAll()
    const seen = { undone: 0, unanswered: 0, answered: 0 }
    for (let at = 0; at < operations; at++) {
      for (const [fault, isKill] of [
        ['crash-before', false],
        ['crash-torn', true],
        ['crash-after', true],
      ] as const) {
        const what = await crashAt(at, fault, isKill, `operation ${at} of ${operations}, ${fault}`)
        seen[what]++
        await closeAll()
      }
    }
    expect(Math.min(...Object.values(seen)), JSON.stringify(seen)).toBeGreaterThan(0)
  })

  async function crashAt(
    at: number,
    fault: Fault,
    isKill: boolean,
    where: string,
  ): Promise<'undone' | 'unanswered' | 'answered'> {
    const { outside, inside, key, tasks } = await openScene()
    const { simulator, clock, model } = outside
    const old = await sessionIdOf(inside, key)
    inside.files.injectFault(inside.files.operations + at, fault)
    const clear = simulator.clear()
    await clock.advance(1_000)
    const shown = tasks.reduce((sum, { finals }) => sum + finals, 0)
    const wasAnswered = clear.answers.some(({ state }) => state === 'cleared')
    const disk = isKill ? await kill(outside, inside) : (await kill(outside, inside), inside.files.crash())
    const next = await openInside(outside, disk)
    const isReset = (await sessionIdOf(next, key)) !== old
    // The new conversation and the ends of the old one's messages are one fact.
    expect(await next.app.storage.inbox.open(), where).toHaveLength(isReset ? 0 : 2)
    if (wasAnswered) expect(isReset, `${where}: answered before it was durable`).toBe(true)
    if (!wasAnswered) {
      simulator.clear()
      await clock.advance(1_000)
    }
    await clock.advance(30_000)
    expect(
      tasks.map(({ lastState }) => lastState),
      where,
    ).toEqual(['canceled', 'canceled'])
    const finals = tasks.reduce((sum, task) => sum + task.finals, 0)
    // Sent in the moment of the crash: nobody can know, and an end too many is ignored where one too few is not.
    if (shown === 0) expect([finals, simulator.phone.violations], where).toEqual([2, []])
    else expect(finals, where).toBeLessThanOrEqual(2 + shown)
    const after = simulator.say('recall')
    await clock.advance(5_000)
    expect(after, where).toMatchObject({ state: 'done', text: 'nothing', finals: 1 })
    expect(model.requests.at(-1), where).not.toContain('42')
    await expectArchived(next, key, old, where)
    return wasAnswered ? 'answered' : isReset ? 'unanswered' : 'undone'
  }
})

/** What was cleared can be brought back, as far as it was written. */
async function expectArchived(inside: Inside, key: SessionKey, old: string | undefined, where: string): Promise<void> {
  const { sessions, transcripts } = inside.app.storage
  const archived = (await sessions.get(key))?.archived?.find(({ sessionId }) => sessionId === old)
  if (archived === undefined) return expect.unreachable(`${where}: the old conversation is not listed`)
  const transcript = await transcripts.open(archived.sessionId, new AbortController().signal)
  const { messages } = await transcript.context()
  expect(JSON.stringify(messages), where).toContain('the secret is 42')
  expect(JSON.stringify(messages), where).toContain('hang')
  await transcript.close()
}
