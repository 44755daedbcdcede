import { expect, it } from 'vitest'
import { Continued } from '../../../src/history/request-delta.ts'
import { createRandom, type Random } from '../../support/fuzz/random.ts'

const SEED = 20_261_119

/** A few letters, so that lists are often alike in some places. */
const letters = (random: Random): string[] => random.many(0, 12, () => random.pick(['a', 'b', 'c']))

it.each([1, 2, 3, 4, 5])(`compares lists as if every item were looked at (seed ${SEED} + %i)`, (more) => {
  const random = createRandom(SEED + more)
  const list = new Continued<string>([])
  let chunks: (readonly string[])[] = []
  for (let round = 0; round < 500; round++) {
    // Mostly the same chunks with one more behind them, as the parts of a history are.
    if (random.chance(0.1)) chunks = chunks.slice(0, random.int(chunks.length + 1))
    if (random.chance(0.1)) chunks = [chunks.flat(), letters(random)]
    chunks = [...chunks, letters(random)]
    const whole = chunks.flat()
    const differs = whole.findIndex((item, at) => item !== list.items[at])
    const kept = differs < 0 ? whole.length : differs
    expect(list.compare(chunks)).toEqual([kept, whole.slice(kept)])
    if (random.chance(0.2)) list.without(random.int(6), random.int(4))
    else if (random.chance(0.8)) list.goOn(kept, whole.slice(kept))
  }
})
