import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Metrics } from '../base/metrics.ts'

export interface RuntimeStats {
  readonly residentBytes: number
  readonly heapUsedBytes: number
  readonly uptimeSeconds: number
}

export function readRuntimeStats(): RuntimeStats {
  const memory = process.memoryUsage()
  return { residentBytes: memory.rss, heapUsedBytes: memory.heapUsed, uptimeSeconds: process.uptime() }
}

/** Memory, processor time and how late the event loop runs, read when `/metrics` is asked. Returns its stop. */
export function observeRuntime(metrics: Metrics): () => void {
  const resident = metrics.gauge({ name: 'process_resident_memory_bytes', help: 'Memory held in RAM.' })
  const heap = metrics.gauge({ name: 'nodejs_heap_size_used_bytes', help: 'Used JavaScript heap.' })
  const cpu = metrics.counter({ name: 'process_cpu_seconds_total', help: 'User and system processor time.' })
  const uptime = metrics.gauge({ name: 'process_uptime_seconds', help: 'Time since the process started.' })
  const lag = metrics.gauge({
    name: 'nodejs_eventloop_lag_seconds',
    help: 'How late the event loop ran since the last scrape.',
    labels: { quantile: ['0.5', '0.99', '1'] },
  })
  let countedCpuSeconds = 0
  const delay = monitorEventLoopDelay({ resolution: 20 })
  delay.enable()
  metrics.onCollect(() => {
    const stats = readRuntimeStats()
    const { user, system } = process.cpuUsage()
    resident.set(stats.residentBytes)
    heap.set(stats.heapUsedBytes)
    const cpuSeconds = (user + system) / 1e6
    cpu.increase(cpuSeconds - countedCpuSeconds)
    countedCpuSeconds = cpuSeconds
    uptime.set(stats.uptimeSeconds)
    // Not one sample yet, right after the start: the histogram answers NaN or its largest number.
    const sampled = delay.count > 0
    lag.set(sampled ? delay.percentile(50) / 1e9 : 0, { quantile: '0.5' })
    lag.set(sampled ? delay.percentile(99) / 1e9 : 0, { quantile: '0.99' })
    lag.set(sampled ? delay.max / 1e9 : 0, { quantile: '1' })
    delay.reset()
  })
  return () => delay.disable()
}
