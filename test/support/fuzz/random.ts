/** A small seeded generator (mulberry32): a million histories need speed more than shrinking. */
export interface Random {
  /** 0 … bound−1 */
  int(bound: number): number
  chance(probability: number): boolean
  pick<T>(values: readonly T[]): T
  /** `count` of `make`, count between the bounds. */
  many<T>(min: number, max: number, make: () => T): T[]
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = state
    t = Math.imul(t ^ (t >>> 15), t | 1)
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61)
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
  const int = (bound: number): number => Math.floor(next() * bound)
  return {
    int,
    chance: (probability) => next() < probability,
    pick: (values) => values[int(values.length)] as never,
    many: (min, max, make) => Array.from({ length: min + int(max - min + 1) }, make),
  }
}
