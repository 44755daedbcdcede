import { expect, it } from 'vitest'
import { sleep } from '../../../src/base/clock.ts'
import type { TurnEvent } from '../../../src/core/event.ts'
import type { SessionId } from '../../../src/core/ids.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { MemoryFiles } from '../../../src/testing/memory-files.ts'
import { CoreClient, GatewayCore } from '../../support/gateway-core.ts'

it('a turn that goes on after a reset answered its message shows nothing behind the terminal frame', async () => {
  const clock = new ManualClock()
  const files = new MemoryFiles({ now: () => clock.now() })
  const emitted: number[] = []
  const core = await GatewayCore.open({
    clock,
    files,
    seed: 1,
    // As a tool that cannot be stopped: it reports every 100 ms, five times, whatever the signal says.
    async converse({ key, run }, { emit }) {
      const sessionId = 'sess_1' as SessionId
      for (let round = 0; round < 5; round++) {
        const events: readonly TurnEvent[] = [
          { type: 'text-delta', round, delta: 'more ' },
          { type: 'tool-start', round, callId: `call_${round}`, tool: 'exec', arguments: {} },
        ]
        for (const event of events) await emit({ session: key, sessionId, run, at: clock.now(), event })
        emitted.push(clock.now())
        await sleep(clock, 100, new AbortController().signal)
      }
      return { kind: 'complete', text: 'too late' }
    },
  })
  const client = new CoreClient(core, { account: 'u', stream: true })
  await client.send({ id: '1', content: 'work', session: 's' })
  await clock.advance(150)
  expect(client.frames.map(({ type }) => type)).toContain('event')
  const resetAt = clock.now()
  await client.send({ type: 'session.reset', key: 's' })
  await clock.advance(1_000)
  expect(emitted.filter((at) => at > resetAt)).toHaveLength(3)
  const ofTheRun = client.frames.filter(({ messageId }) => messageId === '1').map(({ type }) => type)
  const end = ofTheRun.indexOf('error')
  expect(end).toBeGreaterThan(0)
  expect(ofTheRun.slice(end)).toEqual(['error'])
  await core.close()
})

it('what a turn still says after its answer is not shown', async () => {
  const clock = new ManualClock()
  const files = new MemoryFiles({ now: () => clock.now() })
  let said = 0
  const core = await GatewayCore.open({
    clock,
    files,
    seed: 1,
    // As a tool that works on after its time was up.
    async converse({ key, run }, { emit }) {
      clock.after(100, () => {
        const event = { type: 'text-delta', round: 0, delta: 'late' } as const
        void emit({ session: key, sessionId: 'sess_1' as SessionId, run, at: clock.now(), event }).then(() => said++)
      })
      return { kind: 'complete', text: 'done' }
    },
  })
  const client = new CoreClient(core, { account: 'u', stream: true })
  await client.send({ id: '1', content: 'work', session: 's' })
  await clock.advance(1_000)
  expect(said).toBe(1)
  const ofTheRun = client.frames.filter(({ messageId }) => messageId === '1').map(({ type }) => type)
  expect(ofTheRun.at(-1)).toBe('complete')
  await core.close()
})
