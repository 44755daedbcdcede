import { expect, test } from 'vitest'
import { openWorld } from '../../support/xiaoyi-world.ts'
import { ALL_CASES } from './cases.ts'
import type { OpenBench } from './kit.ts'
import { runCase } from './kit.ts'

const open: OpenBench = async (switches) => {
  const { simulator, clock, channel } = await openWorld({ switches })
  const time = { now: () => clock.now(), pass: (ms: number) => clock.advance(ms) }
  const stop = async (): Promise<void> => {
    const closing = channel.close()
    await clock.advance(3_000)
    await closing
  }
  return { simulator, time, client: { stop } }
}

for (const kase of ALL_CASES) {
  test(`${kase.name}: ${kase.claim}`, async () => {
    expect((await runCase(kase, open)).failures).toEqual([])
  })
}
