import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { count } from '../lib/format.ts'
import { texts } from '../lib/language.ts'

const PAGE = 200

/** A long table comes in pages: what is in the page now, and what shows the next of it. */
export function useMoreRows<T>(rows: readonly T[]): {
  readonly shown: readonly T[]
  readonly more: JSX.Element | null
} {
  const [limit, setLimit] = useState(PAGE)
  useEffect(() => setLimit(PAGE), [rows])
  const rest = rows.length - limit
  const more =
    rest <= 0 ? null : (
      <p class="more-rows">
        <button type="button" class="button" onClick={() => setLimit(limit + PAGE)}>
          {texts.value.state.moreRows(count(Math.min(PAGE, rest)), count(rest))}
        </button>
      </p>
    )
  return { shown: rest <= 0 ? rows : rows.slice(0, limit), more }
}
