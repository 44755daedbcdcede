import { expect, test } from 'vitest'
import { createXiaoyiSimulator } from '../../../src/simulator/xiaoyi/simulator.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { MemoryNetwork } from '../../../src/testing/memory-network.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'
import { AGENT } from '../../support/xiaoyi-world.ts'
import { ALL_CASES } from './cases.ts'
import type { OpenBench } from './kit.ts'
import { runCase } from './kit.ts'
import { NaiveClient, type NaiveFault } from './naive-client.ts'

const openNaive =
  (fault?: NaiveFault): OpenBench =>
  async (switches) => {
    const clock = new ManualClock()
    const network = new MemoryNetwork(clock)
    const endpoints = [9001, 9002].map((port) => ({ host: '127.0.0.1', port }))
    const ids = new SeededIds(11)
    const simulator = await createXiaoyiSimulator({ clock, ids, servers: network, agent: AGENT, endpoints, switches })
    const client = new NaiveClient({ ...AGENT, urls: simulator.urls, clock, dialer: network, ...(fault && { fault }) })
    return { simulator, time: { now: () => clock.now(), pass: (ms) => clock.advance(ms) }, client }
  }

/** What even a naive client gets right, with a mistake that makes it wrong; every other case must find its fault. */
const PASSES: Readonly<Record<string, readonly NaiveFault[]>> = {
  'both-links': ['one-link', 'no-init'],
  'heartbeat-20s': ['no-heartbeat'],
  'each-link-returns': ['no-return'],
  'answers-on-own-link': ['first-link-only'],
  'working-first': ['no-working', 'sloppy'],
  'streamed-answer': ['end-without-text'],
  'later-round': ['all-rounds-at-end'],
  'empty-answer': ['no-empty-end'],
  'overtaken-body': ['end-without-text'],
  'id-reuse': ['knows-ids-only'],
  'quick-messages': ['newest-only'],
  'malformed-storm': ['closes-on-rubbish'],
  'service-error': ['answers-everything'],
}

for (const kase of ALL_CASES) {
  const mistakes = PASSES[kase.name]
  test(`a naive client ${mistakes === undefined ? 'fails' : 'passes'} ${kase.name}`, async () => {
    const { failures } = await runCase(kase, openNaive())
    expect(failures.length === 0).toBe(mistakes !== undefined)
  })
  test.each(mistakes ?? [])(`${kase.name} finds the mistake "%s"`, async (mistake) => {
    const { failures } = await runCase(kase, openNaive(mistake))
    expect(failures).not.toEqual([])
  })
}

test('careless frames are found by name', async () => {
  const kase = ALL_CASES.find(({ name }) => name === 'working-first')
  if (kase === undefined) throw new Error('the case has gone')
  const { failures } = await runCase(kase, openNaive('sloppy'))
  expect(failures).toEqual(['nothing stays on the screen', 'violation: missing-flag', 'violation: artifact-reused'])
})
