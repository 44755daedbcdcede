import type { JSX } from 'preact'
import type { Conversation } from '../lib/conversation.ts'
import { count, duration } from '../lib/format.ts'
import { millis } from '../lib/instant.ts'
import { texts } from '../lib/language.ts'
import { attempt } from '../lib/notice.ts'
import type { Message, ResultMessage, Step } from '../lib/types.ts'
import { Call } from './call.tsx'
import { Icon } from './icons.tsx'
import { AnswerBlocks, Ending, OutOfView } from './message-text.tsx'
import { useRowState } from './row-state.tsx'

/** Savings below this are not boasted with. */
const WORTH_SAYING = 100

/** The work of a step, folded to one line; that of a running one is open. */
export function Rounds({
  step,
  work,
  conversation,
  isLive,
}: {
  readonly step: Step
  readonly work: readonly Message[]
  readonly conversation: Conversation
  readonly isLive: boolean
}): JSX.Element {
  const words = texts.value.thread
  const found = conversation.found.value
  const holdsFound = found !== undefined && work.some(({ id }) => id === found)
  const [chosen, setChosen] = useRowState<boolean | undefined>(conversation, `rounds ${step.id}`, undefined)
  const isOpen = chosen ?? (isLive || holdsFound)
  const results = work.filter((message): message is ResultMessage => message.role === 'toolResult')
  const rounds = new Set(work.map((message) => message.round ?? 0)).size
  const failures = results.filter((result) => result.failed).length
  const took = tookMs(step)
  const { cleanup } = step
  const saved = cleanup === undefined ? 0 : cleanup.tokensBefore - cleanup.tokensAfter
  return (
    <details
      open={isOpen}
      onToggle={(event) => {
        if (event.currentTarget.open !== isOpen) setChosen(event.currentTarget.open)
      }}
    >
      <summary>
        <Icon name="right" size={15} />
        <span>
          <strong>{words.rounds(rounds)}</strong> · {words.calls(results.length)}
          {failures > 0 && ` · ${words.failures(failures)}`}
          {took !== undefined && ` · ${duration(took)}`}
        </span>
        {cleanup !== undefined && <OutOfView />}
        {saved >= WORTH_SAYING && <span class="saved">{words.saved(count(saved))}</span>}
      </summary>
      {isOpen && (
        <div class="work">
          {cleanup !== undefined && (
            <button
              type="button"
              class="button small outlined"
              onClick={() => attempt(() => conversation.restoreCleanup(cleanup.id))}
            >
              <Icon name="undo" size={15} /> {words.showAgainLong}
            </button>
          )}
          {work.map((message) => (
            <WorkItem key={message.id} message={message} results={results} conversation={conversation} />
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
  conversation,
}: {
  readonly message: Message
  readonly results: readonly ResultMessage[]
  readonly conversation: Conversation
}): JSX.Element | null {
  if (message.role === 'toolResult') return null
  const name = conversation.found.value === message.id ? 'found' : ''
  if (message.role !== 'assistant')
    return (
      <p class={`as-written other ${name}`} id={`entry-${message.id}`}>
        {message.text}
      </p>
    )
  return (
    <div class={`round ${name}`} id={`entry-${message.id}`}>
      <AnswerBlocks id={message.id} blocks={message.blocks} isCut={message.cut === true} conversation={conversation} />
      {message.blocks.map((block) =>
        block.type === 'call' ? (
          <Call
            key={block.id}
            id={block.id}
            tool={block.tool}
            input={block.arguments}
            result={results.find((one) => one.callId === block.id)}
            conversation={conversation}
          />
        ) : null,
      )}
      <Ending message={message} />
    </div>
  )
}
