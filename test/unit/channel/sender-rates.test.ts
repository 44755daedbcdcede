import { expect, it } from 'vitest'
import { SenderRates } from '../../../src/channel/sender-rates.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'

it('the sender that asked longest ago is forgotten when there are more than the limit says', () => {
  const rates = new SenderRates(new ManualClock(), { perSecond: 1, burst: 1, senders: 2 })
  const isTaken = (address: string): boolean => {
    try {
      rates.take({ address })
      return true
    } catch {
      return false
    }
  }
  expect(['a', 'b', 'a', 'c', 'a', 'b'].map(isTaken)).toEqual([true, true, false, true, false, true])
})
