import { expect, it } from 'vitest'
import type { TurnEvent } from '../../../src/core/event.ts'
import type { RunId } from '../../../src/core/ids.ts'
import { ManualClock, settle } from '../../../src/testing/manual-clock.ts'
import { KEY, OLD, SessionScene } from '../../support/session-scene.ts'

const EVENTS: readonly TurnEvent[] = [
  { type: 'text-delta', round: 0, delta: 'more ' },
  { type: 'tool-start', round: 0, callId: 'call', tool: 'exec', arguments: {} },
]

async function emit(scene: SessionScene, run: string): Promise<void> {
  const { context } = scene.turn(run)
  for (const event of EVENTS)
    await context.emit({ session: KEY, sessionId: OLD, run: run as RunId, at: scene.clock.now(), event })
}

it.each(['cancel', 'reset', 'delete'] as const)(
  'a turn that goes on after a %s answered its message shows nothing more',
  async (what) => {
    const scene = new SessionScene(new ManualClock())
    await scene.say('1')
    await emit(scene, '1')
    expect(scene.shown).toEqual(['1 text-delta', '1 tool-start'])
    await scene.sessions[what](KEY)
    expect(scene.replies).toHaveLength(1)
    // As a tool that cannot be stopped: it reports whatever the signal says.
    await emit(scene, '1')
    expect(scene.shown).toHaveLength(2)
  },
)

it('what a turn still says after its answer is not shown', async () => {
  const scene = new SessionScene(new ManualClock())
  await scene.say('1')
  scene.turn('1').end.resolve({ kind: 'complete', text: 'done' })
  await settle()
  expect(scene.replies).toEqual(['1 done'])
  await emit(scene, '1')
  expect(scene.shown).toEqual([])
})
