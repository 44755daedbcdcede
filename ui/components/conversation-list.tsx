import type { JSX } from 'preact'
import { useEffect } from 'preact/hooks'
import { count, moment, short } from '../lib/format.ts'
import { texts } from '../lib/language.ts'
import { peerOf } from '../lib/peer.ts'
import { go, paths } from '../lib/router.ts'
import {
  channelsSeen,
  filter,
  findSessions,
  loadMoreSessions,
  loadSessions,
  runningCount,
  sessions,
  sessionsState,
  shownSessions,
  total,
} from '../lib/sessions.ts'
import type { SessionRow } from '../lib/types.ts'
import {
  ChannelBadge,
  channelName,
  Empty,
  Failure,
  FilterField,
  IconButton,
  Link,
  Loading,
  VirtualList,
} from './basics.tsx'
import { Icon } from './icons.tsx'

const ROW_HEIGHT = 58

export function newConversation(): void {
  go(paths.conversation(`dashboard:${crypto.randomUUID().slice(0, 8)}`))
}

export function ConversationList({ chosen }: { readonly chosen: string | undefined }): JSX.Element {
  const words = texts.value.list
  const { text, state, channel, archived } = filter.value
  // Rows that are not loaded yet are found by the gateway.
  useEffect(() => {
    const timer = setTimeout(() => void findSessions().catch(() => undefined), text === '' ? 0 : 250)
    return () => clearTimeout(timer)
  }, [text, state, channel, archived])
  return (
    <section class="list" aria-label={words.title}>
      <header>
        <h2>{words.title}</h2>
        <button
          type="button"
          class="button icon-only toggle"
          aria-pressed={archived}
          aria-label={words.archived}
          title={words.archived}
          onClick={() => (filter.value = { ...filter.value, state: 'all', channel: '', archived: !archived })}
        >
          <Icon name="archive" />
        </button>
        <IconButton icon="plus" label={words.create} onClick={newConversation} />
      </header>
      <FilterField
        label={words.filter}
        value={text}
        onChange={(wanted) => (filter.value = { ...filter.value, text: wanted })}
      />
      <Filters />
      <Rows chosen={chosen} />
    </section>
  )
}

function Filters(): JSX.Element {
  const words = texts.value.list
  const { state, channel, archived } = filter.value
  const set = (change: Partial<typeof filter.value>) => {
    filter.value = { ...filter.value, state: 'all', channel: '', archived: false, ...change }
  }
  return (
    <div class="chips" role="group" aria-label={words.filter}>
      <Chip
        pressed={state === 'all' && channel === '' && !archived}
        onClick={() => set({})}
        label={words.all}
        number={total.value}
      />
      <Chip
        pressed={state === 'running'}
        onClick={() => set({ state: 'running' })}
        label={words.running}
        number={runningCount.value}
      />
      {channelsSeen.value.map((name) => (
        <Chip key={name} pressed={channel === name} onClick={() => set({ channel: name })} label={channelName(name)} />
      ))}
    </div>
  )
}

function Chip({
  pressed,
  onClick,
  label,
  number,
}: {
  readonly pressed: boolean
  readonly onClick: () => void
  readonly label: string
  readonly number?: number
}): JSX.Element {
  return (
    <button type="button" class="chip" aria-pressed={pressed} onClick={onClick}>
      {label} {number !== undefined && <span class="number">{count(number)}</span>}
    </button>
  )
}

function Rows({ chosen }: { readonly chosen: string | undefined }): JSX.Element {
  const words = texts.value.list
  if (sessionsState.value === 'loading') return <Loading rows={8} />
  if (sessionsState.value === 'failed') return <Failure error={words.failed} again={() => void loadSessions()} />
  const rows = shownSessions.value
  if (rows.length === 0) {
    const isFiltered = sessions.value.length > 0 || filter.value.archived
    return (
      <Empty
        action={
          isFiltered ? undefined : (
            <button type="button" class="button primary" onClick={newConversation}>
              {words.create}
            </button>
          )
        }
      >
        {isFiltered ? words.emptyFiltered : words.empty}
      </Empty>
    )
  }
  return (
    <VirtualList
      label={words.title}
      items={rows}
      rowHeight={ROW_HEIGHT}
      keyOf={(row) => row.key}
      render={(row) => <Row row={row} isChosen={row.key === chosen} />}
      onEnd={() => void loadMoreSessions().catch(() => undefined)}
      chosen={chosen}
    />
  )
}

function Row({ row, isChosen }: { readonly row: SessionRow; readonly isChosen: boolean }): JSX.Element {
  const words = texts.value.list
  return (
    <Link to={paths.conversation(row.key)} class="row" current={isChosen}>
      <span class="title">{row.title ?? row.key}</span>
      <time>{moment(row.updatedAt)}</time>
      <span class="facts">
        <ChannelBadge channel={row.lastChannel} />
        <span class="peer">{peerOf(row.key)}</span>
      </span>
      <span class="state">
        {row.state === 'running' || row.state === 'queued' ? (
          <span class="running">
            <span class="dot" aria-hidden="true" /> {words.states[row.state]}
          </span>
        ) : (
          row.contextTokens !== undefined && words.tokens(short(row.contextTokens))
        )}
      </span>
    </Link>
  )
}
