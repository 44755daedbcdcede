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

/** What was counted and logged when a stall of this name was; a busy machine may cause others of its own. */
async function watched(
  name: string,
  work: () => void,
): Promise<{ readonly page: string; readonly logged: string | undefined }> {
  const metrics = createMetrics()
  const log: string[] = []
  stop = watchLoop(metrics, recordingLog(log), { stallMs: 100, logMs: 100, logEveryMs: 0 })
  await new Promise((resolve) => setTimeout(resolve, 50))
  work()
  const isCounted = new RegExp(`_count\\{work="${name}"\\} [1-9]`)
  while (!isCounted.test(await metrics.expose())) await new Promise((resolve) => setTimeout(resolve, 10))
  return { page: await metrics.expose(), logged: log.find((line) => line.includes(`"work":"${name}"`)) }
}

it('a stall is counted and logged with what was running, the innermost of it', async () => {
  const { page, logged } = await watched('pictures', () =>
    loopWork('history', () => loopWork('pictures', () => hold(300))),
  )
  expect(page).toMatch(/clew_eventloop_stall_seconds_count\{work="pictures"\} 1/)
  expect(JSON.parse(logged ?? '')).toMatchObject({
    level: 'warn',
    message: 'the event loop was blocked',
    work: 'pictures',
    stalls: 1,
  })
})

it('work without a name is other, and a failing one ends, too', async () => {
  const { page } = await watched('other', () => {
    expect(() =>
      loopWork('frame', () => {
        throw new Error('bad')
      }),
    ).toThrow('bad')
    hold(300)
  })
  expect(page).toMatch(/clew_eventloop_stall_seconds_count\{work="other"\} [1-9]/)
})
