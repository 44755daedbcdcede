import type { JSX } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { count } from '../lib/format.ts'
import { texts } from '../lib/language.ts'
import { RowHeights } from '../lib/row-heights.ts'
import type { RequestRow } from '../lib/types.ts'

/** As the style sheet has them: the gap between columns, and the space before a step. */
const GAP_PX = 4
const STEP_PX = 12
/** As wide as a finger, where one is used. */
const FINGER_PX = 44
/** Kept in the page beside the window. */
const MARGIN_PX = 600

interface FilmColumn {
  readonly key: string
  readonly row: RequestRow
  readonly beginsStep: boolean
}

/** One column per request: what came from the cache, what was new, what was left out. Only those near are in the page. */
export function RequestFilm({
  requests,
  chosen,
  onChoose,
}: {
  readonly requests: readonly RequestRow[]
  readonly chosen: number
  readonly onChoose: (n: number) => void
}): JSX.Element {
  const words = texts.value.xray
  const most = useMemo(
    () => requests.reduce((max, row) => Math.max(max, row.estimate + row.leftOut.tokens), 1),
    [requests],
  )
  const box = useRef<HTMLDivElement>(null)
  const [view, setView] = useState({ left: 0, width: 0 })
  const { columns, widths, columnPx } = useMemo(() => layOut(requests), [requests])
  const at = columns.findIndex(({ row }) => row.n === chosen)
  const look = () => {
    const element = box.current
    if (element !== null) setView({ left: element.scrollLeft, width: element.clientWidth })
  }
  useEffect(() => {
    const observer = new ResizeObserver(look)
    if (box.current !== null) observer.observe(box.current)
    return () => observer.disconnect()
  }, [])
  useLayoutEffect(() => {
    const element = box.current
    if (element === null || at === -1) return
    const [left, right] = [widths.top(at), widths.top(at + 1)]
    if (left < element.scrollLeft) element.scrollLeft = left
    else if (right > element.scrollLeft + element.clientWidth) element.scrollLeft = right - element.clientWidth
    look()
  }, [at, view.width, columns])
  // A film that fits shares the whole width; a longer one has columns of one width, so that their places are known.
  const fits = widths.total <= view.width
  const shown = fits
    ? columns.map((_, place) => ({ at: place, gap: 0 }))
    : widths.between(view.left - MARGIN_PX, view.left + view.width + MARGIN_PX, [at])
  return (
    <div
      class={`film ${fits ? 'fits' : ''}`}
      style={{ '--column': `${columnPx}px` }}
      ref={box}
      role="group"
      aria-label={words.film}
      onScroll={look}
    >
      {shown.map(({ at: place, gap }) => {
        const column = columns[place]
        return column === undefined ? null : (
          <Column {...column} most={most} gap={gap} isChosen={place === at} onChoose={onChoose} />
        )
      })}
      {!fits && <span class="film-rest" style={{ width: `${widths.spaceAfter(shown)}px` }} />}
    </div>
  )
}

function layOut(requests: readonly RequestRow[]) {
  const columns = requests.map((row, at) => ({
    key: String(row.n),
    row,
    beginsStep: at > 0 && requests[at - 1]?.stepId !== row.stepId,
  }))
  const digits = String(requests.at(-1)?.n ?? 0).length
  const columnPx = Math.max(16 + 8 * digits, matchMedia('(pointer: coarse)').matches ? FINGER_PX : 0)
  const widths = new RowHeights<FilmColumn>(({ beginsStep }) => columnPx + GAP_PX + (beginsStep ? STEP_PX : 0))
  widths.setRows(columns)
  return { columns, widths, columnPx }
}

function Column({
  row,
  most,
  isChosen,
  beginsStep,
  gap,
  onChoose,
}: {
  readonly row: RequestRow
  readonly most: number
  readonly isChosen: boolean
  readonly beginsStep: boolean
  /** Space for columns before it that are not in the page. */
  readonly gap: number
  readonly onChoose: (n: number) => void
}): JSX.Element {
  const words = texts.value.xray
  const { usage } = row
  const measured = usage === undefined ? 0 : usage.input + usage.cacheRead + usage.cacheWrite
  const cachedShare = measured === 0 ? 0 : (usage?.cacheRead ?? 0) / measured
  const cached = Math.round(row.estimate * cachedShare)
  const height = (tokens: number) => `${(tokens / most) * 100}%`
  const label = `${words.request(row.n)}: ${count(row.estimate)} ${words.tokens.toLowerCase()}, ${count(row.leftOut.tokens)} ${words.leftOut}`
  return (
    <button
      type="button"
      class={`film-column ${beginsStep ? 'begins-step' : ''}`}
      aria-pressed={isChosen}
      aria-label={label}
      title={label}
      {...(gap > 0 ? { style: { marginLeft: `${gap + (beginsStep ? STEP_PX : 0)}px` } } : {})}
      onClick={() => onChoose(row.n)}
    >
      <span class="stack" aria-hidden="true">
        <span class="ghost" style={{ height: height(row.leftOut.tokens) }} />
        <span class="fresh" style={{ height: height(row.estimate - cached) }} />
        <span class="cached" style={{ height: height(cached) }} />
      </span>
      <span class="n">{row.n}</span>
    </button>
  )
}
