import type { JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Conversation } from '../lib/conversation.ts'
import { feed } from '../lib/feed.ts'
import { texts } from '../lib/language.ts'
import { entryInAddress } from '../lib/router.ts'
import { rowOf } from '../lib/sessions.ts'
import { outgoing } from '../lib/sender.ts'
import { Empty, Failure, Loading } from '../components/basics.tsx'
import { Approvals } from '../components/approvals.tsx'
import { Composer } from '../components/composer.tsx'
import { ConversationHeader } from '../components/conversation-header.tsx'
import { ConversationList, newConversation } from '../components/conversation-list.tsx'
import { Icon } from '../components/icons.tsx'
import { Side } from '../components/side.tsx'
import { Thread } from '../components/thread.tsx'

/** Opens a conversation for a page and closes it with the page. */
export function useConversation(key: string | undefined): Conversation | undefined {
  const [conversation, setConversation] = useState<Conversation | undefined>(undefined)
  useEffect(() => {
    if (key === undefined) {
      setConversation(undefined)
      return
    }
    const opened = new Conversation(key)
    setConversation(opened)
    feed.watch(key)
    void opened.reload()
    // What happened while the connection was down is in the transcript.
    const end = feed.state.subscribe((state) => {
      if (state === 'open' && opened.state.value !== 'loading') void opened.catchUp()
    })
    return () => {
      end()
      opened.close()
      feed.watch(undefined)
    }
  }, [key])
  return conversation?.key === key ? conversation : undefined
}

export function ConversationPage({ sessionKey }: { readonly sessionKey: string | undefined }): JSX.Element {
  const conversation = useConversation(sessionKey)
  return (
    <div class={`conversations ${sessionKey === undefined ? 'is-list' : 'is-open'}`}>
      <ConversationList chosen={sessionKey} />
      {sessionKey === undefined || conversation === undefined ? (
        <Empty
          action={
            <button type="button" class="button primary" onClick={newConversation}>
              {texts.value.list.create}
            </button>
          }
        >
          {texts.value.conversation.choose}
        </Empty>
      ) : (
        <OpenConversation conversation={conversation} />
      )}
    </div>
  )
}

function OpenConversation({ conversation }: { readonly conversation: Conversation }): JSX.Element {
  const row = rowOf(conversation.key)
  const isRunning =
    row?.state === 'running' ||
    row?.state === 'queued' ||
    [...conversation.live.value.values()].some((turn) => turn.ended === undefined)
  return (
    <section class="open-conversation" aria-label={row?.title ?? conversation.key}>
      <ConversationHeader sessionKey={conversation.key} />
      <div class="conversation-body">
        <div class="middle">
          <Scroll conversation={conversation} />
          <Announcer conversation={conversation} />
          <Approvals session={conversation.key} />
          <Composer sessionKey={conversation.key} isRunning={isRunning} />
        </div>
        <Side conversation={conversation} />
      </div>
    </section>
  )
}

/** Keeps the end in sight while the reader is there, and the place of a reader who is not. */
function Scroll({ conversation }: { readonly conversation: Conversation }): JSX.Element {
  const words = texts.value.conversation
  const box = useRef<HTMLDivElement>(null)
  const atEnd = useRef(true)
  const [isAway, setIsAway] = useState(false)
  const target = useRef(entryInAddress())
  const grows = [conversation.messages.value, conversation.live.value, outgoing.value]
  useEffect(() => {
    const element = box.current
    if (element === null) return
    const wanted = target.current === undefined ? null : document.getElementById(`entry-${target.current}`)
    if (wanted !== null) {
      target.current = undefined
      wanted.closest('details')?.setAttribute('open', '')
      wanted.scrollIntoView({ block: 'center' })
      wanted.classList.add('found')
    } else if (atEnd.current) element.scrollTop = element.scrollHeight
  }, grows)
  const look = () => {
    const element = box.current
    if (element === null) return
    atEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < 80
    setIsAway(!atEnd.current)
  }
  const older = async () => {
    const element = box.current
    const fromEnd = element === null ? 0 : element.scrollHeight - element.scrollTop
    await conversation.loadOlder()
    if (element !== null) requestAnimationFrame(() => (element.scrollTop = element.scrollHeight - fromEnd))
  }
  return (
    <div class="scroll" ref={box} onScroll={look} tabIndex={0} role="region" aria-label={words.tab}>
      <div class="column">
        {conversation.older.value !== undefined && (
          <p class="older">
            <button type="button" class="button small" onClick={() => void older()}>
              {words.older}
            </button>
          </p>
        )}
        <Content conversation={conversation} />
      </div>
      {isAway && (
        <button
          type="button"
          class="button to-end"
          onClick={() => {
            if (box.current !== null) box.current.scrollTop = box.current.scrollHeight
          }}
        >
          <Icon name="down" size={16} /> {words.latest}
        </button>
      )}
    </div>
  )
}

function Content({ conversation }: { readonly conversation: Conversation }): JSX.Element | null {
  const words = texts.value.conversation
  const isWriting =
    outgoing.value.some((message) => message.key === conversation.key) || conversation.live.value.size > 0
  if (conversation.state.value === 'loading' && !isWriting) return <Loading rows={6} />
  if (conversation.state.value === 'failed')
    return <Failure error={conversation.error.value} again={() => void conversation.reload()} />
  if (conversation.messages.value.length === 0 && !isWriting) return <Empty>{words.empty}</Empty>
  return <Thread conversation={conversation} />
}

/** Says start, tools and end of an answer, not every word. */
function Announcer({ conversation }: { readonly conversation: Conversation }): JSX.Element {
  const words = texts.value.thread
  const turn = [...conversation.live.value.values()].at(-1)
  const tool = turn?.tools.findLast((one) => one.durationMs === undefined)
  const said =
    turn === undefined
      ? ''
      : turn.ended !== undefined
        ? words.answerEnded
        : tool !== undefined
          ? words.toolStarted(tool.tool)
          : words.answerStarted
  return (
    <p class="hidden-text" aria-live="polite">
      {said}
    </p>
  )
}
