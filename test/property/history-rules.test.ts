import { describe, expect, it } from 'vitest'
import { ENDS_BY_COUNT } from '../support/ends-by-count.ts'
import { checkCase, createCase } from '../support/fuzz/check.ts'

const SEED = 20_260_000
/** The share that runs everywhere; `npm run fuzz:history` runs a million. */
const CASES = 5_000

describe(`${CASES} histories from seed ${SEED}`, () => {
  it("are accepted by every provider's rules and stay within their budget", ENDS_BY_COUNT, () => {
    const failures: unknown[] = []
    for (let seed = SEED; seed < SEED + CASES && failures.length < 5; seed++) {
      failures.push(...checkCase(createCase(seed)).map((failure) => ({ seed, ...failure })))
    }
    expect(failures).toEqual([])
  })
})
