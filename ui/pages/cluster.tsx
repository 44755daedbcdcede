import type { JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import { api, ApiError } from '../lib/api.ts'
import { count, duration, fullTime, moment } from '../lib/format.ts'
import { texts } from '../lib/language.ts'
import type { ClusterNode, ClusterStatus } from '../lib/types.ts'
import { Empty, Failure, Loading, useLoaded } from '../components/basics.tsx'
import { Icon } from '../components/icons.tsx'

const REFRESH_MS = 2_000

/** The gateways that share one database: which of them live, what each owns, and how the database is. */
export function ClusterPage(): JSX.Element {
  const words = texts.value.cluster
  const { value, error, again } = useLoaded((signal) => api.get<ClusterStatus>('/api/cluster', signal), [])
  const isAlone = (error instanceof ApiError && error.status === 404) || (value !== undefined && !value.database)
  useEffect(() => {
    // One that runs alone stays so until it is started anew.
    if (isAlone) return
    const timer = setInterval(again, REFRESH_MS)
    return () => clearInterval(timer)
  }, [again, isAlone])
  return (
    <div class="page-body">
      <h1>{words.title}</h1>
      {isAlone ? (
        <Empty>{words.alone}</Empty>
      ) : value === undefined ? (
        error === undefined ? (
          <Loading rows={6} />
        ) : (
          <Failure error={error} again={again} />
        )
      ) : (
        <>
          <Database database={value.database} />
          <Nodes title={words.nodes(value.nodes.length)} nodes={value.nodes} />
          {value.lost.length > 0 && <Nodes title={words.lost(value.lost.length)} nodes={value.lost} isLost />}
        </>
      )}
    </div>
  )
}

function Database({ database }: { readonly database: ClusterStatus['database'] }): JSX.Element | null {
  const words = texts.value.cluster
  if (!database) return null
  return (
    <section class="panel">
      <h2>{words.database}</h2>
      <p class={database.ok ? 'good' : 'bad'}>
        <Icon name={database.ok ? 'check' : 'warning'} size={16} /> {database.ok ? words.answers : words.silent}
      </p>
      <dl>
        <dt>{words.version}</dt>
        <dd>{database.version ?? '–'}</dd>
        <dt>{words.latency}</dt>
        <dd>{database.latencyMs === undefined || database.latencyMs === null ? '–' : duration(database.latencyMs)}</dd>
        <dt>{words.connections}</dt>
        <dd>{count(database.connections)}</dd>
      </dl>
    </section>
  )
}

function Nodes({
  title,
  nodes,
  isLost = false,
}: {
  readonly title: string
  readonly nodes: readonly ClusterNode[]
  readonly isLost?: boolean
}): JSX.Element {
  const words = texts.value.cluster
  return (
    <section class="panel wide-table">
      <h2>{title}</h2>
      <div class="table-scroll" tabIndex={0} role="region" aria-label={title}>
        <table class="plain-table">
          <thead>
            <tr>
              <th scope="col">{words.node}</th>
              <th scope="col">{words.state}</th>
              <th scope="col">{words.address}</th>
              <th scope="col" class="number">
                {words.sessions}
              </th>
              <th scope="col" class="number">
                {words.turns}
              </th>
              <th scope="col">{words.heard}</th>
              <th scope="col">{words.started}</th>
              <th scope="col">{words.version}</th>
            </tr>
          </thead>
          <tbody>
            {nodes.map((node) => (
              <tr key={node.id}>
                <th scope="row">
                  <code>{node.id}</code>
                </th>
                <td>
                  <span class={isLost ? 'bad' : node.state === 'live' ? 'good' : ''}>
                    <Icon name={isLost ? 'warning' : node.state === 'live' ? 'check' : 'clock'} size={15} />{' '}
                    {isLost ? words.gone : node.state === 'live' ? words.live : words.stopping}
                  </span>
                </td>
                <td>{node.address ?? '–'}</td>
                <td class="number">{count(node.sessions)}</td>
                <td class="number">{count(node.turns)}</td>
                <td>{words.ago(duration(node.heartbeatAgeMs))}</td>
                <td title={fullTime(node.startedAt)}>{moment(node.startedAt)}</td>
                <td>{node.version ?? '–'}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}
