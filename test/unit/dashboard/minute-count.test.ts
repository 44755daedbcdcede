import { expect, it } from 'vitest'
import { MinuteCount } from '../../../src/dashboard/turn-watch.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'

it('counts what happened within the last minute, however long nobody asked', async () => {
  const clock = new ManualClock()
  const count = new MinuteCount(clock)
  for (let second = 0; second < 90; second++) {
    count.add()
    await clock.advance(1_000)
  }
  expect(count.perMinute).toBe(59)
  await clock.advance(30_000)
  expect(count.perMinute).toBe(29)
  await clock.advance(3_600_000)
  expect(count.perMinute).toBe(0)
  count.add()
  count.add()
  expect(count.perMinute).toBe(2)
})
