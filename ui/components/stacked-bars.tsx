import type { JSX } from 'preact'
import { count, short } from '../lib/format.ts'
import { texts } from '../lib/language.ts'

interface Props {
  readonly title: string
  readonly columns: readonly { readonly name: string; readonly title: string; readonly values: readonly number[] }[]
  readonly parts: readonly { readonly name: string; readonly class: string }[]
}

/** Columns of stacked values, with the same numbers as a table behind them. */
export function StackedBars({ title, columns, parts }: Props): JSX.Element {
  const most = Math.max(1, ...columns.map(({ values }) => values.reduce((sum, value) => sum + value, 0)))
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
      <div class="bars-plot" aria-hidden="true">
        <span class="bars-most">{short(most)}</span>
        {columns.map((column) => (
          <span
            key={column.title}
            class="bars-column"
            title={`${column.title}: ${column.values.map(count).join(' / ')}`}
          >
            <span class="stack">
              {column.values
                .map((value, at) => (
                  <span key={at} class={parts[at]?.class} style={{ height: `${(value / most) * 100}%` }} />
                ))
                .toReversed()}
            </span>
            <span class="n">{column.name}</span>
          </span>
        ))}
      </div>
      <details>
        <summary>{texts.value.state.showTable}</summary>
        <div class="table-scroll" tabIndex={0} role="region" aria-label={title}>
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
              {columns.map((column) => (
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
        </div>
      </details>
    </figure>
  )
}
