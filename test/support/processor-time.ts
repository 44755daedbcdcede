import { rawWork, slownessOf } from './machine-speed.ts'

/**
 * By how much budgets of this process grow on this machine. They are set for one that is quicker than most, and a bound that
 * a slow machine breaks without a defect would say nothing.
 */
export function slownessHere(): number {
  return slownessOf(processorMs(rawWork, 8))
}

/**
 * Processor time of this process, in milliseconds, that a piece of synchronous work takes at best. A busy machine does not
 * count into it, and what the collector or the compiler does in one run is not there in all of them.
 */
export function processorMs(work: () => unknown, tries = 3): number {
  let best = Number.POSITIVE_INFINITY
  for (let run = 0; run < tries; run++) {
    const before = process.cpuUsage()
    work()
    const { user, system } = process.cpuUsage(before)
    best = Math.min(best, (user + system) / 1000)
  }
  return best
}
