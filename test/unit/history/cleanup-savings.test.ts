import { describe, expect, it } from 'vitest'
import type { Entry } from '../../../src/core/entry.ts'
import { NO_USAGE, type Message, type Usage } from '../../../src/core/message.ts'
import { USUAL_CACHE_PRICES, cleanupEffect } from '../../../src/history/cleanup-savings.ts'
import { activeCleanups } from '../../../src/history/view-records.ts'
import { assistant, entriesOf, user } from '../../support/history.ts'

const usage = (input: number, cacheRead: number, cacheWrite: number): Usage => ({
  ...NO_USAGE,
  input,
  cacheRead,
  cacheWrite,
  totalTokens: input + cacheRead + cacheWrite,
})
const custom = (customType: string, data: object = {}): Partial<Entry> => ({ type: 'custom', customType, data })
const cleanup = (estimated = false): Partial<Entry> =>
  custom('clew.cleanup', { stepId: 's', hidden: [], note: '', tokensBefore: 1_500, tokensAfter: 500, estimated })
const WARM = { prices: USUAL_CACHE_PRICES, now: 60_000, ttlMs: 300_000 }
const COLD = { ...WARM, now: 900_000 }

/** A request of 3000 tokens, answered, then cleaned by 1000. */
const history = (before: Usage, ...after: readonly (Message | Partial<Entry>)[]) =>
  entriesOf(user('a'), custom('clew.request'), assistant('b', { usage: before, timestamp: 1_000 }), ...after)

describe('what cleanups did to a request', () => {
  it('is nothing where nothing is hidden', () => {
    expect(cleanupEffect(history(usage(0, 0, 3_000)), usage(0, 2_000, 100), WARM)).toBeUndefined()
  })
  it('is the hidden tokens where the provider has no cache', () => {
    const effect = cleanupEffect(history(usage(3_000, 0, 0), cleanup()), usage(2_100, 0, 0), WARM)
    expect(effect).toEqual({ tokens: 1_000, measured: true })
  })
  it('counts what could not be read any more in the first request behind it', () => {
    // Of the 2000 that were cached and stayed, 1500 were read: 500 were written again at 1.25 instead of 0.1.
    const effect = cleanupEffect(history(usage(0, 0, 3_000), cleanup()), usage(0, 1_500, 600), WARM)
    expect(effect?.tokens).toBe(Math.round(0.1 * 1_000 - 1.15 * 500))
  })
  it('is the price of reading them in later requests, and of writing them when the cache is cold', () => {
    const later = history(usage(0, 0, 3_000), cleanup(), custom('clew.request'), assistant('c', { timestamp: 2_000 }))
    expect(cleanupEffect(later, usage(0, 2_000, 100), WARM)?.tokens).toBe(100)
    expect(cleanupEffect(history(usage(0, 0, 3_000), cleanup()), usage(0, 0, 2_100), COLD)?.tokens).toBe(1_250)
  })
  it('counts every cleanup in force, and none that was undone', () => {
    const path = history(usage(3_000, 0, 0), cleanup(), cleanup(true))
    const restored = [...path, ...entriesOf(custom('clew.restore', { cleanup: path.at(-1)?.id }))]
    const cost = usage(900, 0, 0)
    expect(cleanupEffect(path, cost, WARM)).toEqual({ tokens: 2_000, measured: false })
    expect(cleanupEffect(restored, cost, WARM)).toEqual({ tokens: 1_000, measured: true })
  })
  it.each([{}, { tokensBefore: { valueOf: 1, toString: 1 }, tokensAfter: [], estimated: 'no', reason: {} }])(
    'counts nothing, and no number as counted, of a cleanup of another program without its numbers: %j',
    (odd) => {
      const path = history(
        usage(3_000, 0, 0),
        cleanup(),
        custom('clew.cleanup', { stepId: 't', hidden: [], note: '', ...odd }),
      )
      expect(cleanupEffect(path, usage(900, 0, 0), WARM)).toEqual({ tokens: 1_000, measured: false })
      expect(activeCleanups(path).at(-1)?.record).toEqual({
        stepId: 't',
        hidden: [],
        note: '',
        tokensBefore: 0,
        tokensAfter: 0,
        estimated: true,
      })
    },
  )
  it('is an estimate where the tokens were estimated or the provider reports none', () => {
    expect(cleanupEffect(history(usage(3_000, 0, 0), cleanup(true)), usage(2_100, 0, 0), WARM)?.measured).toBe(false)
    expect(cleanupEffect(history(usage(3_000, 0, 0), cleanup()), NO_USAGE, WARM)?.measured).toBe(false)
  })
})
