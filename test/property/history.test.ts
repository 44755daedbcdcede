import { describe, expect, it } from 'vitest'
import { createCase } from '../support/fuzz/check.ts'
import { PROPERTIES } from '../support/fuzz/properties.ts'
import { deepFreeze } from '../support/history.ts'

const SEED = 20_260_000
const CASES = 1_000

describe(`${CASES} histories from seed ${SEED}`, () => {
  it.each(Object.entries(PROPERTIES))('%s', (_, property) => {
    const problems: string[] = []
    for (let seed = SEED; seed < SEED + CASES && problems.length < 5; seed++) {
      const { inputs } = createCase(seed)
      const input = inputs[seed % inputs.length]
      // Frozen to the last block: a step that writes into what it was given throws.
      const problem = input === undefined ? undefined : property(deepFreeze(input))
      if (problem !== undefined) problems.push(`seed ${seed}: ${problem}`)
    }
    expect(problems).toEqual([])
  })
})
