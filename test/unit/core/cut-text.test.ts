import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cutMiddle, shareOut } from '../../../src/base/text.ts'

const SEED = 7
const runs = { seed: SEED, numRuns: 200 }

describe('sharing out characters', () => {
  it('never gives more than there is, nor more than a text has, and the least to each while the total allows', () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(10_000), { minLength: 1, maxLength: 40 }),
        fc.integer({ min: 1, max: 20_000 }),
        fc.nat(500),
        (lengths, max, least) => {
          const shares = shareOut(lengths, max, least)
          const total = lengths.reduce((sum, length) => sum + length, 0)
          expect(shares.reduce((sum, share) => sum + share, 0)).toBeLessThanOrEqual(Math.min(max, total))
          for (const [i, share] of shares.entries()) {
            expect(share).toBeLessThanOrEqual(lengths[i] ?? 0)
            const floor = least * lengths.length <= max ? Math.min(least, lengths[i] ?? 0) : 0
            expect(share).toBeGreaterThanOrEqual(floor)
          }
        },
      ),
      runs,
    )
  })
})

describe('cutting the middle out of a text', () => {
  const notice = (omitted: number): string => `[${omitted} omitted]`

  it('keeps within the limit, keeps head and tail, and never half a code point', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 120 }), fc.integer({ min: 30, max: 80 }), (text, max) => {
        const cut = cutMiddle(text, max, notice)
        expect(cut.length).toBeLessThanOrEqual(Math.max(max, Math.min(text.length, max)))
        // A lone surrogate does not survive UTF-8.
        expect(Buffer.from(cut).toString()).toBe(cut)
      }),
      runs,
    )
  })

  it('says exactly how many characters are missing', () => {
    const text = '🧵'.repeat(100)
    const cut = cutMiddle(text, 60, notice)
    const omitted = Number(/\[(\d+) omitted\]/.exec(cut)?.[1])
    expect(cut.replace(/\n\[\d+ omitted\]\n/, '').length / 2).toBe(100 - omitted)
  })

  it('leaves a text that fits alone', () => {
    expect(cutMiddle('short', 10, notice)).toBe('short')
  })
})
