import { signal } from '@preact/signals'
import { RowHeights, type ShownRow } from './row-heights.ts'

/** So much above and below what is seen is in the page too: a key or a wheel never meets an empty place. */
const MARGIN_PX = 900
/** Closer to the end than this, the reader follows what is being written. */
const NEAR_END_PX = 80
/** A selection over more rows than these keeps only its ends in the page. */
const MAX_SELECTED_ROWS = 500

/** The first row in sight, and how far its top is above the upper edge. */
interface Anchor {
  readonly key: string
  /** Where it stood, should the row itself be gone. */
  readonly at: number
  readonly offset: number
}

/**
 * Which rows of a long list are in the page, and where its reader is: the rows around what is seen, the one with the
 * focus, and those of a selection. The reader's place is a row, not a number of pixels, so nothing moves when rows
 * come in above, grow, or turn out to be of another height than was assumed.
 */
export class VirtualView<Row extends { readonly key: string }> {
  /** Rises when other rows have to be in the page. */
  readonly version = signal(0)
  readonly isAway = signal(false)
  onNearTop: (() => void) | undefined
  readonly #heights: RowHeights<Row>
  readonly #observed = new Set<Element>()
  #observer: ResizeObserver | undefined
  #scroller: HTMLElement | undefined
  #list: HTMLElement | undefined
  #anchor: Anchor | undefined
  #isAtEnd: boolean
  readonly #follows: boolean
  #viewHeight = 800
  #width = 0
  #shown: readonly ShownRow[] = []

  /** A list that grows at its end begins there, and its end stays in sight for a reader who is there. */
  constructor(estimate: (row: Row) => number, begins: 'at its end' | 'at its top' = 'at its end') {
    this.#heights = new RowHeights(estimate)
    this.#follows = begins === 'at its end'
    this.#isAtEnd = this.#follows
  }

  /** The rows to put into the page now. */
  show(rows: readonly Row[]): readonly ShownRow[] {
    this.#heights.setRows(rows)
    this.#shown = this.#rowsToShow()
    return this.#shown
  }

  /** Empty space after the last row in the page. */
  get spaceAfter(): number {
    return this.#heights.spaceAfter(this.#shown)
  }

  attach(scroller: HTMLElement, list: HTMLElement): () => void {
    this.#scroller = scroller
    this.#list = list
    const onScroll = (): void => this.#onScroll()
    const onSelection = (): void => this.#refresh()
    this.#observer = new ResizeObserver(() => this.settle())
    this.#observer.observe(scroller)
    scroller.addEventListener('scroll', onScroll, { passive: true })
    document.addEventListener('selectionchange', onSelection)
    this.settle()
    return () => {
      this.#observer?.disconnect()
      this.#observed.clear()
      scroller.removeEventListener('scroll', onScroll)
      document.removeEventListener('selectionchange', onSelection)
    }
  }

  /** After every change of the page: measures its rows and puts the reader where they were. */
  settle(): void {
    const scroller = this.#scroller
    const list = this.#list
    if (scroller === undefined || list === undefined) return
    this.#viewHeight = scroller.clientHeight
    if (list.offsetWidth !== this.#width) {
      this.#width = list.offsetWidth
      this.#heights.forgetMeasured()
    }
    this.#heights.measure(this.#measuredRows(list))
    this.#observeRows(list)
    const wanted = this.#isAtEnd ? scroller.scrollHeight - scroller.clientHeight : this.#listTop() + this.#viewTop()
    if (Math.abs(scroller.scrollTop - wanted) >= 1) scroller.scrollTop = wanted
    this.#refresh()
  }

  toEnd(): void {
    this.#isAtEnd = true
    this.isAway.value = false
    this.#refresh()
    this.settle()
  }

  /** Brings a row into the upper third of what is seen. */
  jumpTo(key: string): void {
    this.#isAtEnd = false
    this.#anchor = { key, at: this.#heights.placeOf(key) ?? 0, offset: -this.#viewHeight / 3 }
    this.isAway.value = true
    this.#refresh()
    this.settle()
  }

  #onScroll(): void {
    const scroller = this.#scroller
    if (scroller === undefined) return
    const top = scroller.scrollTop - this.#listTop()
    const at = this.#heights.rowAt(top)
    const key = this.#heights.keyAt(at)
    if (key !== undefined) this.#anchor = { key, at, offset: top - this.#heights.top(at) }
    const isNearEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR_END_PX
    this.#isAtEnd = this.#follows && isNearEnd
    this.isAway.value = !isNearEnd
    this.#refresh()
    if (top < scroller.clientHeight) this.onNearTop?.()
  }

  /** Asks for another render when other rows than now have to be in the page. */
  #refresh(): void {
    const wanted = this.#rowsToShow()
    const isSame =
      wanted.length === this.#shown.length && wanted.every((row, place) => row.at === this.#shown[place]?.at)
    if (!isSame) this.version.value++
  }

  /** Where what is seen begins, in the list's own measure. */
  #viewTop(): number {
    if (this.#isAtEnd) return this.#heights.total - this.#viewHeight
    const anchor = this.#anchor
    if (anchor === undefined) return (this.#scroller?.scrollTop ?? 0) - this.#listTop()
    return this.#heights.top(this.#heights.placeOf(anchor.key) ?? anchor.at) + anchor.offset
  }

  #listTop(): number {
    const scroller = this.#scroller
    const list = this.#list
    if (scroller === undefined || list === undefined) return 0
    return list.getBoundingClientRect().top - scroller.getBoundingClientRect().top + scroller.scrollTop
  }

  #rowsToShow(): readonly ShownRow[] {
    const top = this.#viewTop()
    return this.#heights.between(top - MARGIN_PX, top + this.#viewHeight + MARGIN_PX, this.#pinned())
  }

  /** Rows that stay in the page wherever the reader scrolls: the one with the focus, those of a selection. */
  #pinned(): readonly number[] {
    const focused = this.#placeOfNode(document.activeElement)
    const selection = getSelection()
    const ends = (selection?.isCollapsed === false ? [selection.anchorNode, selection.focusNode] : []).flatMap((node) =>
      this.#placeOfNode(node),
    )
    const from = Math.min(...ends)
    const to = Math.max(...ends)
    const selected =
      ends.length === 2 && to - from < MAX_SELECTED_ROWS
        ? Array.from({ length: to - from + 1 }, (_, n) => from + n)
        : ends
    return [...focused, ...selected]
  }

  #placeOfNode(node: Node | null): readonly number[] {
    const element = node instanceof Element ? node : node?.parentElement
    const row = element?.closest<HTMLElement>('[data-row]')
    if (row === null || row === undefined || this.#list?.contains(row) !== true) return []
    const at = this.#heights.placeOf(row.dataset['row'] ?? '')
    return at === undefined ? [] : [at]
  }

  #measuredRows(list: HTMLElement): ReadonlyMap<string, number> {
    const heights = new Map<string, number>()
    for (const row of list.children) {
      const key = row instanceof HTMLElement ? row.dataset['row'] : undefined
      if (key !== undefined) heights.set(key, row.getBoundingClientRect().height)
    }
    return heights
  }

  #observeRows(list: HTMLElement): void {
    for (const row of this.#observed) {
      if (row.parentNode === list) continue
      this.#observer?.unobserve(row)
      this.#observed.delete(row)
    }
    for (const row of list.children) {
      if (this.#observed.has(row)) continue
      this.#observed.add(row)
      this.#observer?.observe(row)
    }
  }
}
