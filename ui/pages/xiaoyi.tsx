import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api } from '../lib/api.ts'
import { clock, count, duration, fullTime } from '../lib/format.ts'
import { texts } from '../lib/language.ts'
import { loadStatus, status } from '../lib/sessions.ts'
import type { LinkStatus } from '../lib/types.ts'
import { Empty, Failure, Loading } from '../components/basics.tsx'
import { Icon } from '../components/icons.tsx'
import { LinkHistory } from '../components/link-history.tsx'
import { Phone } from '../components/phone.tsx'

/** Two links to Huawei's service, and a phone to talk with while simulating. */
export function XiaoyiPage(): JSX.Element {
  const words = texts.value.xiaoyi
  const now = status.value
  if (now === undefined) return <Loading rows={8} />
  const channel = now.channels?.['xiaoyi']
  return (
    <div class="page-body">
      <h1>{words.title}</h1>
      {channel?.links === undefined ? (
        <Empty>
          {words.off} {words.offHint}
        </Empty>
      ) : (
        <div class="two-columns">
          <div>
            {channel.links.map((link, at) => (
              <LinkCard key={link.url} link={link} n={at + 1} />
            ))}
            <Counters channel={channel} />
            <section class="panel">
              <h2>{words.history}</h2>
              <LinkHistory channel="xiaoyi" />
            </section>
          </div>
          {now.simulatesXiaoyi === true && <Phone />}
        </div>
      )}
    </div>
  )
}

function LinkCard({ link, n }: { readonly link: LinkStatus; readonly n: number }): JSX.Element {
  const words = texts.value.xiaoyi
  const isOpen = link.state === 'open' || link.state === 'ready'
  const [error, setError] = useState<unknown>(undefined)
  const run = async (path: string) => {
    try {
      await api.post(path)
      await loadStatus()
      setError(undefined)
    } catch (thrown) {
      setError(thrown)
    }
  }
  const isChanged = /certificate/iu.test(link.lastError ?? '')
  return (
    <section class="panel link-card">
      <header>
        <h2>{words.link(n)}</h2>
        <p class={isOpen ? 'good' : 'bad'}>
          <Icon name={isOpen ? 'check' : 'warning'} size={16} /> {words.states[link.state] ?? link.state}
        </p>
      </header>
      <p>
        <code>{link.url}</code>
      </p>
      <dl>
        {link.since !== undefined && (
          <>
            <dt>{words.since}</dt>
            <dd title={fullTime(link.since)}>{duration(Date.now() - link.since)}</dd>
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
        {link.pinned !== undefined && link.pinned !== null && (
          <>
            <dt>{words.pin}</dt>
            <dd>
              <code>{link.pinned.slice(0, 24)}</code>
            </dd>
          </>
        )}
      </dl>
      <p class="answers">
        <button type="button" class="button small" onClick={() => void run('/api/channels/xiaoyi/reconnect')}>
          {words.reconnect}
        </button>
        {isChanged && (
          <button type="button" class="button small outlined" onClick={() => void run('/api/channels/xiaoyi/trust')}>
            {words.trust}
          </button>
        )}
      </p>
      {error !== undefined && <Failure error={error} />}
    </section>
  )
}

function Counters({ channel }: { readonly channel: Readonly<Record<string, unknown>> }): JSX.Element {
  const words = texts.value.xiaoyi
  const shown = [
    [words.tasks, channel['openTasks'] ?? channel['tasks']],
    [words.held, channel['heldFrames']],
    [words.dropped, channel['droppedFrames'] ?? channel['malformedFrames']],
  ] as const
  return (
    <dl class="tiles">
      {shown
        .filter(([, value]) => typeof value === 'number')
        .map(([name, value]) => (
          <div key={name} class="tile">
            <dt>{name}</dt>
            <dd>{count(Number(value))}</dd>
          </div>
        ))}
    </dl>
  )
}
