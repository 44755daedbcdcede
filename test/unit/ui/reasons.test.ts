import { expect, it } from 'vitest'
import { LEFT_OUT_REASONS } from '../../../src/dashboard/request-views.ts'
import { REASONS } from '../../../src/history/reasons.ts'
import { REASONS as CHINESE } from '../../../ui/texts/zh-reasons.ts'

it('the Chinese page words every reason for which a message is sent otherwise than it is stored, or not at all', () => {
  const reasons = [...REASONS, ...LEFT_OUT_REASONS]
  expect(reasons.filter((reason) => !/\p{Script=Han}/u.test(CHINESE[reason] ?? ''))).toEqual([])
  // What no version of the gateway says any more would stay for ever.
  expect(Object.keys(CHINESE).filter((reason) => !reasons.some((one) => one === reason))).toEqual([])
})
