import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { count, short } from '../lib/format.ts'
import { useMoreRows } from './more-rows.tsx'
import { ShowTable } from './show-table.tsx'

interface Props {
  readonly title: string
  readonly columns: readonly { readonly name: string; readonly title: string; readonly values: readonly number[] }[]
  readonly parts: readonly { readonly name: string; readonly class: string }[]
}

/** Columns of stacked values, with the same numbers as a table behind them. */
export function StackedBars({ title, columns, parts }: Props): JSX.Element {
  const most = columns.reduce(
    (max, { values }) =>
      Math.max(
        max,
        values.reduce((sum, value) => sum + value, 0),
      ),
    1,
  )
  return (
    <figure class="panel bars" aria-label={title}>
      <figcaption>
        <h2>{title}</h2>
        <p class="legend">
          {parts.map((part) => (
            <span key={part.name}>
              <i class={`swatch ${part.class}`} /> {part.name}
            </span>
          ))}
        </p>
      </figcaption>
      <Plot columns={columns} parts={parts} most={most} />
      <ShowTable label={title}>{() => <BarsTable title={title} columns={columns} parts={parts} />}</ShowTable>
    </figure>
  )
}

type Column = Props['columns'][number]

/** As the style sheet has it: a column's least width and the gap behind it. */
const COLUMN_PX = 15
/** Kept in the page beside the window. */
const MARGIN_PX = 600

/** Columns share the width; more than fit have one width, and only those near the window are in the page. */
function Plot({ columns, parts, most }: Pick<Props, 'columns' | 'parts'> & { readonly most: number }): JSX.Element {
  const box = useRef<HTMLDivElement>(null)
  const [view, setView] = useState({ left: 0, width: 0 })
  const look = () => {
    const element = box.current
    if (element !== null) setView({ left: element.scrollLeft, width: element.clientWidth })
  }
  useEffect(() => {
    const observer = new ResizeObserver(look)
    if (box.current !== null) observer.observe(box.current)
    return () => observer.disconnect()
  }, [])
  const fits = columns.length * COLUMN_PX <= view.width
  const first = fits ? 0 : Math.max(0, Math.floor((view.left - MARGIN_PX) / COLUMN_PX))
  const end = fits ? columns.length : Math.ceil((view.left + view.width + MARGIN_PX) / COLUMN_PX)
  const shown = columns.slice(first, end)
  const rest = Math.max(0, columns.length - first - shown.length)
  return (
    <div class={`bars-plot ${fits ? '' : 'is-long'}`} aria-hidden="true" ref={box} onScroll={look}>
      <span class="bars-most">{short(most)}</span>
      {first > 0 && <span class="bars-gap" style={{ width: `${first * COLUMN_PX}px` }} />}
      {shown.map((column) => (
        <Bar key={column.title} column={column} parts={parts} most={most} />
      ))}
      {rest > 0 && <span class="bars-gap" style={{ width: `${rest * COLUMN_PX}px` }} />}
    </div>
  )
}

function Bar({
  column,
  parts,
  most,
}: {
  readonly column: Column
  readonly parts: Props['parts']
  readonly most: number
}): JSX.Element {
  return (
    <span class="bars-column" title={`${column.title}: ${column.values.map(count).join(' / ')}`}>
      <span class="stack">
        {column.values
          .map((value, at) => <span key={at} class={parts[at]?.class} style={{ height: `${(value / most) * 100}%` }} />)
          .toReversed()}
      </span>
      <span class="n">{column.name}</span>
    </span>
  )
}

function BarsTable({ title, columns, parts }: Props): JSX.Element {
  const { shown, more } = useMoreRows(columns)
  return (
    <>
      <table class="plain-table">
        <thead>
          <tr>
            <th scope="col">{title}</th>
            {parts.map((part) => (
              <th key={part.name} scope="col" class="number">
                {part.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((column) => (
            <tr key={column.title}>
              <th scope="row">{column.title}</th>
              {column.values.map((value, at) => (
                <td key={at} class="number">
                  {count(value)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {more}
    </>
  )
}
