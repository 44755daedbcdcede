import { afterEach, expect, it } from 'vitest'
import { loopWork } from '../../../src/base/loop-work.ts'
import { createMetrics } from '../../../src/base/metrics.ts'
import { watchLoop } from '../../../src/platform/loop-watch.ts'
import { recordingLog } from '../../support/xiaoyi-world.ts'

let stop = (): void => undefined
afterEach(() => stop())

/** Uses the processor until so much wall time has passed. */
function hold(ms: number): void {
  const until = performance.now() + ms
  while (performance.now() < until) Math.sqrt(2)
}

async function watched(work: () => void): Promise<{ readonly page: string; readonly log: readonly string[] }> {
  const metrics = createMetrics()
  const log: string[] = []
  stop = watchLoop(metrics, recordingLog(log), { stallMs: 100, logMs: 100 })
  await new Promise((resolve) => setTimeout(resolve, 50))
  work()
  while (!/_count\{[^}]*\} [1-9]/.test(await metrics.expose())) await new Promise((resolve) => setTimeout(resolve, 10))
  return { page: await metrics.expose(), log }
}

it('a stall is counted and logged with what was running, the innermost of it', async () => {
  const { page, log } = await watched(() => loopWork('history', () => loopWork('pictures', () => hold(300))))
  expect(page).toMatch(/clew_eventloop_stall_seconds_count\{work="pictures"\} 1/)
  expect(JSON.parse(log[0] ?? '')).toMatchObject({
    level: 'warn',
    message: 'the event loop was held up',
    work: 'pictures',
    stalls: 1,
  })
})

it('work without a name is other, and a failing one ends, too', async () => {
  const { page } = await watched(() => {
    expect(() =>
      loopWork('frame', () => {
        throw new Error('bad')
      }),
    ).toThrow('bad')
    hold(300)
  })
  expect(page).toMatch(/clew_eventloop_stall_seconds_count\{work="other"\} [1-9]/)
})
