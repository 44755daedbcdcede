import type { CDPSession, Page } from 'playwright-core'
import { rawWork, slownessOf } from '../support/machine-speed.ts'

interface TraceEvent {
  readonly name: string
  readonly ph: string
  readonly pid: number
  readonly tid: number
  /** Processor time of the thread, in microseconds: other programs of a busy machine do not count into it. */
  readonly tdur?: number
}

/** What the page's main thread did between two moments, in processor time. */
export interface Work {
  /** Milliseconds of each task, longest first. */
  readonly tasks: readonly number[]
  readonly totalMs: number
}

const CALIBRATIONS = 8

/** By how much budgets grow here and now: a raw loop in the same page, measured in the same way. */
export async function slownessIn(page: Page): Promise<number> {
  let best = Number.POSITIVE_INFINITY
  for (let run = 0; run < CALIBRATIONS; run++) {
    const { tasks } = await workDuring(page, () => page.evaluate(`void (${rawWork.toString()})()`))
    best = Math.min(best, tasks[0] ?? best)
  }
  return slownessOf(best)
}

/** Records the tasks of the page's main thread while something happens. */
export async function workDuring(page: Page, act: () => Promise<unknown>): Promise<Work> {
  const session = await page.context().newCDPSession(page)
  const events: TraceEvent[] = []
  session.on('Tracing.dataCollected', ({ value }) => events.push(...(value as unknown as TraceEvent[])))
  await session.send('Tracing.start', {
    transferMode: 'ReportEvents',
    traceConfig: { includedCategories: ['toplevel', 'disabled-by-default-devtools.timeline', '__metadata'] },
  })
  await act()
  await stopTracing(session)
  await session.detach()
  return workOf(events)
}

async function stopTracing(session: CDPSession): Promise<void> {
  const complete = new Promise<void>((resolve) => session.once('Tracing.tracingComplete', () => resolve()))
  await session.send('Tracing.end')
  await complete
}

function workOf(events: readonly (TraceEvent & { readonly args?: { readonly name?: string } })[]): Work {
  const main = new Set(
    events
      .filter(({ name, args }) => name === 'thread_name' && args?.name === 'CrRendererMain')
      .map(({ pid, tid }) => `${pid} ${tid}`),
  )
  const tasks = events
    .filter(({ name, ph, pid, tid }) => name === 'RunTask' && ph === 'X' && main.has(`${pid} ${tid}`))
    .map(({ tdur }) => (tdur ?? 0) / 1_000)
    .sort((a, b) => b - a)
  return { tasks, totalMs: tasks.reduce((sum, ms) => sum + ms, 0) }
}
