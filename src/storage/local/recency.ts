/**
 * Keys ordered by the time of their last change. A change costs O(1): the old place becomes a hole, the new one is at the
 * end; holes are squeezed out when they outnumber the keys. Times never fall towards the end, so a place can be found by
 * binary search; rows that come in late, from a file, are sorted in when the order is next asked for.
 */
export class Recency {
  #keys: (string | undefined)[] = []
  #times: number[] = []
  readonly #places = new Map<string, number>()
  #newest = 0
  #sorted = true

  get newestTime(): number {
    return this.#newest
  }

  touch(key: string, at: number): void {
    this.delete(key)
    this.#places.set(key, this.#keys.length)
    this.#keys.push(key)
    this.#times.push(at)
    if (at < this.#newest) this.#sorted = false
    else this.#newest = at
    if (this.#keys.length > 64 && this.#keys.length > 2 * this.#places.size) this.#squeeze()
  }

  delete(key: string): void {
    const place = this.#places.get(key)
    if (place === undefined) return
    this.#keys[place] = undefined
    this.#places.delete(key)
  }

  /** Newest first, starting behind the given key, or behind the time it had if it has moved since. */
  *newestFirst(after?: { readonly key: string; readonly at: number }): Iterable<string> {
    if (!this.#sorted) this.#sort()
    for (let place = this.#startPlace(after); place >= 0; place--) {
      const key = this.#keys[place]
      if (key !== undefined) yield key
    }
  }

  *oldestFirst(): Iterable<string> {
    if (!this.#sorted) this.#sort()
    for (const key of this.#keys) if (key !== undefined) yield key
  }

  #startPlace(after: { readonly key: string; readonly at: number } | undefined): number {
    if (after === undefined) return this.#keys.length - 1
    const place = this.#places.get(after.key)
    if (place !== undefined && this.#times[place] === after.at) return place - 1
    return lastAtOrBefore(this.#times, after.at)
  }

  #sort(): void {
    const rows = [...this.#places].map(([key, place]) => ({ key, place, at: this.#times[place] ?? 0 }))
    rows.sort((a, b) => a.at - b.at || a.place - b.place)
    this.#keys = rows.map(({ key }) => key)
    this.#times = rows.map(({ at }) => at)
    rows.forEach(({ key }, place) => this.#places.set(key, place))
    this.#sorted = true
  }

  #squeeze(): void {
    const keys: string[] = []
    const times: number[] = []
    this.#keys.forEach((key, place) => {
      if (key === undefined) return
      this.#places.set(key, keys.length)
      keys.push(key)
      times.push(this.#times[place] ?? 0)
    })
    this.#keys = keys
    this.#times = times
  }
}

function lastAtOrBefore(times: readonly number[], at: number): number {
  let low = 0
  let high = times.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((times[middle] ?? 0) <= at) low = middle + 1
    else high = middle
  }
  return low - 1
}
