import { beforeAll, describe, expect, it } from 'vitest'
import { build } from '../support/built-gateway.ts'
import { ATTACKS, runAttack } from '../support/attack/index.ts'

const SEED = 20_261_116

beforeAll(build)

/** The short ones; `npm run attack` has all. */
describe(`attacks on the built gateway (seed ${SEED})`, () => {
  it.each(ATTACKS.filter(({ quick }) => quick === true).map((attack) => [attack.row, attack.title, attack] as const))(
    'row %s: %s',
    async (_row, _title, attack) => {
      const { isFinding, seen } = await runAttack(attack, SEED)
      expect(isFinding ? seen : '').toBe('')
    },
    120_000,
  )
})
