import type { JSX } from 'preact'
import { api, sessionPath } from '../lib/api.ts'
import type { Conversation } from '../lib/conversation.ts'
import { texts } from '../lib/language.ts'
import { attempt } from '../lib/notice.ts'
import type { AssistantMessage, Message, ResultMessage, UserMessage } from '../lib/types.ts'
import { Badge } from './basics.tsx'
import { Icon } from './icons.tsx'
import { Markdown } from './markdown.tsx'
import { useRowState } from './row-state.tsx'

interface Shown<M> {
  readonly message: M
  readonly conversation: Conversation
}

/** The text of a message as it was written; one that was cut can be loaded whole. */
export function MessageText({
  message,
  conversation,
  children,
}: Shown<UserMessage | ResultMessage> & { readonly children: (text: string) => JSX.Element }): JSX.Element {
  const [whole, setWhole] = useRowState<string | undefined>(conversation, `text ${message.id}`, undefined)
  const load = async () => setWhole((await wholeEntry<{ text: string }>(conversation, message.id)).text)
  return (
    <>
      {children(whole ?? message.text)}
      {message.cut === true && whole === undefined && <ShowAll load={load} />}
    </>
  )
}

/** Text and thinking of an answer, stored or being written. A text keeps its elements from the one to the other. */
export function AnswerBlocks({
  id,
  blocks,
  isCut,
  conversation,
}: {
  readonly id: string
  readonly blocks: AssistantMessage['blocks']
  readonly isCut: boolean
  readonly conversation: Conversation
}): JSX.Element {
  const [whole, setWhole] = useRowState<AssistantMessage['blocks'] | undefined>(conversation, `blocks ${id}`, undefined)
  const load = async () => setWhole((await wholeEntry<AssistantMessage>(conversation, id)).blocks)
  let text = 0
  return (
    <>
      {(whole ?? blocks).map((block, at) => {
        if (block.type === 'text') return <Markdown key={`text ${text++}`} text={block.text} />
        if (block.type === 'thinking')
          return <Thinking key={at} conversation={conversation} name={`${id} ${at}`} text={block.text} />
        return null
      })}
      {isCut && whole === undefined && <ShowAll load={load} />}
    </>
  )
}

/** The text of an answer as it was written, also where only a part of it is shown. */
export async function wholeText(message: AssistantMessage, conversation: Conversation): Promise<string> {
  const known = conversation.rowStates.get(`blocks ${message.id}`) as AssistantMessage['blocks'] | undefined
  const blocks =
    known ??
    (message.cut === true ? (await wholeEntry<AssistantMessage>(conversation, message.id)).blocks : message.blocks)
  return blocks.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n\n')
}

function Thinking({
  conversation,
  name,
  text,
}: {
  readonly conversation: Conversation
  readonly name: string
  readonly text: string
}): JSX.Element {
  const [isOpen, setIsOpen] = useRowState(conversation, `thinking ${name}`, false)
  return (
    <details class="thinking" open={isOpen} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>{texts.value.thread.thinking}</summary>
      <p class="as-written">{text}</p>
    </details>
  )
}

function wholeEntry<T>(conversation: Conversation, id: string): Promise<T> {
  return api.get<T>(sessionPath(conversation.key, `/entries/${id}`))
}

function ShowAll({ load }: { readonly load: () => Promise<void> }): JSX.Element {
  const words = texts.value.thread
  return (
    <p class="cut">
      {words.cut}{' '}
      <button type="button" class="button small" onClick={() => attempt(load)}>
        {words.whole}
      </button>
    </p>
  )
}

/** Pictures of a message as the transcript has them. */
export function Pictures({ message, conversation }: Shown<UserMessage | ResultMessage>): JSX.Element | null {
  if (message.images === undefined) return null
  return (
    <p class="pictures">
      {message.images.map((_, at) => (
        <img
          key={at}
          src={sessionPath(conversation.key, `/entries/${message.id}/images?n=${at}`)}
          alt={texts.value.thread.picture(at + 1)}
          loading="lazy"
        />
      ))}
    </p>
  )
}

/** Says whether the model still sees a message. */
export function Marks({ message }: { readonly message: Message }): JSX.Element | null {
  if (message.summarised === true) return <Badge kind="summary">{texts.value.thread.summarised}</Badge>
  return message.hidden === true ? <OutOfView /> : null
}

export function OutOfView(): JSX.Element {
  return (
    <span class="badge system out-of-view">
      <Icon name="scissors" size={13} /> {texts.value.thread.outOfView}
    </span>
  )
}

/** How an answer that did not end by itself ended. */
export function Ending({ message }: { readonly message: AssistantMessage }): JSX.Element | null {
  const words = texts.value.thread
  const said = {
    aborted: words.stopped,
    error: words.turnFailed,
    interrupted: words.interrupted,
    roundLimit: words.limit,
  }[message.stopReason ?? '']
  if (said === undefined) return null
  const wasStopped = message.stopReason === 'aborted'
  return (
    <p class={`ending ${wasStopped ? 'stopped' : ''}`}>
      <Icon name={wasStopped ? 'stop' : 'warning'} size={15} /> <span>{said}</span>
      {message.error !== undefined && !wasStopped && <span class="cause">{message.error}</span>}
    </p>
  )
}

/** Says of an answer that its channel does not have it yet, or may not have it. */
export function Delivery({ message, conversation }: Shown<UserMessage | AssistantMessage>): JSX.Element | null {
  const answer = conversation.undelivered.value.get(message.stepId ?? '')
  if (answer === undefined) return null
  const words = texts.value.thread
  const isUnknown = answer.state === 'unknown'
  return (
    <p class={`ending ${isUnknown ? '' : 'stopped'}`}>
      <Icon name={isUnknown ? 'question' : 'clock'} size={15} />
      <span>{isUnknown ? words.deliveryUnknown(answer.channel) : words.deliveryWaits(answer.channel)}</span>
    </p>
  )
}
