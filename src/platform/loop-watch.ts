import { performance } from 'node:perf_hooks'
import type { Log } from '../base/log.ts'
import { LOOP_WORK, loopWorkMarks, type LoopWork, type LoopWorkMark } from '../base/loop-work.ts'
import type { Metrics } from '../base/metrics.ts'

export interface LoopWatchOptions {
  /** From here on it counts. */
  readonly stallMs?: number
  /** From here on it is written to the log, at most once in `logEveryMs`. */
  readonly logMs?: number
  readonly logEveryMs?: number
}

const TICK_MS = 20
const BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30] as const

/**
 * Notices when something keeps everybody waiting: `clew_eventloop_stall_seconds` by what was running, and a line in the log
 * with the processor time it took, which tells our work from a machine that was busy with something else. Returns its stop.
 */
export function watchLoop(metrics: Metrics, log: Log, options: LoopWatchOptions = {}): () => void {
  const { stallMs = 50, logMs = 250, logEveryMs = 10_000 } = options
  const stalls = metrics.histogram({
    name: 'clew_eventloop_stall_seconds',
    help: 'How long the event loop was blocked, when that was 50 ms or more, by what was running.',
    labels: { work: [...LOOP_WORK, 'other'] },
    buckets: BUCKETS,
  })
  const works = new WorkTimes()
  let loggedAt = Number.NEGATIVE_INFINITY
  let unlogged = 0
  const report = (ms: number, processorMs: number): void => {
    const work = works.longest(ms)
    stalls.observe(ms / 1000, { work })
    if (ms < logMs) return
    unlogged++
    if (performance.now() - loggedAt < logEveryMs) return
    log.warn('the event loop was blocked', {
      ms: Math.round(ms),
      processorMs: Math.round(processorMs),
      work,
      stalls: unlogged,
    })
    loggedAt = performance.now()
    unlogged = 0
  }
  let due = performance.now() + TICK_MS
  let processor = process.cpuUsage()
  const timer = setInterval(() => {
    const now = performance.now()
    const usage = process.cpuUsage()
    const lateMs = now - due
    if (lateMs >= stallMs) report(lateMs, (usage.user - processor.user + usage.system - processor.system) / 1000)
    works.clear()
    due = now + TICK_MS
    processor = usage
  }, TICK_MS)
  timer.unref()
  loopWorkMarks.subscribe(works.onMark)
  return () => {
    clearInterval(timer)
    loopWorkMarks.unsubscribe(works.onMark)
  }
}

/** How long each named work took since the last look. */
class WorkTimes {
  readonly #open: { readonly work: LoopWork; readonly at: number }[] = []
  #longest: { readonly work: LoopWork; readonly ms: number } | undefined

  readonly onMark = (message: unknown): void => {
    const { work } = message as LoopWorkMark
    if (work !== undefined) return void this.#open.push({ work, at: performance.now() })
    const ended = this.#open.pop()
    if (ended === undefined) return
    const ms = performance.now() - ended.at
    // What lies around it takes a little longer; the inner one says more.
    if (ms > (this.#longest?.ms ?? 0) * 1.2) this.#longest = { work: ended.work, ms }
  }

  /** What took most of a stall; `other` when nothing that has a name did. */
  longest(stallMs: number): LoopWork | 'other' {
    return this.#longest !== undefined && this.#longest.ms >= stallMs / 2 ? this.#longest.work : 'other'
  }

  clear(): void {
    this.#longest = undefined
  }
}
