import { expect, test } from 'vitest'
import { openInside, openOutside } from '../../support/xiaoyi-gateway.ts'
import { ALL_CASES } from './cases.ts'
import type { OpenBench } from './kit.ts'
import { runCase } from './kit.ts'

const open: OpenBench = async (switches) => {
  const outside = await openOutside(switches)
  const inside = await openInside(outside)
  const { simulator, clock } = outside
  const time = { now: () => clock.now(), pass: (ms: number) => clock.advance(ms) }
  return { simulator, time, client: inside }
}

for (const kase of ALL_CASES) {
  test(`the whole gateway passes ${kase.name}`, async () => {
    expect((await runCase(kase, open)).failures).toEqual([])
  })
}
