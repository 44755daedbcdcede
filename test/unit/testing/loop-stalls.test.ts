import { expect, it } from 'vitest'
import { loopWork } from '../../../src/base/loop-work.ts'
import { watchStalls } from '../../support/loop-stalls.ts'

it('work that takes too much processor time is named, once', () => {
  const stalls = watchStalls(20)
  loopWork('history', () => {
    const before = process.cpuUsage()
    while (process.cpuUsage(before).user < 60_000) Math.sqrt(2)
  })
  loopWork('frame', () => undefined)
  expect(stalls.take()).toMatchObject([expect.stringContaining('history held the event loop for')])
  expect(stalls.take()).toEqual([])
  stalls.stop()
})
