import { expect, test } from 'vitest'
import { createXiaoyiSimulator } from '../../../src/simulator/xiaoyi/simulator.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'
import { MemoryNetwork } from '../../../src/testing/memory-network.ts'
import { SeededIds } from '../../../src/testing/seeded-ids.ts'
import { AGENT } from '../../support/xiaoyi-world.ts'
import { ALL_CASES } from './cases.ts'
import type { OpenBench } from './kit.ts'
import { runCase } from './kit.ts'
import { NaiveClient } from './naive-client.ts'

const openNaive =
  (sloppy: boolean): OpenBench =>
  async (switches) => {
    const clock = new ManualClock()
    const network = new MemoryNetwork(clock)
    const endpoints = [9001, 9002].map((port) => ({ host: '127.0.0.1', port }))
    const ids = new SeededIds(11)
    const simulator = await createXiaoyiSimulator({ clock, ids, servers: network, agent: AGENT, endpoints, switches })
    const client = new NaiveClient({ ...AGENT, urls: simulator.urls, clock, dialer: network, sloppy })
    return { simulator, time: { now: () => clock.now(), pass: (ms) => clock.advance(ms) }, client }
  }

/** What even a naive client gets right; every other case must find its fault. */
const PASSES = new Set([
  'both-links',
  'heartbeat-20s',
  'each-link-returns',
  'answers-on-own-link',
  'working-first',
  'streamed-answer',
  'later-round',
  'empty-answer',
  'overtaken-body',
  'id-reuse',
  'quick-messages',
  'malformed-storm',
  'service-error',
])

for (const kase of ALL_CASES) {
  const passes = PASSES.has(kase.name)
  test(`a naive client ${passes ? 'passes' : 'fails'} ${kase.name}`, async () => {
    const { failures } = await runCase(kase, openNaive(false))
    expect(failures.length === 0).toBe(passes)
  })
}

test('careless frames are found by name', async () => {
  const kase = ALL_CASES.find(({ name }) => name === 'working-first')
  if (kase === undefined) throw new Error('the case has gone')
  const { failures } = await runCase(kase, openNaive(true))
  expect(failures).toEqual(['nothing stays on the screen', 'violation: missing-flag', 'violation: artifact-reused'])
})
