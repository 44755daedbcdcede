import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { count } from '../lib/format.ts'
import { texts } from '../lib/language.ts'
import type { RequestRow } from '../lib/types.ts'

/** One column per request: what came from the cache, what was new, what was left out. */
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
  const most = Math.max(1, ...requests.map((row) => row.estimate + row.leftOut.tokens))
  const box = useRef<HTMLDivElement>(null)
  useEffect(() => {
    box.current?.querySelector('[aria-pressed="true"]')?.scrollIntoView({ inline: 'nearest', block: 'nearest' })
  }, [chosen])
  return (
    <div class="film" ref={box} role="group" aria-label={words.film}>
      {requests.map((row, at) => (
        <Column
          key={row.n}
          row={row}
          most={most}
          isChosen={row.n === chosen}
          beginsStep={at > 0 && requests[at - 1]?.stepId !== row.stepId}
          onChoose={onChoose}
        />
      ))}
    </div>
  )
}

function Column({
  row,
  most,
  isChosen,
  beginsStep,
  onChoose,
}: {
  readonly row: RequestRow
  readonly most: number
  readonly isChosen: boolean
  readonly beginsStep: boolean
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
