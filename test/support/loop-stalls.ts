import { loopWorkMarks, type LoopWorkMark } from '../../src/base/loop-work.ts'
import { slownessHere } from './processor-time.ts'

/**
 * Named work that took more processor time in one go than a promise of 50 ms can mean on any machine. The bound is twenty times
 * the promise, because collecting garbage counts into it; what grows with the square of its input is far beyond.
 */
const BOUND_MS = 1_000

export interface LoopStalls {
  /** What was seen since the last call. */
  take(): readonly string[]
  stop(): void
}

export function watchStalls(boundMs = BOUND_MS * slownessHere()): LoopStalls {
  const open: { readonly work: string; readonly before: NodeJS.CpuUsage }[] = []
  let seen: string[] = []
  const onMark = (message: unknown): void => {
    const { work } = message as LoopWorkMark
    if (work !== undefined) return void open.push({ work, before: process.cpuUsage() })
    const ended = open.pop()
    if (ended === undefined) return
    const { user, system } = process.cpuUsage(ended.before)
    const ms = (user + system) / 1000
    if (ms > boundMs) seen.push(`${ended.work} held the event loop for ${Math.round(ms)} ms of processor time`)
  }
  loopWorkMarks.subscribe(onMark)
  return {
    take: () => {
      const taken = seen
      seen = []
      return taken
    },
    stop: () => {
      loopWorkMarks.unsubscribe(onMark)
    },
  }
}
