import type { JSX } from 'preact'
import { clock, count, percent } from '../lib/format.ts'
import { stepRequests } from '../lib/keys.ts'
import { texts } from '../lib/language.ts'
import type { RequestDetail } from '../lib/types.ts'
import { sumsOf } from '../lib/xray-rows.ts'
import { IconButton } from './basics.tsx'
import { Icon } from './icons.tsx'

/** What one request was: which, how large, what was left out, what came from the cache, and the proof. */
export function Facts({ detail, all }: { readonly detail: RequestDetail; readonly all: number }): JSX.Element {
  const words = texts.value.xray
  const { usage } = detail
  const measured = usage === undefined ? undefined : usage.input + usage.cacheRead + usage.cacheWrite
  const where = [
    words.of(all),
    clock(detail.at),
    ...(detail.round === undefined ? [] : [words.round(detail.round + 1)]),
  ].join(' · ')
  return (
    <section class="facts-bar" aria-label={words.request(detail.n)}>
      <div class="which">
        <IconButton
          icon="left"
          label={words.earlier}
          disabled={detail.n <= 1}
          onClick={() => stepRequests.current?.(-1)}
        />
        <div>
          <h2>{words.request(detail.n)}</h2>
          <p>{where}</p>
        </div>
        <IconButton
          icon="right"
          label={words.later}
          disabled={detail.n >= all}
          onClick={() => stepRequests.current?.(1)}
        />
      </div>
      <Fact
        label={words.sent}
        value={count(detail.estimate)}
        detail={measured === undefined ? texts.value.state.estimated : words.sentDetail(count(measured))}
      />
      <Fact
        label={words.left}
        value={count(detail.leftOut.tokens)}
        good={detail.leftOut.tokens > 0}
        detail={words.leftDetail(detail.leftOut.messages)}
      />
      <Fact
        label={words.cache}
        value={
          usage === undefined || measured === undefined || measured === 0 ? '–' : percent(usage.cacheRead / measured)
        }
        detail={
          usage === undefined || measured === undefined
            ? words.cacheUnknown
            : words.cacheDetail(count(usage.cacheRead), count(measured - usage.cacheRead))
        }
      />
      <div class="fact">
        <p>{words.proof}</p>
        <p class={`value ${detail.hashMatches ? 'good' : 'bad'}`}>
          <Icon name={detail.hashMatches ? 'shield' : 'warning'} size={17} />{' '}
          {detail.hashMatches ? words.byteForByte : words.differs}
        </p>
        <p>
          <code title={detail.hash}>{detail.hash.replace('sha256:', '').slice(0, 16)}…</code> ·{' '}
          {words.size(count(detail.bytes))}
        </p>
      </div>
    </section>
  )
}

function Fact({
  label,
  value,
  detail,
  good = false,
}: {
  readonly label: string
  readonly value: string
  readonly detail: string
  readonly good?: boolean
}): JSX.Element {
  return (
    <div class="fact">
      <p>{label}</p>
      <p class={`value ${good ? 'good' : ''}`}>{value}</p>
      <p>{detail}</p>
    </div>
  )
}

/** How the request divides between those who speak in it. */
export function Shares({ detail }: { readonly detail: RequestDetail }): JSX.Element {
  const words = texts.value.xray
  const sums = sumsOf(detail).filter((one) => one.tokens > 0)
  const total = sums.reduce((sum, one) => sum + one.tokens, 0)
  const free = Math.max(0, detail.window - detail.reserved - detail.estimate)
  return (
    <section class="shares">
      <div class="share-bar" aria-hidden="true">
        {sums.map((one) => (
          <span key={one.kind} class={one.kind} style={{ flexGrow: one.tokens / Math.max(1, total) }} />
        ))}
      </div>
      <div class="share-legend">
        <ul>
          {sums.map((one) => (
            <li key={one.kind}>
              <i class={`swatch ${one.kind}`} /> {words.kinds[one.kind]} <strong>{count(one.tokens)}</strong>
            </li>
          ))}
        </ul>
        <p class="quiet">{words.free(count(free), count(detail.window), count(detail.reserved))}</p>
      </div>
    </section>
  )
}
