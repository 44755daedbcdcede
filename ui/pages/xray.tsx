import type { JSX } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { api, sessionPath } from '../lib/api.ts'
import type { Conversation } from '../lib/conversation.ts'
import { clock, count, percent } from '../lib/format.ts'
import { stepRequests } from '../lib/keys.ts'
import { texts } from '../lib/language.ts'
import { go, paths } from '../lib/router.ts'
import type { RequestDetail, RequestRow } from '../lib/types.ts'
import { kindOf, rowsOf, sumsOf, type TableRow } from '../lib/xray-rows.ts'
import {
  Badge,
  CopyButton,
  Dialog,
  Empty,
  Failure,
  IconButton,
  Link,
  Loading,
  useLoaded,
} from '../components/basics.tsx'
import { ConversationHeader } from '../components/conversation-header.tsx'
import { Icon } from '../components/icons.tsx'
import { RequestFilm } from '../components/request-film.tsx'
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
  const chosen = requests.find((row) => row.n === n) ?? requests.at(-1)
  useEffect(() => {
    stepRequests.current = (by) => {
      const at = requests.findIndex((row) => row.n === chosen?.n)
      const next = requests[at + by]
      if (next !== undefined) go(paths.xray(conversation.key, next.n), true)
    }
    return () => (stepRequests.current = undefined)
  }, [requests, chosen?.n])
  if (conversation.state.value === 'loading') return <Loading rows={8} />
  if (conversation.state.value === 'failed' || conversation.state.value === 'missing')
    return <Failure error={conversation.error.value} again={() => void conversation.reload()} />
  if (chosen === undefined) return <Empty>{texts.value.xray.empty}</Empty>
  return (
    <div class="xray-body">
      <FilmHead requests={requests} />
      <RequestFilm
        requests={requests}
        chosen={chosen.n}
        onChoose={(next) => go(paths.xray(conversation.key, next), true)}
      />
      <Detail key={chosen.n} conversation={conversation} row={chosen} all={requests.length} />
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

function Detail({
  conversation,
  row,
  all,
}: {
  readonly conversation: Conversation
  readonly row: RequestRow
  readonly all: number
}): JSX.Element {
  const { value, error, again } = useLoaded(
    (signal) => api.get<RequestDetail>(sessionPath(conversation.key, `/requests/${row.n}`), signal),
    [conversation.key, row.n, row.usage],
  )
  const [chosen, setChosen] = useState<string | undefined>(undefined)
  const rows = useMemo(() => (value === undefined ? [] : rowsOf(value)), [value])
  if (value === undefined) return error === undefined ? <Loading rows={8} /> : <Failure error={error} again={again} />
  const picked = rows.find((one) => one.id === chosen) ?? rows.findLast((one) => one.kind !== 'ghost')
  return (
    <>
      <Facts detail={value} all={all} sessionKey={conversation.key} />
      <Shares detail={value} />
      <div class="xray-columns">
        <MessageTable detail={value} rows={rows} chosen={picked?.id} onChoose={setChosen} conversation={conversation} />
        <Inspector detail={value} row={picked} sessionKey={conversation.key} />
      </div>
    </>
  )
}

function Facts({
  detail,
  all,
  sessionKey,
}: {
  readonly detail: RequestDetail
  readonly all: number
  readonly sessionKey: string
}): JSX.Element {
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
      <span class="hidden-text">{sessionKey}</span>
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

function Shares({ detail }: { readonly detail: RequestDetail }): JSX.Element {
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

function MessageTable({
  detail,
  rows,
  chosen,
  onChoose,
  conversation,
}: {
  readonly detail: RequestDetail
  readonly rows: readonly TableRow[]
  readonly chosen: string | undefined
  readonly onChoose: (id: string) => void
  readonly conversation: Conversation
}): JSX.Element {
  const words = texts.value.xray
  const most = Math.max(1, ...rows.map((row) => (row.kind === 'ghost' ? 0 : row.tokens)))
  const cacheEnd = rows.findLastIndex((row) => row.state === 'same')
  const showsCache = detail.n > 1 && cacheEnd >= 0 && cacheEnd < rows.length - 1
  return (
    <section class="panel table-panel" aria-label={words.what}>
      <table class="messages">
        <colgroup>
          <col span={3} />
          <col class="bar-column" />
          <col />
        </colgroup>
        <thead>
          <tr>
            <th scope="col">
              <span class="hidden-text">{words.against(detail.n - 1)}</span>
            </th>
            <th scope="col">{words.who}</th>
            <th scope="col" colSpan={2}>
              {words.what}
              {detail.n > 1 && (
                <span class="key">
                  <b>=</b> {words.sameAs(detail.n - 1)} <b class="good">+</b> {words.fresh}
                </span>
              )}
            </th>
            <th scope="col" class="number">
              {words.tokens}
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            <>
              {row.kind === 'ghost' ? (
                <GhostRow key={row.id} row={row} most={most} conversation={conversation} onChoose={onChoose} />
              ) : (
                <SentRow key={row.id} row={row} most={most} isChosen={row.id === chosen} onChoose={onChoose} />
              )}
              {showsCache && at === cacheEnd && (
                <tr key="cache" class="cache-line">
                  <td colSpan={5}>
                    <span>{words.cacheLine(detail.n - 1)}</span>
                  </td>
                </tr>
              )}
            </>
          ))}
        </tbody>
      </table>
    </section>
  )
}

function SentRow({
  row,
  most,
  isChosen,
  onChoose,
}: {
  readonly row: TableRow
  readonly most: number
  readonly isChosen: boolean
  readonly onChoose: (id: string) => void
}): JSX.Element {
  const words = texts.value.xray
  const sign = row.state === 'same' ? '=' : row.state === 'changed' ? '~' : '+'
  return (
    <tr class={`sent ${isChosen ? 'chosen' : ''}`} onClick={() => onChoose(row.id)}>
      <td class={`sign ${row.state}`}>
        <span aria-hidden="true">{sign}</span>
        <span class="hidden-text">{words.states[row.state]}</span>
      </td>
      <td>
        <Badge kind={row.kind}>
          {row.kind === 'result' && row.tool !== undefined ? row.tool : words.whoNames[kindOf(row)]}
        </Badge>
      </td>
      <td class="text">
        <button type="button" class="plain-button" aria-pressed={isChosen} onClick={() => onChoose(row.id)}>
          {row.text === '' ? '…' : row.text.slice(0, 200)}
        </button>
      </td>
      <td class="bar-cell" aria-hidden="true">
        <span class={`token-bar ${row.kind}`} style={{ width: `${Math.max(2, (row.tokens / most) * 100)}%` }} />
      </td>
      <td class="number">{count(row.tokens)}</td>
    </tr>
  )
}

function GhostRow({
  row,
  most,
  conversation,
  onChoose,
}: {
  readonly row: TableRow
  /** Tokens of the longest bar; a longer one ends torn. */
  readonly most: number
  readonly conversation: Conversation
  readonly onChoose: (id: string) => void
}): JSX.Element {
  const words = texts.value.xray
  const [open, setOpen] = useState(false)
  const [error, setError] = useState<unknown>(undefined)
  const restore = async () => {
    try {
      if (row.cleanup !== undefined) await conversation.restoreCleanup(row.cleanup)
      else if (row.by === 'compaction') await conversation.undoCompaction()
    } catch (thrown) {
      setError(thrown)
    }
  }
  const isActive = row.cleanup !== undefined && conversation.cleanups.value.some((one) => one.id === row.cleanup)
  const canUndo = isActive || (row.by === 'compaction' && conversation.compactions.value.length > 0)
  return (
    <>
      <tr class="ghost">
        <td class="sign">
          <Icon name="scissors" size={15} />
        </td>
        <td colSpan={2} class="text">
          <div class="ghost-line">
            <span>
              <strong>{words.hidden(row.entries.length)}</strong>{' '}
              {row.cleanup === undefined ? words.otherLeftOut(row.by ?? '') : words.hiddenWhy}
            </span>
            <span class="ghost-tools">
              <button type="button" class="button small" aria-expanded={open} onClick={() => setOpen(!open)}>
                {open ? words.hide : words.look}
              </button>
              {canUndo && (
                <button type="button" class="button small outlined" onClick={() => void restore()}>
                  <Icon name="undo" size={14} />{' '}
                  {row.by === 'compaction' ? texts.value.thread.undoSummary : words.showAgain}
                </button>
              )}
            </span>
          </div>
        </td>
        <td class="bar-cell" aria-hidden="true">
          <span
            class={`token-bar ghost ${row.tokens > most ? 'torn' : ''}`}
            style={{ width: `${Math.min(100, Math.max(2, (row.tokens / most) * 100))}%` }}
          />
        </td>
        <td class="number">{count(row.tokens)}</td>
      </tr>
      {error !== undefined && (
        <tr>
          <td colSpan={5}>
            <Failure error={error} />
          </td>
        </tr>
      )}
      {open &&
        row.hidden.map((one) => (
          <tr key={one.entry} class="ghost-entry" onClick={() => onChoose(`hidden ${one.entry}`)}>
            <td />
            <td>
              <Badge kind={one.role === 'toolResult' ? 'result' : one.role === 'assistant' ? 'model' : 'user'}>
                {one.tool ??
                  words.whoNames[one.role === 'assistant' ? 'model' : one.role === 'toolResult' ? 'result' : 'user']}
              </Badge>
            </td>
            <td class="text" colSpan={2}>
              <Link to={paths.conversation(conversation.key, one.entry)}>
                <code>{one.entry}</code>
              </Link>{' '}
              {one.reason}
            </td>
            <td class="number">{count(one.tokens)}</td>
          </tr>
        ))}
    </>
  )
}

function Inspector({
  detail,
  row,
  sessionKey,
}: {
  readonly detail: RequestDetail
  readonly row: TableRow | undefined
  readonly sessionKey: string
}): JSX.Element {
  const words = texts.value.xray
  const [body, setBody] = useState<string | undefined>(undefined)
  const showBody = async () => {
    const loaded = await api.get<RequestDetail>(sessionPath(sessionKey, `/requests/${detail.n}?body=1`))
    setBody(loaded.body ?? '')
  }
  return (
    <section class="panel inspector" aria-label={words.inspector}>
      {row === undefined ? (
        <p class="quiet">{words.chooseRow}</p>
      ) : (
        <>
          <header>
            <Badge kind={row.kind}>
              {row.kind === 'result' && row.tool !== undefined ? row.tool : words.whoNames[kindOf(row)]}
            </Badge>
            <strong>
              {count(row.tokens)} {words.tokens.toLowerCase()}
            </strong>
            <span class="quiet">{percent(row.tokens / Math.max(1, detail.estimate))}</span>
            <CopyButton text={() => row.text} />
          </header>
          <dl>
            {row.entries.length > 0 && (
              <>
                <dt>{words.entry}</dt>
                <dd>
                  <code>{row.entries.join(' ')}</code>
                </dd>
              </>
            )}
            {detail.n > 1 && (
              <>
                <dt>{words.against(detail.n - 1)}</dt>
                <dd>{words.states[row.state]}</dd>
              </>
            )}
            <dt>{words.changed}</dt>
            <dd>
              {row.changes.length === 0
                ? words.nothing
                : row.changes.map((one) => `${one.action} (${one.step}): ${one.reason}`).join('; ')}
            </dd>
          </dl>
          <pre class="code" tabIndex={0}>
            {row.text}
          </pre>
        </>
      )}
      <footer>
        <button type="button" class="button" onClick={() => void showBody()}>
          <Icon name="braces" size={16} /> {words.body}
        </button>
        <Link to={paths.conversation(sessionKey, row?.entries.at(-1))} class="button">
          <Icon name="message" size={16} /> {words.inConversation}
        </Link>
      </footer>
      {body !== undefined && (
        <Dialog title={words.bodyTitle(detail.n)} onClose={() => setBody(undefined)} class="wide">
          <CopyButton text={() => body} />
          <pre class="code" tabIndex={0}>
            {pretty(body)}
          </pre>
        </Dialog>
      )}
    </section>
  )
}

function pretty(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2)
  } catch {
    return body
  }
}
