import { expect, it } from 'vitest'
import { ManualClock, settle } from '../../../src/testing/manual-clock.ts'
import { duringOutsideWork } from '../../../src/testing/outside-work.ts'

it('settles what only waits for other promises, however many of them follow each other', async () => {
  let awaited = 0
  void (async () => {
    while (awaited < 10_000) {
      await Promise.resolve()
      awaited++
    }
  })()
  await settle()
  expect(awaited).toBe(10_000)
})

it('settles what follows announced work outside the program, however long that takes', async () => {
  const steps: string[] = []
  const outside = (turns: number): Promise<void> =>
    duringOutsideWork(
      new Promise((resolve) => {
        const turn = (left: number): void => void (left === 0 ? resolve() : setImmediate(() => turn(left - 1)))
        turn(turns)
      }),
    )
  void (async () => {
    await outside(20)
    steps.push('first')
    await outside(20)
    steps.push('second')
  })()
  await settle()
  expect(steps).toEqual(['first', 'second'])
})

it('fires a timer only when everything the earlier ones caused has settled', async () => {
  const clock = new ManualClock()
  const steps: string[] = []
  const follow = async (): Promise<void> => {
    for (let turn = 0; turn < 1_000; turn++) await Promise.resolve()
    steps.push('caused by the first')
  }
  clock.after(1, () => void follow())
  clock.after(1, () => void steps.push('second'))
  await clock.advance(1)
  expect(steps).toEqual(['caused by the first', 'second'])
})
