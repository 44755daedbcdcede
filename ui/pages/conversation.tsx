import type { JSX, RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { api, sessionPath } from '../lib/api.ts'
import { Conversation } from '../lib/conversation.ts'
import { feed } from '../lib/feed.ts'
import { onFind } from '../lib/keys.ts'
import { texts } from '../lib/language.ts'
import { attempt, notify } from '../lib/notice.ts'
import { earlierOf, entryInAddress, go, paths } from '../lib/router.ts'
import { forgetRow, rowOf } from '../lib/sessions.ts'
import { outgoing } from '../lib/sender.ts'
import { Empty, Failure, Loading } from '../components/basics.tsx'
import { Approvals } from '../components/approvals.tsx'
import { Composer } from '../components/composer.tsx'
import { ConversationHeader } from '../components/conversation-header.tsx'
import { ConversationList, newConversation } from '../components/conversation-list.tsx'
import { Icon } from '../components/icons.tsx'
import { Side } from '../components/side.tsx'
import { FindBar } from '../components/find-bar.tsx'
import { Thread, useThreadView, type ThreadView } from '../components/thread.tsx'

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
      {sessionKey === undefined ? (
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
        // Until the next one is made, which is a moment, there is none.
        conversation !== undefined && <OpenConversation conversation={conversation} />
      )}
    </div>
  )
}

function OpenConversation({ conversation }: { readonly conversation: Conversation }): JSX.Element {
  const row = rowOf(conversation.key)
  const [showsSide, setShowsSide] = useState(false)
  const earlier = earlierOf(conversation.key)
  const isRunning = row?.state === 'running' || row?.state === 'queued' || conversation.isRunning.value
  return (
    <section class="open-conversation" aria-label={row?.title ?? conversation.key}>
      <ConversationHeader sessionKey={conversation.key}>
        <button
          type="button"
          class="button icon-only side-toggle"
          aria-expanded={showsSide}
          aria-label={texts.value.side.toggle}
          title={texts.value.side.toggle}
          onClick={() => setShowsSide(!showsSide)}
        >
          <Icon name="coins" />
        </button>
      </ConversationHeader>
      <div class="conversation-body">
        <div class="middle">
          <Scroll conversation={conversation} />
          <Announcer conversation={conversation} />
          <Approvals session={conversation.key} />
          {earlier === undefined ? (
            <Composer sessionKey={conversation.key} isRunning={isRunning} />
          ) : (
            <BringBack {...earlier} />
          )}
        </div>
        <Side conversation={conversation} isOpen={showsSide} />
      </div>
    </section>
  )
}

/** Below a conversation that was started over: it can only be read, until it takes the place of the present one. */
function BringBack({ of, sessionId }: { readonly of: string; readonly sessionId: string }): JSX.Element {
  const words = texts.value.conversation
  const [error, setError] = useState<unknown>(undefined)
  const bringBack = async () => {
    try {
      await api.post(sessionPath(of, '/restore'), { archive: sessionId })
      forgetRow(`${of}#${sessionId}`)
      go(paths.conversation(of))
    } catch (thrown) {
      setError(thrown)
    }
  }
  return (
    <div class="panel bring-back">
      <p class="hint-line">
        {words.isArchived}{' '}
        <button type="button" class="button primary" onClick={() => void bringBack()}>
          {words.bringBack}
        </button>
      </p>
      {error !== undefined && <Failure error={error} />}
    </div>
  )
}

/** The thread in its window: it keeps the end in sight for a reader who is there, and the place of one who is not. */
function Scroll({ conversation }: { readonly conversation: Conversation }): JSX.Element {
  const words = texts.value.conversation
  const box = useRef<HTMLDivElement>(null)
  const view = useThreadView(conversation)
  const [isFinding, setIsFinding] = useState(false)
  const entry = entryInAddress()
  useEffect(() => {
    if (entry === undefined || conversation.state.value !== 'ready') return
    attempt(async () => {
      if (!(await conversation.find(entry))) notify(texts.value.conversation.entryGone)
    })
  }, [conversation, entry, conversation.state.value])
  const older = () => void conversation.loadOlder().catch(() => undefined)
  view.onNearTop = conversation.older.value === undefined ? undefined : older
  useEffect(() => {
    onFind.current = () => setIsFinding(true)
    return () => (onFind.current = undefined)
  }, [])
  return (
    <>
      {isFinding && (
        <FindBar
          conversation={conversation}
          view={view}
          onClose={() => {
            setIsFinding(false)
            box.current?.focus({ preventScroll: true })
          }}
        />
      )}
      <div class="scroll" ref={box} tabIndex={0} role="region" aria-label={words.tab}>
        <div class="column">
          {conversation.older.value !== undefined && (
            <p class="older">
              <button type="button" class="button small" onClick={() => attempt(() => conversation.loadOlder())}>
                {words.older}
              </button>
            </p>
          )}
          <Content conversation={conversation} view={view} scroller={box} />
        </div>
        {view.isAway.value && (
          <button type="button" class="button to-end" onClick={() => view.toEnd()}>
            <Icon name="down" size={16} /> {words.latest}
          </button>
        )}
      </div>
    </>
  )
}

function Content({
  conversation,
  view,
  scroller,
}: {
  readonly conversation: Conversation
  readonly view: ThreadView
  readonly scroller: RefObject<HTMLElement | null>
}): JSX.Element | null {
  const words = texts.value.conversation
  const isWriting = outgoing.value.some((message) => message.key === conversation.key) || conversation.isRunning.value
  if (conversation.state.value === 'loading' && !isWriting) return <Loading rows={6} />
  const failure = conversation.state.value === 'failed' && (
    <Failure error={conversation.error.value} again={() => void conversation.reload()} />
  )
  if (conversation.messages.value.length === 0 && !isWriting)
    return failure || <Empty>{conversation.state.value === 'deleted' ? words.missing : words.empty}</Empty>
  return (
    <>
      <Thread conversation={conversation} view={view} scroller={scroller} />
      {failure}
    </>
  )
}

/** Says start, tools and end of an answer, not every word. */
function Announcer({ conversation }: { readonly conversation: Conversation }): JSX.Element {
  const words = texts.value.thread
  const said = conversation.said.value
  return (
    <p class="hidden-text" aria-live="polite">
      {said !== undefined &&
        { start: words.answerStarted, tool: words.toolStarted(said.tool ?? ''), end: words.answerEnded }[said.what]}
    </p>
  )
}
