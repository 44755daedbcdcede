import type { JSX } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { Conversation } from '../lib/conversation.ts'
import { entriesWith, highlightWords } from '../lib/find-in-thread.ts'
import { count } from '../lib/format.ts'
import { isOfInputMethod } from '../lib/keys.ts'
import { texts } from '../lib/language.ts'
import type { ThreadView } from './thread.tsx'
import { IconButton } from './basics.tsx'

/** After a page of earlier messages could not be loaded. */
const TRY_AGAIN_MS = 2_000

/**
 * Finds words in the whole conversation, also in what is folded, scrolled away or not loaded yet: the browser's own
 * search sees only what is in the page. Begins with the newest place.
 */
export function FindBar({
  conversation,
  view,
  onClose,
}: {
  readonly conversation: Conversation
  readonly view: ThreadView
  readonly onClose: () => void
}): JSX.Element {
  const words = texts.value.find
  const [text, setText] = useState('')
  const [failures, setFailures] = useState(0)
  const field = useRef<HTMLInputElement>(null)
  const messages = conversation.messages.value
  const found = useMemo(() => entriesWith(messages, text), [messages, text])
  const current = conversation.found.value
  const at = current === undefined ? -1 : found.indexOf(current)
  const isSearching = text.trim() !== '' && conversation.older.value !== undefined
  // Before the next key is pressed.
  useLayoutEffect(() => field.current?.focus(), [])
  // Before the next key too: a step that is taken at once must not be undone by them.
  useLayoutEffect(() => {
    conversation.found.value = found.at(-1)
  }, [text])
  useLayoutEffect(() => {
    if (at === -1 && found.length > 0) conversation.found.value = found.at(-1)
  }, [found])
  useEffect(() => {
    if (!isSearching) return
    let later: ReturnType<typeof setTimeout> | undefined
    conversation.loadOlder().catch(() => (later = setTimeout(() => setFailures(failures + 1), TRY_AGAIN_MS)))
    return () => clearTimeout(later)
  }, [isSearching, messages, failures])
  // What is in the page follows the reader: its words are marked again with it.
  void view.version.value
  useEffect(() => {
    const frame = requestAnimationFrame(() =>
      highlightWords(current === undefined ? null : document.getElementById(`entry-${current}`), text),
    )
    return () => cancelAnimationFrame(frame)
  })
  useEffect(
    () => () => {
      highlightWords(null, '')
      conversation.found.value = undefined
    },
    [],
  )
  const step = (by: 1 | -1) => {
    if (found.length === 0) return
    conversation.found.value = found[(at + by + found.length) % found.length]
  }
  const result = found.length === 0 ? words.none : words.place(count(found.length - at), count(found.length))
  return (
    <search class="find-bar">
      <label>
        <span class="hidden-text">{words.label}</span>
        <input
          ref={field}
          type="text"
          placeholder={words.label}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (isOfInputMethod(event)) return
            if (event.key === 'Escape') onClose()
            else if (event.key === 'Enter') step(event.shiftKey ? 1 : -1)
            else return
            event.preventDefault()
            event.stopPropagation()
          }}
        />
      </label>
      <span class="quiet" role="status">
        {text.trim() === '' ? '' : `${result}${isSearching ? ` ${words.searching}` : ''}`}
      </span>
      <IconButton icon="up" label={words.earlier} onClick={() => step(-1)} disabled={found.length === 0} />
      <IconButton icon="down" label={words.later} onClick={() => step(1)} disabled={found.length === 0} />
      <IconButton icon="cross" label={texts.value.state.close} onClick={onClose} />
    </search>
  )
}
