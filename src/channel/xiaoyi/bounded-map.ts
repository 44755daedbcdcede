import type { Clock } from '../../base/clock.ts'

/** A map that forgets the oldest entries: by number always, by age when a clock is given. */
export class BoundedMap<V> {
  readonly #entries = new Map<string, { readonly value: V; readonly at: number }>()
  readonly #max: number
  readonly #age: { readonly clock: Clock; readonly maxMs: number } | undefined

  constructor(max: number, age?: { readonly clock: Clock; readonly maxMs: number }) {
    this.#max = max
    this.#age = age
  }

  get(key: string): V | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined) return undefined
    if (this.#age !== undefined && this.#age.clock.monotonic() - entry.at > this.#age.maxMs) {
      this.#entries.delete(key)
      return undefined
    }
    return entry.value
  }

  has(key: string): boolean {
    return this.get(key) !== undefined
  }

  /** A key set again becomes the newest. */
  set(key: string, value: V): void {
    this.#entries.delete(key)
    this.#entries.set(key, { value, at: this.#age?.clock.monotonic() ?? 0 })
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#max) break
      this.#entries.delete(oldest)
    }
  }

  delete(key: string): void {
    this.#entries.delete(key)
  }

  entries(): [string, V][] {
    return [...this.#entries].map(([key, { value }]) => [key, value])
  }
}
