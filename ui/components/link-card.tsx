import type { JSX } from 'preact'
import { clock, count, duration, fullTime, moment } from '../lib/format.ts'
import { texts } from '../lib/language.ts'
import { certificatesOf, isWell } from '../lib/link-states.ts'
import type { LinkStatus } from '../lib/types.ts'
import { Icon } from './icons.tsx'

/** One link to Huawei's service: whether it lives, since when, and what happens next. */
export function LinkCard({ link, n }: { readonly link: LinkStatus; readonly n: number }): JSX.Element {
  const words = texts.value.xiaoyi
  const isFine = isWell(link)
  const { trusted, refused } = certificatesOf(link)
  return (
    <section class="panel link-card">
      <header>
        <h2>{words.link(n)}</h2>
        <p class={isFine ? 'good' : 'bad'}>
          <Icon name={isFine ? 'check' : 'warning'} size={16} /> {words.states[link.state] ?? link.state}
        </p>
      </header>
      <p>
        <code>{link.url}</code>
      </p>
      <dl>
        {link.since !== undefined && (
          <>
            <dt>{words.since}</dt>
            <dd title={fullTime(link.since)}>{moment(link.since)}</dd>
          </>
        )}
        {link.lastSeenAt !== undefined && link.lastSeenAt !== null && (
          <>
            <dt>{words.lastSeen}</dt>
            <dd>{clock(link.lastSeenAt)}</dd>
          </>
        )}
        {link.nextInMs !== undefined && link.nextInMs !== null && (
          <>
            <dt>{words.next}</dt>
            <dd>{duration(link.nextInMs)}</dd>
          </>
        )}
        {link.attempts !== undefined && (
          <>
            <dt>{words.attempts}</dt>
            <dd>{count(link.attempts)}</dd>
          </>
        )}
        {link.lastError !== undefined && link.lastError !== null && (
          <>
            <dt>{words.error}</dt>
            <dd class="bad">{link.lastError}</dd>
          </>
        )}
        {trusted !== undefined && (
          <>
            <dt>{words.pin}</dt>
            <dd>
              <code>{trusted.slice(0, 24)}</code>
            </dd>
          </>
        )}
        {refused !== undefined && (
          <>
            <dt>{words.refusedPin}</dt>
            <dd class="bad">
              <code>{refused.slice(0, 24)}</code>
            </dd>
          </>
        )}
      </dl>
    </section>
  )
}
