import type { JSX } from 'preact'
import type { Conversation } from '../lib/conversation.ts'
import { finalAnswer } from '../lib/thread-rows.ts'
import { clock, fullTime, percent, short } from '../lib/format.ts'
import { texts } from '../lib/language.ts'
import { peerOf } from '../lib/peer.ts'
import type { AssistantMessage, LiveTurn, UserMessage } from '../lib/types.ts'
import { CopyButton } from './basics.tsx'
import { LiveState, LiveTools } from './live-answer.tsx'
import { LongText } from './markdown.tsx'
import { AnswerBlocks, Delivery, Ending, Marks, MessageText, Pictures, wholeText } from './message-text.tsx'

export function Instruction({
  message,
  conversation,
}: {
  readonly message: UserMessage
  readonly conversation: Conversation
}): JSX.Element {
  return (
    <article class="instruction">
      <p class="by">
        <strong>{writerOf(message, conversation)}</strong> <time title={fullTime(message.at)}>{clock(message.at)}</time>{' '}
        <Marks message={message} />
      </p>
      <div class="bubble">
        <MessageText message={message} conversation={conversation}>
          {(text) => <LongText text={text} />}
        </MessageText>
        <Pictures message={message} conversation={conversation} />
      </div>
      {!hasAnswer(message, conversation) && <Delivery message={message} conversation={conversation} />}
    </article>
  )
}

/** What was written on the page is the reader's own; the rest came by the conversation's channel. */
function writerOf({ from }: UserMessage, { key }: Conversation): string {
  return from === 'dashboard' || key.startsWith('dashboard:') ? texts.value.state.you : peerOf(key)
}

/** Only looked for where the answer may be missed; then it says so itself, if there is one. */
function hasAnswer({ stepId = '' }: UserMessage, { undelivered, messages }: Conversation): boolean {
  if (!undelivered.value.has(stepId)) return false
  const others = messages.value.filter((one) => one.stepId === stepId && one.role !== 'user')
  return finalAnswer(others, false) !== undefined
}

/** An answer, stored or being written: the same elements, so that nothing moves when the one becomes the other. */
export function Answer({
  message,
  turn,
  conversation,
}: {
  readonly message?: AssistantMessage
  readonly turn?: LiveTurn
  readonly conversation: Conversation
}): JSX.Element {
  const isLive = message === undefined
  return (
    <article class={`answer ${isLive ? 'live' : ''}`} {...(isLive ? { 'aria-busy': 'true' } : {})}>
      <p class="by">
        <strong>{texts.value.thread.clew}</strong>{' '}
        {message === undefined ? turn !== undefined && <LiveState turn={turn} /> : <StoredState message={message} />}
      </p>
      {isLive && turn !== undefined && <LiveTools turn={turn} />}
      <div key="text" class={isLive ? 'growing' : ''}>
        <AnswerBlocks
          id={message?.id ?? turn?.run ?? ''}
          blocks={message?.blocks ?? blocksOf(turn)}
          isCut={message?.cut === true}
          conversation={conversation}
        />
      </div>
      {message !== undefined && <Ending message={message} />}
      {message !== undefined && <Delivery message={message} conversation={conversation} />}
      {message?.blocks.some((block) => block.type === 'text' && block.text !== '') === true && (
        <CopyButton
          text={() => wholeText(message, conversation)}
          label={texts.value.thread.copyAnswer}
          class="of-answer"
        />
      )}
    </article>
  )
}

function blocksOf(turn: LiveTurn | undefined): AssistantMessage['blocks'] {
  return turn === undefined || turn.text === '' ? [] : [{ type: 'text', text: turn.text }]
}

function StoredState({ message }: { readonly message: AssistantMessage }): JSX.Element {
  const words = texts.value.thread
  const { usage } = message
  const read = usage === undefined ? 0 : usage.input + usage.cacheRead + usage.cacheWrite
  return (
    <>
      <time title={fullTime(message.at)}>{clock(message.at)}</time>
      {usage !== undefined && read > 0 && (
        <span>
          {words.usage(short(read), short(usage.output))}
          {usage.cacheRead > 0 && ` · ${words.cached(percent(usage.cacheRead / read))}`}
        </span>
      )}{' '}
      <Marks message={message} />
    </>
  )
}
