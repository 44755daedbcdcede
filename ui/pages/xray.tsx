import type { JSX, RefObject } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { api, sessionPath } from '../lib/api.ts'
import type { Conversation } from '../lib/conversation.ts'
import { count, percent } from '../lib/format.ts'
import { stepRequests } from '../lib/keys.ts'
import { texts } from '../lib/language.ts'
import { go, paths, route } from '../lib/router.ts'
import type { RequestDetail, RequestRow } from '../lib/types.ts'
import { hiddenId, rowsOf } from '../lib/xray-rows.ts'
import { Empty, Failure, Link, Loading, useLoaded } from '../components/basics.tsx'
import { ConversationHeader } from '../components/conversation-header.tsx'
import { Facts, Shares } from '../components/facts.tsx'
import { Inspector } from '../components/inspector.tsx'
import { MessageTable } from '../components/message-table.tsx'
import { RequestFilm } from '../components/request-film.tsx'
import { RequestTable } from '../components/request-table.tsx'
import { ShowTable } from '../components/show-table.tsx'
import { useConversation } from './conversation.tsx'

/** What request N held, message by message, and what was left out of it and why. */
export function XrayPage({
  sessionKey,
  n,
}: {
  readonly sessionKey: string
  readonly n: number | undefined
}): JSX.Element {
  const conversation = useConversation(sessionKey)
  return (
    <div class="xray">
      <ConversationHeader sessionKey={sessionKey} />
      {conversation === undefined ? <Loading rows={8} /> : <Xray conversation={conversation} n={n} />}
    </div>
  )
}

function Xray({
  conversation,
  n,
}: {
  readonly conversation: Conversation
  readonly n: number | undefined
}): JSX.Element {
  const requests = conversation.requests.value
  const scroller = useRef<HTMLDivElement>(null)
  const chosen = n === undefined ? requests.at(-1) : requests.find((row) => row.n === n)
  useEffect(() => {
    stepRequests.current = (by) => {
      // By the address, which a step changes at once: a second key may come before the page shows the first.
      const shown = route.value.page === 'xray' ? route.value.n : undefined
      const rows = conversation.requests.value
      const at = shown === undefined ? rows.length - 1 : rows.findIndex((row) => row.n === shown)
      const next = rows[at + by]
      if (next !== undefined) go(paths.xray(conversation.key, next.n), true)
    }
    return () => (stepRequests.current = undefined)
  }, [conversation])
  if (conversation.state.value === 'loading') return <Loading rows={8} />
  if (conversation.state.value === 'failed' && conversation.messages.value.length === 0)
    return <Failure error={conversation.error.value} again={() => void conversation.reload()} />
  const words = texts.value.xray
  if (chosen === undefined)
    return requests.length === 0 ? (
      <Empty>{words.empty}</Empty>
    ) : (
      <Empty
        action={
          <Link to={paths.xray(conversation.key)} class="button">
            {words.toLast}
          </Link>
        }
      >
        {words.noSuch(n ?? 0)}
      </Empty>
    )
  return (
    <div class="xray-body" ref={scroller}>
      <FilmHead requests={requests} />
      <RequestFilm
        requests={requests}
        chosen={chosen.n}
        onChoose={(next) => go(paths.xray(conversation.key, next), true)}
      />
      <ShowTable label={words.film}>
        {() => <RequestTable requests={requests} sessionKey={conversation.key} />}
      </ShowTable>
      <Detail conversation={conversation} row={chosen} all={requests.length} scroller={scroller} />
    </div>
  )
}

function FilmHead({ requests }: { readonly requests: readonly RequestRow[] }): JSX.Element {
  const words = texts.value.xray
  const left = requests.reduce((sum, row) => sum + row.leftOut.tokens, 0)
  const sent = requests.reduce((sum, row) => sum + row.estimate, 0)
  return (
    <div class="film-head">
      <p>
        <strong>{words.requests(requests.length)}</strong>{' '}
        {left > 0 && <span class="quiet">{words.kept(count(left), percent(left / (left + sent)))}</span>}
      </p>
      <p class="legend">
        <span>
          <i class="swatch cached" /> {words.fromCache}
        </span>
        <span>
          <i class="swatch fresh" /> {words.fresh}
        </span>
        <span>
          <i class="swatch ghost" /> {words.leftOut}
        </span>
      </p>
    </div>
  )
}

/** While the next request is loaded, the one before stays: stepping through them does not flicker. */
function Detail({
  conversation,
  row,
  all,
  scroller,
}: {
  readonly conversation: Conversation
  readonly row: RequestRow
  readonly all: number
  readonly scroller: RefObject<HTMLElement | null>
}): JSX.Element {
  const { value, error, again } = useLoaded(
    (signal) => api.get<RequestDetail>(sessionPath(conversation.key, `/requests/${row.n}`), signal),
    [conversation.key, row.n, row.usage],
  )
  const [chosen, setChosen] = useState<string | undefined>(undefined)
  const rows = useMemo(() => (value === undefined ? [] : rowsOf(value)), [value])
  if (error !== undefined) return <Failure error={error} again={again} />
  if (value === undefined) return <Loading rows={8} />
  const hidden = value.notSent.find((one) => hiddenId(one) === chosen)
  const picked = rows.find((one) => one.id === chosen) ?? rows.findLast((one) => one.kind !== 'ghost')
  return (
    <>
      <Facts detail={value} all={all} />
      <Shares detail={value} />
      <div class="xray-columns">
        <MessageTable
          detail={value}
          rows={rows}
          chosen={hidden === undefined ? picked?.id : chosen}
          onChoose={setChosen}
          conversation={conversation}
          scroller={scroller}
        />
        <Inspector detail={value} row={picked} hidden={hidden} sessionKey={conversation.key} />
      </div>
    </>
  )
}
