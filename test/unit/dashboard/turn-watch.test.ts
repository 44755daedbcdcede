import { expect, it } from 'vitest'
import type { TurnEvent } from '../../../src/core/event.ts'
import type { RunId, SessionId, SessionKey } from '../../../src/core/ids.ts'
import type { AcceptedMessage } from '../../../src/core/inbound.ts'
import { LiveEvents } from '../../../src/dashboard/live-events.ts'
import { TurnWatch } from '../../../src/dashboard/turn-watch.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'

const KEY = 'held' as SessionKey

function watching(isRunning: (run: string) => boolean): {
  watch: TurnWatch
  show(run: string, event: TurnEvent): void
} {
  const clock = new ManualClock()
  const live = new LiveEvents({ clock, heartbeat: async () => ({}) })
  const watch = new TurnWatch({
    clock,
    live,
    row: async () => undefined,
    status: async () => ({}),
    isRunning: (_, run) => isRunning(run),
    frameOf: () => undefined,
    replyFrame: () => ({}),
  })
  return {
    watch,
    show: (run, event) => {
      const about = { session: KEY, sessionId: 's' as SessionId, run: run as RunId, at: clock.now(), event }
      watch.observe(about, { channel: 'webhook' } as AcceptedMessage)
    },
  }
}

it('a turn that another node took over is not shown as running here for ever', () => {
  const here = new Set(['one', 'two'])
  const { watch, show } = watching((run) => here.has(run))
  for (const run of here) {
    show(run, { type: 'turn-start', model: 'demo' })
    show(run, { type: 'text-delta', round: 0, delta: 'Once upon' })
  }
  expect(watch.running().map(({ run }) => run)).toEqual(['one', 'two'])
  here.delete('one')
  expect(watch.soFar(KEY).map(({ run }) => run)).toEqual(['two'])
  expect(watch.running().map(({ run }) => run)).toEqual(['two'])
})
