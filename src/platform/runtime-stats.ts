import { monitorEventLoopDelay, performance } from 'node:perf_hooks'
import type { Metrics } from '../base/metrics.ts'

/** How often the delay is sampled; the histogram holds the whole time between two samples. */
const SAMPLE_MS = 20

/** Memory, processor time and how late the event loop runs, read when `/metrics` is asked. Returns its stop. */
export function observeRuntime(metrics: Metrics): () => void {
  const resident = metrics.gauge({ name: 'process_resident_memory_bytes', help: 'Memory held in RAM.' })
  const heap = metrics.gauge({ name: 'nodejs_heap_size_used_bytes', help: 'Used JavaScript heap.' })
  const cpu = metrics.counter({ name: 'process_cpu_seconds_total', help: 'User and system processor time.' })
  const uptime = metrics.gauge({ name: 'process_uptime_seconds', help: 'Time since the gateway started.' })
  const lag = metrics.gauge({
    name: 'nodejs_eventloop_lag_seconds',
    help: 'How late the event loop ran since the last scrape.',
    labels: { quantile: ['0.5', '0.99', '1'] },
  })
  let countedCpuSeconds = 0
  const startedAt = performance.now()
  const delay = monitorEventLoopDelay({ resolution: SAMPLE_MS })
  delay.enable()
  metrics.onCollect(() => {
    const memory = process.memoryUsage()
    const { user, system } = process.cpuUsage()
    resident.set(memory.rss)
    heap.set(memory.heapUsed)
    const cpuSeconds = (user + system) / 1e6
    cpu.increase(cpuSeconds - countedCpuSeconds)
    countedCpuSeconds = cpuSeconds
    uptime.set((performance.now() - startedAt) / 1000)
    // Not one sample yet, right after the start: the histogram answers NaN or its largest number.
    const sampled = delay.count > 0
    const late = (nanoseconds: number): number => (sampled ? Math.max(0, nanoseconds / 1e9 - SAMPLE_MS / 1000) : 0)
    lag.set(late(delay.percentile(50)), { quantile: '0.5' })
    lag.set(late(delay.percentile(99)), { quantile: '0.99' })
    lag.set(late(delay.max), { quantile: '1' })
    delay.reset()
  })
  return () => delay.disable()
}
