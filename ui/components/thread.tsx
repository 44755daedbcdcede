import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { api, sessionPath } from '../lib/api.ts'
import { shortArguments, type Conversation, type LiveTurn, type Step } from '../lib/conversation.ts'
import { clock, count, duration, fullTime, millis, percent, short } from '../lib/format.ts'
import { texts } from '../lib/language.ts'
import { forgetOutgoing, outgoing, sendAgain, type Outgoing } from '../lib/sender.ts'
import type { AssistantMessage, Message, ResultMessage, UserMessage } from '../lib/types.ts'
import { Badge } from './basics.tsx'
import { Icon, toolIcon } from './icons.tsx'
import { Markdown } from './markdown.tsx'

/** The conversation as one line with knots: what was asked, what was done, what was answered. */
export function Thread({ conversation }: { readonly conversation: Conversation }): JSX.Element {
  const steps = conversation.steps.value
  const waiting = outgoing.value.filter((message) => message.key === conversation.key)
  const live = [...conversation.live.value.values()]
  const lastStep = steps.at(-1)
  return (
    <ol class="thread">
      {steps.map((step) => (
        <StepView
          key={step.id}
          step={step}
          conversation={conversation}
          live={live.find((turn) => turn.run === step.id && step === lastStep)}
        />
      ))}
      {waiting.map((message) => (
        <OutgoingView key={message.id} message={message} />
      ))}
      {live
        .filter((turn) => !steps.some((step) => step.id === turn.run))
        .map((turn) => (
          <LiveAnswer key={turn.run} turn={turn} />
        ))}
    </ol>
  )
}

function StepView({
  step,
  conversation,
  live,
}: {
  readonly step: Step
  readonly conversation: Conversation
  readonly live: LiveTurn | undefined
}): JSX.Element {
  const instructions = step.messages.filter((message): message is UserMessage => message.role === 'user')
  const rest = step.messages.filter((message) => message.role !== 'user')
  const final = finalAnswer(rest, live !== undefined)
  const work = rest.filter((message) => message !== final)
  const isStitched = work.length > 0 && work.every((message) => message.hidden === true)
  return (
    <>
      {instructions.map((message) => (
        <Knot key={message.id} kind="open" id={message.id}>
          <Instruction message={message} conversationKey={conversation.key} />
        </Knot>
      ))}
      {work.length > 0 && (
        <li class={`rounds ${isStitched ? 'stitched' : ''}`}>
          <Rounds step={step} work={work} conversation={conversation} isOpen={live !== undefined} />
        </li>
      )}
      {live !== undefined && live.ended === undefined && <LiveAnswer turn={live} />}
      {final !== undefined && (
        <Knot kind="closed" id={final.id}>
          <Answer message={final} conversationKey={conversation.key} />
        </Knot>
      )}
    </>
  )
}

/** The answer that ends a step; while it runs, what is stored so far is work. */
function finalAnswer(messages: readonly Message[], isLive: boolean): AssistantMessage | undefined {
  const last = messages.at(-1)
  if (last?.role !== 'assistant') return undefined
  const hasCalls = last.blocks.some((block) => block.type === 'call')
  return hasCalls && (isLive || last.stopReason === 'toolUse') ? undefined : last
}

function Knot({
  kind,
  id,
  children,
}: {
  readonly kind: 'open' | 'closed' | 'live'
  readonly id?: string
  readonly children: ComponentChildren
}): JSX.Element {
  return (
    <li class={`knot ${kind}`} {...(id === undefined ? {} : { id: `entry-${id}` })}>
      {children}
    </li>
  )
}

function Marks({ message }: { readonly message: Message }): JSX.Element | null {
  const words = texts.value.thread
  if (message.summarised === true) return <Badge kind="summary">{words.summarised}</Badge>
  if (message.hidden === true) return <OutOfView />
  return null
}

function OutOfView(): JSX.Element {
  return (
    <span class="badge system out-of-view">
      <Icon name="scissors" size={13} /> {texts.value.thread.outOfView}
    </span>
  )
}

function Instruction({
  message,
  conversationKey,
}: {
  readonly message: UserMessage
  readonly conversationKey: string
}): JSX.Element {
  return (
    <article class="instruction">
      <p class="by">
        <strong>{texts.value.state.you}</strong> <time title={fullTime(message.at)}>{clock(message.at)}</time>{' '}
        <Marks message={message} />
      </p>
      <div class="bubble">
        <CutText message={message} conversationKey={conversationKey}>
          {(text) => <p class="as-written">{text}</p>}
        </CutText>
        <Pictures message={message} conversationKey={conversationKey} />
      </div>
    </article>
  )
}

function Answer({
  message,
  conversationKey,
}: {
  readonly message: AssistantMessage
  readonly conversationKey: string
}): JSX.Element {
  const words = texts.value.thread
  const { usage } = message
  const read = usage === undefined ? 0 : usage.input + usage.cacheRead + usage.cacheWrite
  return (
    <article class="answer">
      <p class="by">
        <strong>{words.clew}</strong> <time title={fullTime(message.at)}>{clock(message.at)}</time>
        {usage !== undefined && read > 0 && (
          <span>
            {words.usage(short(read), short(usage.output))}
            {usage.cacheRead > 0 && ` · ${words.cached(percent(usage.cacheRead / read))}`}
          </span>
        )}{' '}
        <Marks message={message} />
      </p>
      <Blocks message={message} conversationKey={conversationKey} />
      <Ending message={message} />
    </article>
  )
}

function Blocks({
  message,
  conversationKey,
}: {
  readonly message: AssistantMessage
  readonly conversationKey: string
}): JSX.Element {
  const words = texts.value.thread
  return (
    <CutBlocks message={message} conversationKey={conversationKey}>
      {(blocks) => (
        <>
          {blocks.map((block, at) => {
            if (block.type === 'text') return <Markdown key={at} text={block.text} />
            if (block.type === 'thinking')
              return (
                <details key={at} class="thinking">
                  <summary>{words.thinking}</summary>
                  <p class="as-written">{block.text}</p>
                </details>
              )
            return null
          })}
        </>
      )}
    </CutBlocks>
  )
}

function Ending({ message }: { readonly message: AssistantMessage }): JSX.Element | null {
  const words = texts.value.thread
  const said = {
    aborted: words.stopped,
    error: words.turnFailed,
    interrupted: words.interrupted,
    roundLimit: words.limit,
  }[message.stopReason ?? '']
  if (said === undefined) return null
  return (
    <p class="ending">
      <Icon name="warning" size={15} /> {said} {message.error !== undefined && <span>{message.error}</span>}
    </p>
  )
}

function Rounds({
  step,
  work,
  conversation,
  isOpen,
}: {
  readonly step: Step
  readonly work: readonly Message[]
  readonly conversation: Conversation
  readonly isOpen: boolean
}): JSX.Element {
  const words = texts.value.thread
  const [open, setOpen] = useState(isOpen)
  useEffect(() => {
    if (isOpen) setOpen(true)
  }, [isOpen])
  const results = work.filter((message): message is ResultMessage => message.role === 'toolResult')
  const rounds = new Set(work.map((message) => message.round ?? 0)).size
  const failures = results.filter((result) => result.failed).length
  const took = tookMs(step)
  const { cleanup } = step
  const saved = cleanup === undefined ? 0 : cleanup.tokensBefore - cleanup.tokensAfter
  return (
    <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Icon name="right" size={15} />
        <span>
          <strong>{words.rounds(rounds)}</strong> · {words.calls(results.length)}
          {failures > 0 && ` · ${words.failures(failures)}`}
          {took !== undefined && ` · ${duration(took)}`}
        </span>
        {cleanup !== undefined && <OutOfView />}
        {saved >= 100 && <span class="saved">{words.saved(count(saved))}</span>}
      </summary>
      {open && (
        <div class="work">
          {cleanup !== undefined && (
            <button
              type="button"
              class="button small outlined"
              onClick={() => void conversation.restoreCleanup(cleanup.id)}
            >
              <Icon name="undo" size={15} /> {words.showAgainLong}
            </button>
          )}
          {work.map((message) => (
            <WorkItem key={message.id} message={message} results={results} conversationKey={conversation.key} />
          ))}
        </div>
      )}
    </details>
  )
}

function tookMs({ messages }: Step): number | undefined {
  const [first] = messages
  const last = messages.at(-1)
  if (first === undefined || last === undefined || first === last) return undefined
  const took = millis(last.at) - millis(first.at)
  return took > 0 ? took : undefined
}

function WorkItem({
  message,
  results,
  conversationKey,
}: {
  readonly message: Message
  readonly results: readonly ResultMessage[]
  readonly conversationKey: string
}): JSX.Element | null {
  if (message.role === 'assistant')
    return (
      <div class="round" id={`entry-${message.id}`}>
        <Blocks message={message} conversationKey={conversationKey} />
        {message.blocks.map((block) =>
          block.type === 'call' ? (
            <Call
              key={block.id}
              tool={block.tool}
              input={block.arguments}
              result={results.find((one) => one.callId === block.id)}
              conversationKey={conversationKey}
            />
          ) : null,
        )}
        <Ending message={message} />
      </div>
    )
  if (message.role === 'toolResult') return null
  return (
    <p class="as-written other" id={`entry-${message.id}`}>
      {message.text}
    </p>
  )
}

function Call({
  tool,
  input,
  result,
  conversationKey,
}: {
  readonly tool: string
  readonly input: unknown
  readonly result: ResultMessage | undefined
  readonly conversationKey: string
}): JSX.Element {
  const words = texts.value.thread
  return (
    <details class="call" {...(result === undefined ? {} : { id: `entry-${result.id}` })}>
      <summary>
        <Icon name={toolIcon(tool)} size={16} />
        <strong>{tool}</strong>
        <code>{shortArguments(input)}</code>
        <span class="measure">
          {result === undefined
            ? words.running
            : result.durationMs === undefined
              ? words.tokens(count(result.tokens))
              : duration(result.durationMs)}
        </span>
        {result !== undefined && (
          <span class={result.failed ? 'bad' : 'good'}>
            <Icon name={result.failed ? 'cross' : 'check'} size={16} />
            <span class="hidden-text">{result.failed ? words.failed : words.ok}</span>
          </span>
        )}
      </summary>
      <p class="small-title">{words.arguments}</p>
      <pre class="code" tabIndex={0}>
        {JSON.stringify(input, null, 2)}
      </pre>
      {result !== undefined && (
        <>
          <p class="small-title">{words.result}</p>
          <CutText message={result} conversationKey={conversationKey}>
            {(text) => (
              <pre class="code" tabIndex={0}>
                {text}
              </pre>
            )}
          </CutText>
          <Pictures message={result} conversationKey={conversationKey} />
        </>
      )}
    </details>
  )
}

/** A turn in the making: the text so far, the tools at work. */
export function LiveAnswer({ turn }: { readonly turn: LiveTurn }): JSX.Element {
  const words = texts.value.thread
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    const ticking = setInterval(() => setNow(Date.now()), 100)
    return () => clearInterval(ticking)
  }, [])
  const said = turn.text === '' ? words.waiting : words.writing
  return (
    <Knot kind="live">
      <article class="answer live" aria-busy="true">
        <p class="by">
          <strong>{words.clew}</strong>{' '}
          <span class="running">
            {said} · {words.round(turn.round)} · {duration(Math.max(0, now - turn.startedAt))}
          </span>
        </p>
        {turn.tools
          .filter((tool) => tool.durationMs === undefined)
          .map((tool) => (
            <p key={tool.id} class="call running">
              <Icon name={toolIcon(tool.tool)} size={16} /> <strong>{tool.tool}</strong> <code>{tool.detail}</code>
              <span class="measure">{duration(Math.max(0, now - tool.startedAt))}</span>
            </p>
          ))}
        {turn.note !== undefined && turn.note !== '' && <p class="ending">{words.retry(turn.note)}</p>}
        {turn.text !== '' && (
          <div class="growing">
            <Markdown text={turn.text} />
          </div>
        )}
      </article>
    </Knot>
  )
}

function OutgoingView({ message }: { readonly message: Outgoing }): JSX.Element {
  const words = texts.value.thread
  const state = { sending: words.sending, accepted: words.accepted, failed: words.notSent }[message.state]
  return (
    <Knot kind="open">
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
    </Knot>
  )
}

/** Pictures of a message as the transcript has them. */
function Pictures({
  message,
  conversationKey,
}: {
  readonly message: UserMessage | ResultMessage
  readonly conversationKey: string
}): JSX.Element | null {
  if (message.images === undefined) return null
  return (
    <p class="pictures">
      {message.images.map((_, at) => (
        <img
          key={at}
          src={sessionPath(conversationKey, `/entries/${message.id}/images?n=${at}`)}
          alt={texts.value.thread.picture(at + 1)}
          loading="lazy"
        />
      ))}
    </p>
  )
}

/** The text of a message; one that was cut can be loaded whole. */
function CutText({
  message,
  conversationKey,
  children,
}: {
  readonly message: UserMessage | ResultMessage
  readonly conversationKey: string
  readonly children: (text: string) => JSX.Element
}): JSX.Element {
  const [whole, setWhole] = useState<string | undefined>(undefined)
  const load = async () =>
    setWhole((await api.get<{ text: string }>(sessionPath(conversationKey, `/entries/${message.id}`))).text)
  return (
    <>
      {children(whole ?? message.text)}
      {message.cut === true && whole === undefined && <ShowAll load={load} />}
    </>
  )
}

function CutBlocks({
  message,
  conversationKey,
  children,
}: {
  readonly message: AssistantMessage
  readonly conversationKey: string
  readonly children: (blocks: AssistantMessage['blocks']) => JSX.Element
}): JSX.Element {
  const [whole, setWhole] = useState<AssistantMessage['blocks'] | undefined>(undefined)
  const load = async () =>
    setWhole((await api.get<AssistantMessage>(sessionPath(conversationKey, `/entries/${message.id}`))).blocks)
  return (
    <>
      {children(whole ?? message.blocks)}
      {message.cut === true && whole === undefined && <ShowAll load={load} />}
    </>
  )
}

function ShowAll({ load }: { readonly load: () => Promise<void> }): JSX.Element {
  const words = texts.value.thread
  return (
    <p class="cut">
      {words.cut}{' '}
      <button type="button" class="button small" onClick={() => void load()}>
        {words.whole}
      </button>
    </p>
  )
}
