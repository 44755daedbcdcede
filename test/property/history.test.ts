import { describe, expect, it } from 'vitest'
import { checkCase, createCase } from '../support/fuzz/check.ts'
import { PROPERTIES } from '../support/fuzz/properties.ts'
import { deepFreeze } from '../support/history.ts'

const SEED = 20_260_000
/** The share that runs everywhere; `npm run fuzz:history` runs a million. */
const CASES = 20_000
const PROPERTY_CASES = 1_500

describe(`histories from seed ${SEED}`, () => {
  it(`are accepted by every provider's rules, ${CASES} of them`, () => {
    for (let seed = SEED; seed < SEED + CASES; seed++) {
      const failures = checkCase(createCase(seed))
      expect(failures, `seed ${seed}`).toEqual([])
    }
  }, 300_000)

  it.each(Object.entries(PROPERTIES))('%s', (_, property) => {
    for (let seed = SEED; seed < SEED + PROPERTY_CASES; seed++) {
      const { inputs } = createCase(seed)
      deepFreeze(inputs)
      const input = inputs[seed % inputs.length]
      expect(input === undefined ? undefined : property(input), `seed ${seed}`).toBeUndefined()
    }
  })
})
