import type { Ids } from '../base/ids.ts'

/** The same seed gives the same ids and the same jitter. */
export class SeededIds implements Ids {
  readonly #next: () => number

  constructor(seed = 1) {
    this.#next = seededRandom(seed)
  }

  uuid(): string {
    const digits = this.hex(32)
    return [8, 12, 16, 20, 32].map((end, i, ends) => digits.slice(ends[i - 1] ?? 0, end)).join('-')
  }

  hex(length: number): string {
    let text = ''
    while (text.length < length)
      text += Math.floor(this.#next() * 0x1_0000_0000)
        .toString(16)
        .padStart(8, '0')
    return text.slice(0, length)
  }

  fraction(): number {
    return this.#next()
  }
}

/** mulberry32: small, fast, good enough for tests. Numbers in [0, 1). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000
  }
}
