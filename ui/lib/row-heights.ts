/** A row that is in the page, and the empty space in front of it. */
export interface ShownRow {
  readonly at: number
  readonly gap: number
}

/**
 * Heights of the rows of a long list: measured where a row was in the page, estimated where it was not yet. Places
 * count from the top of the list.
 */
export class RowHeights<Row extends { readonly key: string }> {
  readonly #estimate: (row: Row) => number
  readonly #measured = new Map<string, number>()
  readonly #estimated = new Map<string, number>()
  #rows: readonly Row[] = []
  #places = new Map<string, number>()
  /** `#tops[at]` is where row `at` begins; one more stands for the end of the list. */
  #tops: number[] = [0]

  constructor(estimate: (row: Row) => number) {
    this.#estimate = estimate
  }

  get count(): number {
    return this.#rows.length
  }

  get total(): number {
    return this.#tops[this.#rows.length] ?? 0
  }

  setRows(rows: readonly Row[]): void {
    if (rows === this.#rows) return
    this.#rows = rows
    this.#places = new Map(rows.map((row, at) => [row.key, at]))
    this.#addUp(0)
  }

  /** Takes what was measured; true when a height differs from what was assumed. */
  measure(heights: ReadonlyMap<string, number>): boolean {
    let first = this.#rows.length
    for (const [key, height] of heights) {
      const at = this.#places.get(key)
      if (at === undefined || Math.abs(this.#heightAt(at) - height) < 0.5) continue
      this.#measured.set(key, height)
      first = Math.min(first, at)
    }
    if (first === this.#rows.length) return false
    this.#addUp(first)
    return true
  }

  /** Another width breaks lines elsewhere: what was measured holds no longer. */
  forgetMeasured(): void {
    this.#measured.clear()
    this.#addUp(0)
  }

  top(at: number): number {
    return this.#tops[Math.max(0, Math.min(at, this.#rows.length))] ?? 0
  }

  placeOf(key: string): number | undefined {
    return this.#places.get(key)
  }

  keyAt(at: number): string | undefined {
    return this.#rows[at]?.key
  }

  /** The row that covers this height of the list; the first or last one beyond its ends. */
  rowAt(y: number): number {
    let low = 0
    let high = Math.max(0, this.#rows.length - 1)
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if (this.top(middle) <= y) low = middle
      else high = middle - 1
    }
    return low
  }

  /** The rows that cover a part of the list, and others that have to stay in the page wherever they are. */
  between(from: number, to: number, pinned: readonly number[] = []): readonly ShownRow[] {
    if (this.count === 0) return []
    const places = new Set(pinned.filter((at) => at >= 0 && at < this.count))
    for (let at = this.rowAt(from), last = this.rowAt(to); at <= last; at++) places.add(at)
    let end = 0
    return [...places]
      .sort((a, b) => a - b)
      .map((at) => {
        const gap = this.top(at) - end
        end = this.top(at + 1)
        return { at, gap }
      })
  }

  /** Empty space behind the last of these rows. */
  spaceAfter(shown: readonly ShownRow[]): number {
    const last = shown.at(-1)
    return last === undefined ? 0 : this.total - this.top(last.at + 1)
  }

  #heightAt(at: number): number {
    return this.top(at + 1) - this.top(at)
  }

  #addUp(from: number): void {
    const tops = this.#tops
    tops.length = this.#rows.length + 1
    tops[0] = 0
    for (let at = from; at < this.#rows.length; at++) {
      const row = this.#rows[at]
      if (row !== undefined) tops[at + 1] = (tops[at] ?? 0) + (this.#measured.get(row.key) ?? this.#estimateOf(row))
    }
  }

  #estimateOf(row: Row): number {
    const known = this.#estimated.get(row.key)
    if (known !== undefined) return known
    const height = this.#estimate(row)
    this.#estimated.set(row.key, height)
    return height
  }
}
