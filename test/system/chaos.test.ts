import { beforeAll, expect, it } from 'vitest'
import { build, MAIN } from '../support/built-gateway.ts'
import { missingPlaces } from '../support/chaos/planted.ts'
import { runChaos } from '../support/chaos/run.ts'
import { ENDS_BY_COUNT } from '../support/ends-by-count.ts'

const SEED = 7

beforeAll(build, ENDS_BY_COUNT.timeout)

it('every fault that the checker is tried with can be planted', () => {
  expect(missingPlaces()).toEqual([])
})

/** `npm run chaos:cluster` is the same for as long as one likes; `--fault NAME` shows what the checker finds. */
it(`three nodes that are killed, stopped and cut off keep every promise (seed ${SEED})`, ENDS_BY_COUNT, async () => {
  const report = await runChaos({
    seed: SEED,
    nodes: 3,
    clients: 12,
    messages: Number.POSITIVE_INFINITY,
    faults: 12,
    faultEveryMs: 2_000,
    leaseMs: 2_000,
    program: [MAIN],
    say: () => undefined,
  })
  expect(report.violations).toEqual([])
  expect(report.acknowledged).toBeGreaterThan(12)
  expect(report.answered + report.unknown).toBe(report.acknowledged)
  expect(report.epochSamples).toBeGreaterThan(0)
})
