import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api } from '../lib/api.ts'
import { count } from '../lib/format.ts'
import { texts } from '../lib/language.ts'
import { loadStatus, status } from '../lib/sessions.ts'
import { certificatesOf } from '../lib/link-states.ts'
import type { LinkStatus } from '../lib/types.ts'
import { Empty, Failure, Loading } from '../components/basics.tsx'
import { LinkCard } from '../components/link-card.tsx'
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
        <Empty>{texts.value.state.sentences(words.off, words.offHint)}</Empty>
      ) : (
        <div class="two-columns">
          <div>
            {channel.links.map((link, at) => (
              <LinkCard key={link.url} link={link} n={at + 1} />
            ))}
            <LinkActions links={channel.links} />
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

/** What is done is done to all links. */
function LinkActions({ links }: { readonly links: readonly LinkStatus[] }): JSX.Element {
  const words = texts.value.xiaoyi
  const [error, setError] = useState<unknown>(undefined)
  const run = async (verb: 'reconnect' | 'trust') => {
    try {
      await api.post(`/api/channels/xiaoyi/${verb}`)
      await loadStatus()
      setError(undefined)
    } catch (thrown) {
      setError(thrown)
    }
  }
  const hasChanged = links.some((link) => certificatesOf(link).refused !== undefined)
  return (
    <div class="link-actions">
      <p class="answers">
        <button type="button" class="button" onClick={() => void run('reconnect')}>
          {words.reconnect}
        </button>
        {hasChanged && (
          <button type="button" class="button outlined" onClick={() => void run('trust')}>
            {words.trust}
          </button>
        )}
      </p>
      {error !== undefined && <Failure error={error} />}
    </div>
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
