import type { JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import { api } from '../lib/api.ts'
import { feed } from '../lib/feed.ts'
import { clock, duration, fullTime } from '../lib/format.ts'
import { texts } from '../lib/language.ts'
import type { HistoryRow } from '../lib/types.ts'
import { Failure, useLoaded } from './basics.tsx'

const SHOWN = 200

/** What happened to a channel's links, newest first. */
export function LinkHistory({ channel }: { readonly channel: string }): JSX.Element {
  const words = texts.value.xiaoyi
  const { value, error, again } = useLoaded(
    (signal) => api.get<{ history: readonly HistoryRow[] }>(`/api/channels/${channel}/history`, signal),
    [channel],
  )
  useEffect(() => feed.on('link', again), [again])
  return (
    <>
      {error !== undefined && <Failure error={error} again={again} />}
      {value !== undefined && value.history.length === 0 && <p class="quiet">{words.noHistory}</p>}
      {value !== undefined && value.history.length > 0 && (
        <div class="table-scroll" tabIndex={0} role="region" aria-label={words.history}>
          <table class="plain-table history-table">
            <thead>
              <tr>
                <th scope="col">{words.when}</th>
                <th scope="col">{words.linkColumn}</th>
                <th scope="col">{words.what}</th>
                <th scope="col">{words.why}</th>
                <th scope="col">{words.next}</th>
              </tr>
            </thead>
            <tbody>
              {value.history
                .toReversed()
                .slice(0, SHOWN)
                .map((row, at) => (
                  <tr key={at}>
                    <td title={fullTime(row.at)}>{clock(row.at)}</td>
                    <td>{String(row.link)}</td>
                    <td>{words.states[row.what] ?? row.what}</td>
                    <td>{row.reason ?? ''}</td>
                    <td>{row.nextInMs === undefined ? '' : duration(row.nextInMs)}</td>
                  </tr>
                ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  )
}
