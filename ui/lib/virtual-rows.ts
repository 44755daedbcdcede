import type { RefObject } from 'preact'
import { useLayoutEffect } from 'preact/hooks'
import type { ShownRow } from './row-heights.ts'
import type { VirtualView } from './virtual-view.ts'

/** The rows of a long list that have to be in the page now; the view knows them and the reader's place. */
export function useVirtualRows<Row extends { readonly key: string }>(
  view: VirtualView<Row>,
  rows: readonly Row[],
  scroller: RefObject<HTMLElement | null>,
  list: RefObject<HTMLElement | null>,
): readonly ShownRow[] {
  // Read so that a change of what has to be in the page renders it.
  void view.version.value
  const shown = view.show(rows)
  useLayoutEffect(
    () =>
      scroller.current === null || list.current === null ? undefined : view.attach(scroller.current, list.current),
    [view],
  )
  useLayoutEffect(() => view.settle())
  return shown
}
