import { describe, expect, it } from 'vitest'
import { checkCase, createCase } from '../support/fuzz/check.ts'

const SEED = 20_260_000
/** The share that runs everywhere; `npm run fuzz:history` runs a million. */
const CASES = 20_000

describe(`${CASES} histories from seed ${SEED}`, () => {
  it("are accepted by every provider's rules and stay within their budget", { timeout: 300_000 }, () => {
    const failures: unknown[] = []
    for (let seed = SEED; seed < SEED + CASES && failures.length < 5; seed++) {
      failures.push(...checkCase(createCase(seed)).map((failure) => ({ seed, ...failure })))
    }
    expect(failures).toEqual([])
  })
})
