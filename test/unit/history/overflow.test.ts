import { describe, expect, it } from 'vitest'
import { createBudget } from '../../../src/history/budget.ts'
import { MAX_LENGTH_REFUSALS, sizesAfterRefusal, type LengthRefusal } from '../../../src/history/overflow.ts'

const BUDGET = createBudget({ contextWindow: 32_768 })
const after = (
  refusal: LengthRefusal,
  refused: { estimate?: number; isWindowTold?: boolean; largestWindow?: number } = {},
) => sizesAfterRefusal(refusal, BUDGET, { estimate: 5_000, isWindowTold: false, largestWindow: Infinity, ...refused })

describe('the sizes after a refusal for length', () => {
  it('are those the provider names', () => {
    expect(after({ contextWindow: 4_096 })).toEqual({ contextWindow: 4_096, calibration: 1, by: 'told' })
    expect(after({ contextWindow: 131_072 })?.contextWindow).toBe(131_072)
  })

  it('take the provider’s count for a measurement of ours, and never count fewer tokens than before', () => {
    expect(after({ contextWindow: 4_096, promptTokens: 10_000 })?.calibration).toBeCloseTo(2.1)
    expect(after({ contextWindow: 4_096, promptTokens: 2_500 })?.calibration).toBe(1)
  })

  it('blame the estimate when the request was prepared for the named window already', () => {
    const refused = { isWindowTold: true }
    expect(after({ contextWindow: 32_768 }, refused)).toEqual({
      contextWindow: 32_768,
      calibration: 1.25,
      by: 'estimate',
    })
    expect(after({ contextWindow: 32_768, promptTokens: 10_000 }, refused)?.calibration).toBeCloseTo(2.1)
  })

  it('note that the provider named the window we believe in, so that answers are asked for that fit beside it', () => {
    expect(after({ contextWindow: 32_768 })).toMatchObject({ contextWindow: 32_768, by: 'told' })
  })

  it('never exceed what the configuration says', () => {
    expect(after({ contextWindow: 131_072 }, { largestWindow: 8_192 })?.contextWindow).toBe(8_192)
  })

  it('are half the window when no number is named, down to the smallest there is', () => {
    expect(after({})).toEqual({ contextWindow: 16_384, calibration: 1, by: 'halved' })
    const refused = { estimate: 100, isWindowTold: false, largestWindow: Infinity }
    expect(sizesAfterRefusal({}, { contextWindow: 1_000, calibration: 1 }, refused)).toBeUndefined()
  })

  it('leave the window alone when the limit is one of bytes', () => {
    expect(after({ isAboutBytes: true })).toEqual({ contextWindow: 32_768, calibration: 2, by: 'estimate' })
  })

  it('come to an end within the refusals allowed, from the largest window there is', () => {
    let sizes: { contextWindow: number; calibration: number } | undefined = {
      contextWindow: 10_000_000,
      calibration: 1,
    }
    let refusals = 0
    while (sizes !== undefined) {
      sizes = sizesAfterRefusal({}, sizes, { estimate: 1, isWindowTold: false, largestWindow: Infinity })
      refusals++
    }
    expect(refusals).toBeLessThanOrEqual(MAX_LENGTH_REFUSALS)
  })
})
