/** Lists that are one when they are put behind each other; each stays as it is. */
export type Chunks<T> = readonly (readonly T[])[]

/** A list that is nearly always continued. What it was found to begin with is not compared again, however long it is. */
export class Continued<T> {
  readonly #items: T[]
  /** Its beginning. */
  #known: (readonly T[])[] = []

  constructor(items: T[]) {
    this.#items = items
  }

  get items(): readonly T[] {
    return this.#items
  }

  /** How many of its items the other one begins with, and what that one has behind them. */
  compare(chunks: Chunks<T>): readonly [kept: number, rest: readonly T[]] {
    const differs = chunks.findIndex((chunk, at) => !isSameChunk(chunk, this.#known[at]))
    const known = differs < 0 ? chunks.length : differs
    this.#known.length = known
    let kept = lengthOf(this.#known)
    const rest = chunks.slice(known)
    for (const [at, chunk] of rest.entries()) {
      const differing = chunk.findIndex((item, place) => item !== this.#items[kept + place])
      if (differing >= 0) return [kept + differing, [chunk.slice(differing), ...rest.slice(at + 1)].flat()]
      this.#known.push(chunk)
      kept += chunk.length
    }
    return [kept, []]
  }

  /** Takes items out of its middle or beginning: a window that slides. */
  without(at: number, count: number): void {
    this.#items.splice(at, count)
    while (lengthOf(this.#known) > at) this.#known.pop()
  }

  /** So many of its items, then these. */
  goOn(kept: number, items: readonly T[]): void {
    this.#items.length = Math.min(this.#items.length, kept)
    while (lengthOf(this.#known) > kept) this.#known.pop()
    for (const item of items) this.#items.push(item)
  }
}

const lengthOf = (chunks: Chunks<unknown>): number => chunks.reduce((sum, { length }) => sum + length, 0)

const SHORT = 8

/** A short one is made anew for every request. */
function isSameChunk<T>(a: readonly T[], b: readonly T[] | undefined): boolean {
  if (a === b) return true
  return a.length === b?.length && a.length <= SHORT && a.every((item, at) => item === b[at])
}
