import type { JSX } from 'preact'
import { shortArguments, type Conversation } from '../lib/conversation.ts'
import { duration } from '../lib/format.ts'
import { texts } from '../lib/language.ts'
import type { ResultMessage } from '../lib/types.ts'
import { Icon, toolIcon } from './icons.tsx'
import { MessageText, Pictures } from './message-text.tsx'
import { useRowState } from './row-state.tsx'

/** One call of a tool: its arguments and its result, folded to a line. */
export function Call({
  id,
  tool,
  input,
  result,
  conversation,
}: {
  readonly id: string
  readonly tool: string
  readonly input: unknown
  readonly result: ResultMessage | undefined
  readonly conversation: Conversation
}): JSX.Element {
  const words = texts.value.thread
  const isFound = result !== undefined && conversation.found.value === result.id
  const [chosen, setChosen] = useRowState<boolean | undefined>(conversation, `call ${id}`, undefined)
  const isOpen = chosen ?? isFound
  return (
    <details
      class={`call ${isFound ? 'found' : ''}`}
      {...(result === undefined ? {} : { id: `entry-${result.id}` })}
      open={isOpen}
      onToggle={(event) => {
        if (event.currentTarget.open !== isOpen) setChosen(event.currentTarget.open)
      }}
    >
      <summary>
        <Icon name={toolIcon(tool)} size={16} />
        <strong>{tool}</strong>
        <code>{shortArguments(input)}</code>
        <span class="measure">{measureOf(result)}</span>
        {result !== undefined && (
          <span class={result.failed ? 'bad' : 'good'}>
            <Icon name={result.failed ? 'cross' : 'check'} size={16} />
            <span class="hidden-text">{result.failed ? words.failed : words.ok}</span>
          </span>
        )}
      </summary>
      {isOpen && (
        <>
          <p class="small-title">{words.arguments}</p>
          <pre class="code" tabIndex={0}>
            {JSON.stringify(input, null, 2)}
          </pre>
          {result !== undefined && (
            <>
              <p class="small-title">{words.result}</p>
              <MessageText message={result} conversation={conversation}>
                {(text) => (
                  <pre class="code" tabIndex={0}>
                    {text}
                  </pre>
                )}
              </MessageText>
              <Pictures message={result} conversation={conversation} />
            </>
          )}
        </>
      )}
    </details>
  )
}

function measureOf(result: ResultMessage | undefined): string {
  const words = texts.value.thread
  if (result === undefined) return words.running
  return result.durationMs === undefined ? words.tokens(result.tokens) : duration(result.durationMs)
}
