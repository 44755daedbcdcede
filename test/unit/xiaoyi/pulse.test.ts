import { describe, expect, it } from 'vitest'
import { Pulse } from '../../../src/channel/xiaoyi/pulse.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'

const INTERVALS = { heartbeatMs: 20_000, pingMs: 30_000, deadAfterMs: 90_000, confirmMs: 5_000 }

describe('the pulse of a link', () => {
  it('asks once for ends that come together, and again for one that comes while it waits', async () => {
    const { pulse, clock, pings } = started()
    pulse.expectPongAfter('one')
    pulse.expectPongAfter('two')
    expect(pings()).toBe(0)
    await clock.advance(0)
    expect(pings()).toBe(1)
    pulse.expectPongAfter('three')
    await clock.advance(100)
    expect(pings()).toBe(1)
    pulse.pong()
    expect(pulse.unconfirmed()).toEqual(['three'])
    await clock.advance(0)
    expect(pings()).toBe(2)
    pulse.pong()
    expect(pulse.unconfirmed()).toEqual([])
    await clock.advance(1_000)
    expect(pings()).toBe(2)
  })

  it('counts an end as unconfirmed before it has asked', () => {
    const { pulse } = started()
    pulse.expectPongAfter('end')
    expect(pulse.unconfirmed()).toEqual(['end'])
  })

  it('asks nothing any more after it was stopped', async () => {
    const { pulse, clock, pings } = started()
    pulse.expectPongAfter('end')
    pulse.stop()
    await clock.advance(100_000)
    expect(pings()).toBe(0)
  })

  it('gives a link up that answered before and shows no sign of life after an end', async () => {
    const { pulse, clock, deaths } = started()
    pulse.expectPongAfter('end')
    await clock.advance(5_100)
    expect(deaths).toEqual(['no sign of life after an answer'])
  })
})

/** After its first ping has been answered. */
function started(): { pulse: Pulse; clock: ManualClock; pings: () => number; deaths: string[] } {
  const clock = new ManualClock()
  const deaths: string[] = []
  let pings = -1
  const pulse = new Pulse(clock, INTERVALS, {
    heartbeat: () => undefined,
    ping: () => pings++,
    dead: (reason) => deaths.push(reason),
  })
  pulse.start()
  pulse.pong()
  return { pulse, clock, pings: () => pings, deaths }
}
