import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api, sessionPath } from '../lib/api.ts'
import { percent } from '../lib/format.ts'
import { texts } from '../lib/language.ts'
import { paths } from '../lib/router.ts'
import type { Message, NotSent, RequestDetail } from '../lib/types.ts'
import { kindOf, kindOfRole, type Kind, type TableRow } from '../lib/xray-rows.ts'
import { Badge, CopyButton, Dialog, Failure, Link, useLoaded } from './basics.tsx'
import { Icon } from './icons.tsx'

interface Shown {
  readonly detail: RequestDetail
  readonly sessionKey: string
}

/** The chosen message, sent or left out: where it comes from, what happened to it on the way, and its text. */
export function Inspector({
  row,
  hidden,
  ...shown
}: Shown & { readonly row: TableRow | undefined; readonly hidden: NotSent | undefined }): JSX.Element {
  const words = texts.value.xray
  const entry = hidden?.entry ?? row?.entries.at(-1)
  return (
    <section class="panel inspector" aria-label={words.inspector}>
      {hidden !== undefined ? (
        <LeftOut key={hidden.entry} one={hidden} {...shown} />
      ) : row === undefined ? (
        <p class="quiet">{words.chooseRow}</p>
      ) : (
        <Sent row={row} {...shown} />
      )}
      <footer>
        <BodyButton {...shown} />
        <Link to={paths.conversation(shown.sessionKey, entry)} class="button">
          <Icon name="message" size={16} /> {words.inConversation}
        </Link>
      </footer>
    </section>
  )
}

function Sent({ row, detail }: Shown & { readonly row: TableRow }): JSX.Element {
  const words = texts.value.xray
  return (
    <>
      <Head
        kind={kindOf(row)}
        name={row.tool}
        tokens={row.tokens}
        share={row.tokens / Math.max(1, detail.estimate)}
        text={row.text}
      />
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
            : row.changes
                .map(
                  ({ step, action, reason }) => `${words.actions[action] ?? action} (${step}): ${words.reason(reason)}`,
                )
                .join('; ')}
        </dd>
      </dl>
      <pre class="code" tabIndex={0}>
        {row.text}
      </pre>
    </>
  )
}

/** What a request left out is read from the transcript. */
function LeftOut({ one, sessionKey }: Shown & { readonly one: NotSent }): JSX.Element {
  const words = texts.value.xray
  const { value, error, again } = useLoaded(
    (signal) => api.get<Message>(sessionPath(sessionKey, `/entries/${one.entry}`), signal),
    [sessionKey, one.entry],
  )
  const text = value === undefined ? '' : textOf(value)
  return (
    <>
      <Head kind={kindOfRole(one.role)} name={one.tool} tokens={one.tokens} text={text} />
      <dl>
        <dt>{words.entry}</dt>
        <dd>
          <code>{one.entry}</code>
        </dd>
        <dt>{words.notSent}</dt>
        <dd>
          {words.reason(one.reason)} ({one.by})
        </dd>
      </dl>
      {error !== undefined && <Failure error={error} again={again} />}
      <pre class="code" tabIndex={0}>
        {text}
      </pre>
    </>
  )
}

function textOf(message: Message): string {
  if (message.role !== 'assistant') return message.text
  return message.blocks
    .map((block) => (block.type === 'call' ? `→ ${block.tool} ${JSON.stringify(block.arguments)}` : block.text))
    .join('\n')
}

function Head({
  kind,
  name,
  tokens,
  share,
  text,
}: {
  readonly kind: Kind
  readonly name: string | undefined
  readonly tokens: number
  readonly share?: number
  readonly text: string
}): JSX.Element {
  const words = texts.value.xray
  return (
    <header>
      <Badge kind={kind}>{name === undefined ? words.whoNames[kind] : words.resultOf(name)}</Badge>
      <strong>{texts.value.thread.tokens(tokens)}</strong>
      {share !== undefined && <span class="quiet">{percent(share)}</span>}
      <CopyButton text={() => text} />
    </header>
  )
}

function BodyButton({ detail, sessionKey }: Shown): JSX.Element {
  const words = texts.value.xray
  const [body, setBody] = useState<string | undefined>(undefined)
  const [error, setError] = useState<unknown>(undefined)
  const load = async () => {
    try {
      setBody((await api.get<RequestDetail>(sessionPath(sessionKey, `/requests/${detail.n}?body=1`))).body ?? '')
      setError(undefined)
    } catch (thrown) {
      setError(thrown)
    }
  }
  return (
    <>
      <button type="button" class="button" onClick={() => void load()}>
        <Icon name="braces" size={16} /> {words.body}
      </button>
      {error !== undefined && <Failure error={error} again={() => void load()} />}
      {body !== undefined && (
        <Dialog title={words.bodyTitle(detail.n)} onClose={() => setBody(undefined)} class="wide">
          <CopyButton text={() => body} />
          <pre class="code" tabIndex={0}>
            {pretty(body)}
          </pre>
        </Dialog>
      )}
    </>
  )
}

function pretty(body: string): string {
  try {
    return JSON.stringify(JSON.parse(body), null, 2)
  } catch {
    return body
  }
}
