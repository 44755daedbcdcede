import { expect, test } from 'vitest'
import { deferred } from '../../../src/base/async.ts'
import { ArrivalOrder } from '../../../src/gateway/intake.ts'
import { settle } from '../../../src/testing/manual-clock.ts'

test('what looks something up does so after what came before, and before what came later', async () => {
  const order = new ArrivalOrder()
  const acted: string[] = []
  const stored = deferred()
  const found = deferred<string>()
  const first = order.enter('line', stored.promise, () => acted.push('message'))
  const second = order.enterAndFind(
    'line',
    () => {
      acted.push('look-up')
      return found.promise
    },
    (key) => void acted.push(`reset ${key}`),
  )
  const third = order.enter('line', Promise.resolve(), () => acted.push('later message'))
  await settle()
  expect(acted).toEqual([])
  stored.resolve()
  await settle()
  expect(acted).toEqual(['message', 'look-up'])
  found.resolve('s')
  await Promise.all([first, second, third])
  expect(acted).toEqual(['message', 'look-up', 'reset s', 'later message'])
})

test('what comes next waits for the start of what it follows, not for its end, and not for one that was not found', async () => {
  const order = new ArrivalOrder()
  const endless = order.enterAndFind(
    'line',
    async () => 's',
    () => new Promise(() => undefined),
  )
  void endless
  const unknown = order.enterAndFind(
    'line',
    () => Promise.reject(new Error('not found')),
    () => 'never',
  )
  const next = order.enter('line', Promise.resolve(), () => 'next')
  await expect(unknown).rejects.toThrow('not found')
  expect(await next).toBe('next')
})
