import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { api, sessionPath } from '../lib/api.ts'
import { count, duration } from '../lib/format.ts'
import { texts } from '../lib/language.ts'
import { isWell } from '../lib/link-states.ts'
import { attempt } from '../lib/notice.ts'
import { paths } from '../lib/router.ts'
import { isDemoOnly, rowOf, sessions, status } from '../lib/sessions.ts'
import type { ChannelStatus, LinkStatus, RunningTurn } from '../lib/types.ts'
import { channelName, Empty, Link, Loading } from '../components/basics.tsx'
import { Approvals } from '../components/approvals.tsx'
import { newConversation } from '../components/conversation-list.tsx'
import { LinkHistory } from '../components/link-history.tsx'
import { Icon } from '../components/icons.tsx'

/** Does it work, and what is it doing. */
export function LivePage(): JSX.Element {
  const words = texts.value.live
  const now = status.value
  if (now === undefined) return <Loading rows={8} />
  return (
    <div class="page-body">
      <h1>{words.title}</h1>
      <dl class="tiles">
        <Tile name={words.turns} value={count(turnsOf().length)} />
        <Tile name={words.queue} value={`${count(now.activity?.['queued'] ?? 0)} ${words.waiting}`} />
        <Tile
          name={words.rate}
          value={words.perMinute(
            count(now.rates?.['messagesPerMinute'] ?? 0),
            count(now.rates?.['answersPerMinute'] ?? 0),
          )}
        />
        <Tile name={words.connections} value={count(now.activity?.['connections'] ?? 0)} />
        <Tile name={words.sessions} value={count(now.sessions ?? sessions.value.length)} />
        <Tile name={words.uptime} value={duration((now.uptimeSeconds ?? 0) * 1_000)} />
        <Tile name={words.model} value={now.model} />
      </dl>
      {isDemoOnly() && (
        <p class="panel hint-line">
          {words.demo}{' '}
          <Link to="/start" class="button small outlined">
            {texts.value.nav.start}
          </Link>
        </p>
      )}
      <Approvals />
      <Running />
      <div class="two-columns">
        <Channels />
        <div>
          <Providers />
          <Replies />
        </div>
      </div>
    </div>
  )
}

function Tile({ name, value }: { readonly name: string; readonly value: string }): JSX.Element {
  return (
    <div class="tile">
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  )
}

function turnsOf(): readonly RunningTurn[] {
  const known = status.value?.turns
  if (known !== undefined) return known
  return sessions.value
    .filter((row) => row.state === 'running')
    .map((row) => ({ key: row.key, run: row.sessionId, startedAt: row.updatedAt }))
}

function Running(): JSX.Element {
  const words = texts.value.live
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    const ticking = setInterval(() => setNow(Date.now()), 1_000)
    return () => clearInterval(ticking)
  }, [])
  const turns = turnsOf()
  return (
    <section class="panel">
      <h2>{words.running}</h2>
      {turns.length === 0 ? (
        <Empty
          action={
            <button type="button" class="button primary" onClick={newConversation}>
              {words.talk}
            </button>
          }
        >
          {words.nothing}
        </Empty>
      ) : (
        <div class="table-scroll" tabIndex={0} role="region" aria-label={words.running}>
          <table class="plain-table turns">
            <thead>
              <tr>
                <th scope="col">{words.conversation}</th>
                <th scope="col">{words.tool}</th>
                <th scope="col" class="number">
                  {words.elapsed}
                </th>
                <th scope="col">
                  <span class="hidden-text">{words.stop}</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {turns.map((turn) => (
                <tr key={turn.run}>
                  <td>
                    <Link to={paths.conversation(turn.key)}>{rowOf(turn.key)?.title ?? turn.key}</Link>
                  </td>
                  <td>{turn.tool ?? texts.value.thread.round(turn.round ?? 1)}</td>
                  <td class="number">{duration(Math.max(0, now - turn.startedAt))}</td>
                  <td>
                    <button
                      type="button"
                      class="button small"
                      onClick={() => attempt(() => api.post(sessionPath(turn.key, '/cancel')))}
                    >
                      <span class="stop-sign" aria-hidden="true" /> {words.stop}
                    </button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </section>
  )
}

function Channels(): JSX.Element {
  const words = texts.value.live
  const channels = Object.entries(status.value?.channels ?? {})
  return (
    <section class="panel">
      <h2>{words.channels}</h2>
      <ul class="plain-list">
        {channels.map(([name, channel]) => (
          <li key={name}>
            <strong>{channelName(name)}</strong>
            {linksOf(channel).length === 0 && <span class="quiet"> {words.noLinks}</span>}
            {linksOf(channel).map((link) => (
              <LinkLine key={link.url} link={link} />
            ))}
            {channel.hub !== undefined && (
              <details class="link-history">
                <summary>{texts.value.xiaoyi.history}</summary>
                <LinkHistory channel={name} />
              </details>
            )}
          </li>
        ))}
      </ul>
    </section>
  )
}

/** The links a channel keeps: XiaoYi's two, or the hub that the webhook dials. */
function linksOf(channel: ChannelStatus): readonly LinkStatus[] {
  return [...(channel.links ?? []), ...(channel.hub === undefined ? [] : [channel.hub])]
}

function LinkLine({ link }: { readonly link: LinkStatus }): JSX.Element {
  const isFine = isWell(link)
  return (
    <p class={isFine ? 'good' : 'bad'}>
      <Icon name={isFine ? 'check' : 'warning'} size={15} /> {texts.value.xiaoyi.states[link.state] ?? link.state}{' '}
      <span class="quiet">{hostOf(link.url)}</span>{' '}
      {link.lastError !== undefined && link.lastError !== null && <span class="quiet">{link.lastError}</span>}
    </p>
  )
}

function hostOf(url: string): string {
  try {
    return new URL(url).host
  } catch {
    return url
  }
}

function Providers(): JSX.Element {
  const words = texts.value.live
  const providers = Object.entries(status.value?.providers ?? {})
  return (
    <section class="panel">
      <h2>{words.providers}</h2>
      <ul class="plain-list">
        {providers.length === 0 && <li>{status.value?.model}</li>}
        {providers.map(([name, { circuit, waiting }]) => {
          const isFine = circuit === 'closed' && waiting === 0
          const said = { closed: isFine ? words.healthy : words.slow, open: words.open, probing: words.probing }[
            circuit
          ]
          return (
            <li key={name}>
              <strong>{name}</strong>{' '}
              <span class={isFine ? 'good' : 'bad'}>
                <Icon name={isFine ? 'check' : 'warning'} size={15} /> {said}
              </span>
            </li>
          )
        })}
      </ul>
    </section>
  )
}

function Replies(): JSX.Element {
  const words = texts.value.live
  const replies = status.value?.replies ?? {}
  return (
    <section class="panel">
      <h2>{words.replies}</h2>
      <dl>
        <dt>
          <Icon name="clock" size={15} /> {words.undelivered}
        </dt>
        <dd>{count(replies['waiting'] ?? 0)}</dd>
        <dt>
          <Icon name="warning" size={15} /> {words.unknown}
        </dt>
        <dd>{count(replies['unknown'] ?? 0)}</dd>
      </dl>
    </section>
  )
}
