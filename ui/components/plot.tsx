import type { JSX } from 'preact'

const WIDTH = 100
const HEIGHT = 28
/** One value alone has no slope yet: it is drawn as a level line. */
const LEVEL = HEIGHT / 2

/** Values over time as a line that grows to the right. The numbers stand in a table beside it. */
export function Plot({ values, most }: { readonly values: readonly number[]; readonly most: number }): JSX.Element {
  const low = Math.min(...values)
  const span = Math.max(...values) - low
  const y = (value: number): number => (span === 0 ? LEVEL : HEIGHT - ((value - low) / span) * (HEIGHT - 4) - 1)
  const step = WIDTH / Math.max(1, Math.min(most, Math.max(12, values.length)) - 1)
  const line = values.map((value, at) => `${at * step},${y(value)}`)
  const first = values[0]
  const points = line.length === 1 && first !== undefined ? [...line, `${step},${y(first)}`] : line
  const end = points.at(-1)?.split(',')[0] ?? '0'
  return (
    <svg class="plot" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      <polygon points={`0,${HEIGHT} ${points.join(' ')} ${end},${HEIGHT}`} />
      <polyline points={points.join(' ')} />
    </svg>
  )
}
