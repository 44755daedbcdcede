import type { JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { clock, duration } from '../lib/format.ts'
import { texts } from '../lib/language.ts'
import { forgetOutgoing, sendAgain } from '../lib/sender.ts'
import { Icon, toolIcon } from './icons.tsx'
import type { LiveTurn, Outgoing } from '../lib/types.ts'

/** How far an answer in the making is. */
export function LiveState({ turn }: { readonly turn: LiveTurn }): JSX.Element {
  const words = texts.value.thread
  return (
    <span class="running">
      {turn.text === '' ? words.waiting : words.writing} · {words.round(turn.round)} ·{' '}
      <Elapsed since={turn.startedAt} />
    </span>
  )
}

/** Tools at work, and why the model has to be asked again. */
export function LiveTools({ turn }: { readonly turn: LiveTurn }): JSX.Element {
  return (
    <>
      {turn.tools
        .filter((tool) => tool.durationMs === undefined)
        .map((tool) => (
          <p key={tool.id} class="call running">
            <Icon name={toolIcon(tool.tool)} size={16} /> <strong>{tool.tool}</strong> <code>{tool.detail}</code>
            <span class="measure">
              <Elapsed since={tool.startedAt} />
            </span>
          </p>
        ))}
      {turn.note !== undefined && turn.note !== '' && <p class="ending">{texts.value.thread.retry(turn.note)}</p>}
    </>
  )
}

/** Time that runs: only these words are written again with it. */
function Elapsed({ since }: { readonly since: number }): JSX.Element {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    const ticking = setInterval(() => setNow(Date.now()), 100)
    return () => clearInterval(ticking)
  }, [])
  return <>{duration(Math.max(0, now - since))}</>
}

/** A message written here that the transcript does not show yet. */
export function OutgoingMessage({ message }: { readonly message: Outgoing }): JSX.Element {
  const words = texts.value.thread
  const failed = message.run === undefined ? words.notSent : words.notAnswered
  const state = { sending: words.sending, accepted: words.accepted, failed }[message.state]
  return (
    <article class={`instruction outgoing ${message.state}`}>
      <p class="by">
        <strong>{texts.value.state.you}</strong> <time>{clock(message.at)}</time>{' '}
        <span>{message.reply === undefined ? state : ''}</span>
      </p>
      <div class="bubble">
        <p class="as-written">{message.text}</p>
        {message.files?.map((file) => (
          <p key={file.id} class="sent-file">
            <Icon name="clip" size={14} /> {file.name}
          </p>
        ))}
      </div>
      {message.state === 'failed' && (
        <p class="ending">
          <Icon name="warning" size={15} /> {message.error}{' '}
          <button type="button" class="button small" onClick={() => sendAgain(message.id)}>
            {words.sendAgain}
          </button>
          <button type="button" class="button small" onClick={() => forgetOutgoing(message.id)}>
            {words.discard}
          </button>
        </p>
      )}
      {message.reply !== undefined && (
        <div class="reply">
          <pre class="plain">{message.reply}</pre>
          <button type="button" class="button small" onClick={() => forgetOutgoing(message.id)}>
            {texts.value.state.close}
          </button>
        </div>
      )}
    </article>
  )
}
