import type { JSX } from 'preact'
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { api, sessionPath } from '../lib/api.ts'
import { Attachments } from '../lib/attachments.ts'
import { feed } from '../lib/feed.ts'
import { keep, kept } from '../lib/kept.ts'
import { isOfInputMethod, onEscape, walkedTo } from '../lib/keys.ts'
import { texts } from '../lib/language.ts'
import { attempt } from '../lib/notice.ts'
import { send } from '../lib/sender.ts'
import { AttachedFiles } from './attached-files.tsx'
import { IconButton } from './basics.tsx'
import { Icon } from './icons.tsx'

const COMMANDS = ['help', 'status', 'new', 'stop', 'model', 'compact', 'cleanup', 'restore'] as const

/** Where a message is written, and files are dropped. The draft outlives a reload; commands are offered after a slash. */
export function Composer({
  sessionKey,
  isRunning,
}: {
  readonly sessionKey: string
  readonly isRunning: boolean
}): JSX.Element {
  const words = texts.value.conversation
  const draftName = `draft.${sessionKey}`
  const [text, setText] = useState(kept(draftName) ?? '')
  const [isDropping, setIsDropping] = useState(false)
  const [offer, setOffer] = useState(0)
  const attachments = useMemo(() => new Attachments(sessionKey), [sessionKey])
  const box = useRef<HTMLTextAreaElement>(null)
  const chooser = useRef<HTMLInputElement>(null)
  // Before anything is drawn: what is typed at once goes into the field.
  useLayoutEffect(() => {
    setText(kept(draftName) ?? '')
    // On a phone the focus would open the keyboard over what is to be read.
    if (walkedTo.current !== sessionKey && !matchMedia('(pointer: coarse)').matches)
      box.current?.focus({ preventScroll: true })
    walkedTo.current = undefined
  }, [sessionKey])
  useEffect(() => fit(box.current), [text])
  useEffect(
    () =>
      feed.state.subscribe((state) => {
        if (state === 'open') attachments.tryAgain()
      }),
    [attachments],
  )
  useLayoutEffect(() => {
    onEscape.current = isRunning ? () => stop(sessionKey) : undefined
    return () => (onEscape.current = undefined)
  }, [isRunning, sessionKey])
  const write = (value: string) => {
    setText(value)
    setOffer(0)
    keep(draftName, value)
  }
  const canSend = !attachments.isBusy && (text.trim() !== '' || attachments.files.value.length > 0)
  const take = (event: Event, data: DataTransfer | null) => {
    const files = [...(data?.files ?? [])]
    if (files.length === 0) return
    event.preventDefault()
    attachments.add(files)
  }
  const submit = () => {
    if (!canSend) return
    send(sessionKey, text, attachments.take())
    write('')
  }
  const offered = /^\/[a-z]*$/iu.test(text)
    ? COMMANDS.filter((name) => name.startsWith(text.slice(1).toLowerCase()))
    : []
  const place = Math.min(offer, offered.length - 1)
  const complete = (name: string) => {
    write(`/${name} `)
    box.current?.focus()
  }
  /** Keys for the commands that are offered; true when one was meant for them. */
  const chooses = ({ key, shiftKey }: KeyboardEvent): boolean => {
    const name = offered[place]
    if (name === undefined) return false
    if (key === 'ArrowDown' || key === 'ArrowUp') {
      setOffer((place + (key === 'ArrowDown' ? 1 : offered.length - 1)) % offered.length)
      return true
    }
    // What is a whole command already is sent.
    if (shiftKey || (key !== 'Tab' && (key !== 'Enter' || text === `/${name}`))) return false
    complete(name)
    return true
  }
  return (
    <form
      class={`composer ${isDropping ? 'dropping' : ''}`}
      onDragOver={(event) => {
        if (event.dataTransfer?.types.includes('Files') !== true) return
        event.preventDefault()
        setIsDropping(true)
      }}
      onDragLeave={() => setIsDropping(false)}
      onDrop={(event) => {
        setIsDropping(false)
        take(event, event.dataTransfer)
      }}
      onPaste={(event) => take(event, event.clipboardData)}
      onSubmit={(event) => {
        event.preventDefault()
        submit()
      }}
    >
      {offered.length > 0 && (
        <ul class="offers" id="offers" aria-label={words.commands}>
          {offered.map((name, at) => (
            <li key={name}>
              <button
                type="button"
                id={`offer-${name}`}
                class={at === place ? 'is-chosen' : ''}
                onClick={() => complete(name)}
              >
                <code>/{name}</code> {texts.value.commands[name]}
              </button>
            </li>
          ))}
        </ul>
      )}
      <AttachedFiles attachments={attachments} />
      <textarea
        ref={box}
        rows={1}
        aria-label={words.message}
        aria-controls={offered.length > 0 ? 'offers' : undefined}
        aria-activedescendant={offered.length > 0 ? `offer-${offered[place] ?? ''}` : undefined}
        placeholder={words.write}
        value={text}
        onInput={(event) => write(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (isOfInputMethod(event)) return
          const isChoosing = chooses(event)
          if (!isChoosing && (event.key !== 'Enter' || event.shiftKey)) return
          event.preventDefault()
          if (!isChoosing) submit()
        }}
      />
      <div class="composer-foot">
        <input
          ref={chooser}
          type="file"
          multiple
          hidden
          onChange={(event) => {
            attachments.add(event.currentTarget.files ?? [])
            event.currentTarget.value = ''
          }}
        />
        <IconButton icon="clip" label={words.attach} class="plain" onClick={() => chooser.current?.click()} />
        <p class="hints">
          <kbd>Enter</kbd> {words.enter} <kbd>Shift Enter</kbd> {words.shiftEnter} <kbd>Esc</kbd> {words.escape}
        </p>
        {isRunning && (
          <button type="button" class="button" onClick={() => stop(sessionKey)}>
            <span class="stop-sign" aria-hidden="true" /> {words.stop}
          </button>
        )}
        <button
          type="submit"
          class="button primary icon-only"
          aria-label={words.send}
          title={words.send}
          disabled={!canSend}
        >
          <Icon name="up" />
        </button>
      </div>
    </form>
  )
}

function stop(key: string): void {
  attempt(() => api.post(sessionPath(key, '/cancel')))
}

function fit(box: HTMLTextAreaElement | null): void {
  if (box === null) return
  box.style.height = 'auto'
  box.style.height = `${Math.min(box.scrollHeight, 220)}px`
}
