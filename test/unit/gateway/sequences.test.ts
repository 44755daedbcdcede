import { describe, expect, it } from 'vitest'
import { Sequences } from '../../../src/storage/local/sequences.ts'

/** The journal of a test: bounds that became durable. */
type Durable = number[]

function open(durable: Durable): Sequences {
  const sequences = new Sequences(10)
  for (const upTo of durable) sequences.reserve('u', upTo)
  sequences.startBehindReservations()
  return sequences
}

function takeNumbers(sequences: Sequences, durable: Durable, count: number): readonly number[] {
  const taken: number[] = []
  while (taken.length < count) {
    const seq = sequences.take('u')
    if (seq !== undefined) {
      taken.push(seq)
      continue
    }
    const upTo = sequences.nextReservation('u')
    durable.push(upTo)
    sequences.reserve('u', upTo)
  }
  return taken
}

function takeWithCommit(sequences: Sequences, durable: Durable): number {
  const { seq, reserved } = sequences.takeWith('u')
  if (reserved !== undefined) {
    durable.push(reserved)
    sequences.reserve('u', reserved)
  }
  return seq
}

const isRising = (numbers: readonly number[]): boolean => numbers.every((n, i) => i === 0 || n > (numbers[i - 1] ?? 0))

describe('numbers around the end of a block of 1 024', () => {
  it.each([1, 1_022, 1_023, 1_024, 1_025, 1_026, 2_047, 2_048, 2_049])(
    'after %i of them no restart gives one out again',
    (count) => {
      const durable: Durable = []
      const before = takeNumbers(open(durable), durable, count)
      const after = takeNumbers(open(durable), durable, 3)
      const last = takeNumbers(open(durable), durable, 3)
      expect(isRising([...before, ...after, ...last])).toBe(true)
      expect(Math.max(...durable)).toBeGreaterThanOrEqual(Math.max(...last))
    },
  )

  it.each([1_023, 1_024, 1_025, 1_026, 2_050])('the same for %i that are committed with what they number', (count) => {
    const durable: Durable = []
    const first = open(durable)
    const before = Array.from({ length: count }, () => takeWithCommit(first, durable))
    const next = open(durable)
    const after = Array.from({ length: 3 }, () => takeWithCommit(next, durable))
    expect(isRising([...before, ...after])).toBe(true)
  })

  it('are given out without a gap while the program lives', () => {
    const durable: Durable = []
    const numbers = takeNumbers(open(durable), durable, 3_000)
    expect(numbers).toEqual(Array.from({ length: 3_000 }, (_, index) => index + 1))
    expect(durable).toEqual([1_024, 2_048, 3_072])
  })
})
