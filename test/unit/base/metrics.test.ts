import { expect, it } from 'vitest'
import { createMetrics } from '../../../src/base/metrics.ts'
import { observeRuntime } from '../../../src/platform/runtime-stats.ts'

it('exposes counters, gauges and histograms as Prometheus reads them', async () => {
  const metrics = createMetrics()
  const frames = metrics.counter({ name: 'clew_frames_total', help: 'Frames.', labels: { way: ['in', 'out'] } })
  const open = metrics.gauge({ name: 'clew_connections', help: 'Open\nsockets.' })
  const time = metrics.histogram({
    name: 'clew_turn_seconds',
    help: 'Turns.',
    buckets: [1, 5],
    labels: { outcome: ['completed'] },
  })
  frames.increase(2, { way: 'in' })
  open.set(7)
  for (const seconds of [0.5, 1, 3, 60]) time.observe(seconds, { outcome: 'completed' })
  expect(await metrics.expose()).toBe(`# HELP clew_frames_total Frames.
# TYPE clew_frames_total counter
clew_frames_total{way="in"} 2
# HELP clew_connections Open\\nsockets.
# TYPE clew_connections gauge
clew_connections 7
# HELP clew_turn_seconds Turns.
# TYPE clew_turn_seconds histogram
clew_turn_seconds_bucket{outcome="completed",le="1"} 2
clew_turn_seconds_bucket{outcome="completed",le="5"} 3
clew_turn_seconds_bucket{outcome="completed",le="+Inf"} 4
clew_turn_seconds_sum{outcome="completed"} 64.5
clew_turn_seconds_count{outcome="completed"} 4
`)
})

it('counts a label value it was not told about as other, however many there are', async () => {
  const metrics = createMetrics()
  const calls = metrics.counter({ name: 'calls_total', help: 'Calls.', labels: { tool: ['time'] } })
  for (let index = 0; index < 10_000; index++) calls.increase(1, { tool: `invented-${index}` })
  expect(await metrics.expose()).toContain('calls_total{tool="other"} 10000\n')
  expect((await metrics.expose()).split('\n')).toHaveLength(4)
})

it('lets a counter only grow', async () => {
  const metrics = createMetrics()
  const calls = metrics.counter({ name: 'calls_total', help: 'Calls.' })
  calls.increase(2)
  calls.increase(-1)
  calls.increase(Number.NaN)
  expect(await metrics.expose()).toContain('calls_total 2\n')
})

it('shows numbers that are none, and escapes labels', async () => {
  const metrics = createMetrics()
  const gauge = metrics.gauge({ name: 'g', help: 'G.', labels: { l: ['a"b\\c\n', 'x', 'y'] } })
  gauge.set(Number.NaN, { l: 'a"b\\c\n' })
  gauge.set(Infinity, { l: 'x' })
  gauge.set(-Infinity, { l: 'y' })
  expect(await metrics.expose()).toContain('g{l="a\\"b\\\\c\\n"} NaN\ng{l="x"} +Inf\ng{l="y"} -Inf\n')
})

it('asks for current values when it is exposed', async () => {
  const metrics = createMetrics()
  const gauge = metrics.gauge({ name: 'queue', help: 'Q.' })
  let waiting = 0
  metrics.onCollect(() => gauge.set(waiting))
  waiting = 3
  expect(await metrics.expose()).toContain('queue 3\n')
})

it('rejects definitions that are mistakes: a name twice, a bad name, too many combinations', async () => {
  const metrics = createMetrics()
  metrics.gauge({ name: 'a', help: 'A.' })
  expect(() => metrics.counter({ name: 'a', help: 'A.' })).toThrow('exists already')
  expect(() => metrics.counter({ name: 'a-b', help: 'A.' })).toThrow('not a metric name')
  const many = Array.from({ length: 100 }, (_, index) => String(index))
  expect(() => metrics.counter({ name: 'b', help: 'B.', labels: { x: many, y: many } })).toThrow('10201 series')
})

it('reports memory, processor time and event-loop lag of the process', async () => {
  const metrics = createMetrics()
  const stop = observeRuntime(metrics)
  const page = await metrics.expose()
  stop()
  expect(page).toMatch(/process_resident_memory_bytes \d{7,}/)
  expect(page).toMatch(/# TYPE process_cpu_seconds_total counter\nprocess_cpu_seconds_total 0?\.?\d/)
  expect(page).toMatch(/nodejs_eventloop_lag_seconds\{quantile="0.99"\} \d/)
})
