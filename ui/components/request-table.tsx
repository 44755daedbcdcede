import type { JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import { clock, count } from '../lib/format.ts'
import { texts } from '../lib/language.ts'
import { paths } from '../lib/router.ts'
import type { RequestRow } from '../lib/types.ts'
import { Link } from './basics.tsx'
import { useMoreRows } from './more-rows.tsx'

/** The numbers of the film, newest request first. */
export function RequestTable({
  requests,
  sessionKey,
}: {
  readonly requests: readonly RequestRow[]
  readonly sessionKey: string
}): JSX.Element {
  const words = texts.value.xray
  const { side, state } = texts.value
  const newestFirst = useMemo(() => requests.toReversed(), [requests])
  const { shown, more } = useMoreRows(newestFirst)
  const heads = [`${words.sent} (${state.estimated})`, `${words.left} (${state.estimated})`]
  return (
    <>
      <table class="plain-table">
        <thead>
          <tr>
            <th scope="col">{words.film}</th>
            <th scope="col">{texts.value.xiaoyi.when}</th>
            {[...heads, side.tokensIn, words.cache, side.tokensOut].map((name) => (
              <th key={name} scope="col" class="number">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map(({ n, at, estimate, leftOut, usage }) => (
            <tr key={n}>
              <th scope="row">
                <Link to={paths.xray(sessionKey, n)}>{words.request(n)}</Link>
              </th>
              <td>{clock(at)}</td>
              <td class="number">{count(estimate)}</td>
              <td class="number">{count(leftOut.tokens)}</td>
              <td class="number">{count(usage && usage.input + usage.cacheRead + usage.cacheWrite)}</td>
              <td class="number">{count(usage?.cacheRead)}</td>
              <td class="number">{count(usage?.output)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {more}
    </>
  )
}
