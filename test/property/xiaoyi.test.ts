import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import type { PhoneTask } from '../../src/simulator/xiaoyi/phone-task.ts'
import type { World } from '../support/xiaoyi-world.ts'
import { openWorld } from '../support/xiaoyi-world.ts'

type Action =
  | { readonly do: 'say'; readonly text: string; readonly session: number; readonly via: number }
  | { readonly do: 'cut' | 'silence' | 'evict'; readonly link: number }
  | { readonly do: 'refuse'; readonly status: number | undefined }
  | { readonly do: 'cancel' | 'clear' | 'restart-app' | 'redeliver' }
  | { readonly do: 'pass'; readonly ms: number }

const link = fc.constantFrom(0, 1)
const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('say' as const),
      text: fc.constantFrom('say a|b|c', 'hello', 'work 3|done', 'fail half', 'rounds x|y', 'silent'),
      session: fc.constantFrom(0, 1),
      via: link,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constantFrom('cut' as const, 'silence' as const, 'evict' as const), link }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('refuse' as const), status: fc.constantFrom(503, undefined) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom('cancel' as const, 'clear' as const, 'restart-app' as const, 'redeliver' as const),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.constantFrom(1, 40, 300, 2_000, 12_000) }),
  },
)

function perform(world: World, step: Exclude<Action, { do: 'pass' }>, tasks: PhoneTask[]): void {
  const { simulator } = world
  switch (step.do) {
    case 'say':
      // Cancel and clear concern the phone's present conversation; the other one must not notice them.
      tasks.push(simulator.say(step.text, { via: step.via, ...(step.session === 0 ? {} : { sessionId: 'other' }) }))
      return
    case 'cut':
      return simulator.connections.cut(step.link)
    case 'silence':
      return simulator.connections.silence(step.link)
    case 'evict':
      return simulator.connections.close(step.link, 1000, '')
    case 'refuse':
      simulator.switches.refuseWith = step.status
      return
    case 'cancel':
      return void simulator.cancel()
    case 'clear':
      return void simulator.clear()
    case 'restart-app':
      return simulator.restartApp()
    case 'redeliver': {
      const last = tasks.at(-1)
      const wasCancelled = simulator.phone.controls.some(
        (control) => last !== undefined && control.tasks.includes(last),
      )
      return last === undefined || wasCancelled ? undefined : simulator.redeliver(last)
    }
  }
}

/**
 * What no client can avoid when a link fails in the wrong moment: an end whose receipt was lost is sent again (the
 * service ignores it), and the end of a task whose own link is dead comes after the answer on the living one.
 */
const TOLERATED = new Set(['second-final', 'closed-late'])

async function live(actions: readonly Action[], latencyMs: number): Promise<void> {
  const world = await openWorld({ switches: { idleLimitMs: 3_600_000, newSessionAfterClear: false }, start: false })
  world.network.latencyMs = latencyMs
  await world.channel.start(world.gateway)
  await world.clock.advance(2_000)
  const tasks: PhoneTask[] = []
  for (const step of actions) {
    if (step.do === 'pass') await world.clock.advance(step.ms)
    else perform(world, step, tasks)
  }
  world.simulator.switches.refuseWith = undefined
  await world.clock.advance(20 * 60_000)
  const accepted = new Set(world.gateway.accepted.map(({ replyTo }) => replyTo['taskId']))
  for (const task of tasks.filter(({ taskId }) => accepted.has(taskId))) {
    expect(task.state).toBe('done')
    expect(task.frames.filter(({ final, shown }) => final === true && shown)).toHaveLength(1)
  }
  const broken = world.simulator.phone.violations.filter(({ rule }) => !TOLERATED.has(rule))
  expect(broken).toEqual([])
  expect(world.gateway.outbox).toEqual([])
  expect(world.network.attempts.length).toBeLessThan(400)
  await world.close()
  expect(world.clock.pending).toBe(0)
}

test('whatever happens to the links, every accepted message ends exactly once on the phone (seed 8)', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(action, { maxLength: 25 }), fc.constantFrom(0, 30), (actions, latencyMs) =>
      live(actions, latencyMs),
    ),
    { seed: 8, numRuns: 150, endOnFailure: false },
  )
})
