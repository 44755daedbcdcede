import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { ApiError } from '../lib/api.ts'
import { wordsOf } from '../lib/failures.ts'
import { feed } from '../lib/feed.ts'
import { go } from '../lib/router.ts'
import { texts } from '../lib/language.ts'
import { attempt } from '../lib/notice.ts'
import { Icon, type IconName } from './icons.tsx'

/** A link inside the page: the address changes without a load. */
export function Link({
  to,
  class: name,
  current,
  label,
  title,
  children,
}: {
  readonly to: string
  readonly class?: string
  readonly current?: boolean
  readonly label?: string
  readonly title?: string
  readonly children: ComponentChildren
}): JSX.Element {
  const open = (event: MouseEvent) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return
    event.preventDefault()
    go(to)
  }
  return (
    <a
      href={to}
      class={name}
      onClick={open}
      {...(current === true ? { 'aria-current': 'page' as const } : {})}
      {...(label === undefined ? {} : { 'aria-label': label })}
      {...(title === undefined ? {} : { title })}
    >
      {children}
    </a>
  )
}

export function IconButton({
  icon,
  label,
  onClick,
  class: name = '',
  disabled = false,
}: {
  readonly icon: IconName
  readonly label: string
  readonly onClick: () => void
  readonly class?: string
  readonly disabled?: boolean
}): JSX.Element {
  return (
    <button
      type="button"
      class={`button icon-only ${name}`}
      aria-label={label}
      title={label}
      onClick={onClick}
      disabled={disabled}
    >
      <Icon name={icon} />
    </button>
  )
}

/** Nothing for 150 ms, then grey bars where the content will be. */
export function Loading({ rows = 4 }: { readonly rows?: number }): JSX.Element | null {
  const [shown, setShown] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setShown(true), 150)
    return () => clearTimeout(timer)
  }, [])
  if (!shown) return null
  return (
    <div class="loading" role="status" aria-label={texts.value.state.loading}>
      {Array.from({ length: rows }, (_, at) => (
        <span key={at} class="bar" />
      ))}
    </div>
  )
}

/** Words that a list is narrowed down to. */
export function FilterField({
  label,
  value,
  onChange,
}: {
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
}): JSX.Element {
  return (
    <label class="field search">
      <Icon name="search" size={16} />
      <span class="hidden-text">{label}</span>
      <input type="search" placeholder={label} value={value} onInput={(event) => onChange(event.currentTarget.value)} />
    </label>
  )
}

export function Failure({ error, again }: { readonly error: unknown; readonly again?: () => void }): JSX.Element {
  const { message, code, hint } = wordsOf(error)
  return (
    <div class="failure" role="alert">
      <Icon name="warning" />
      <p>
        {message}
        {code !== undefined && <code>{code}</code>} {hint !== undefined && <span class="quiet">{hint}</span>}
      </p>
      {again !== undefined && (
        <button type="button" class="button" onClick={again}>
          {texts.value.state.again}
        </button>
      )}
    </div>
  )
}

export function Empty({
  children,
  action,
}: {
  readonly children: ComponentChildren
  readonly action?: ComponentChildren
}): JSX.Element {
  return (
    <div class="empty">
      <p>{children}</p>
      {action}
    </div>
  )
}

export function CopyButton({
  text,
  label,
  class: name = '',
}: {
  readonly text: () => string | Promise<string>
  readonly label?: string
  readonly class?: string
}): JSX.Element {
  const [done, setDone] = useState(false)
  const words = texts.value.state
  const copy = async () => {
    await copyText(await text())
    setDone(true)
    setTimeout(() => setDone(false), 1_500)
  }
  return (
    <button
      type="button"
      class={`button icon-only ${name}`}
      aria-label={label ?? words.copy}
      title={label ?? words.copy}
      onClick={() => attempt(copy)}
    >
      <Icon name={done ? 'check' : 'copy'} />
      <span class="hidden-text" role="status">
        {done ? words.copied : ''}
      </span>
    </button>
  )
}

/** Over plain HTTP from another machine a page has no clipboard of its own: there the browser copies a selection. */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard !== undefined)
    return navigator.clipboard.writeText(text).catch(() => {
      throw new Error(texts.value.state.notCopied)
    })
  const area = document.createElement('textarea')
  area.value = text
  ;(document.querySelector('dialog[open]') ?? document.body).append(area)
  area.select()
  const isCopied = document.execCommand('copy')
  area.remove()
  if (!isCopied) throw new Error(texts.value.state.notCopied)
}

/** A modal dialog: the browser keeps the focus inside and closes it on Escape. */
export function Dialog({
  title,
  onClose,
  children,
  class: name = '',
}: {
  readonly title: string
  readonly onClose: () => void
  readonly children: ComponentChildren
  readonly class?: string
}): JSX.Element {
  const element = useRef<HTMLDialogElement>(null)
  // Before the next key is pressed.
  useLayoutEffect(() => element.current?.showModal(), [])
  return (
    <dialog
      ref={element}
      class={`dialog ${name}`}
      aria-label={title}
      onClose={onClose}
      onClick={(event) => {
        if (event.target === element.current) element.current?.close()
      }}
    >
      <header>
        <h2>{title}</h2>
        <IconButton icon="cross" label={texts.value.state.close} onClick={() => element.current?.close()} />
      </header>
      {children}
    </dialog>
  )
}

export function Badge({
  kind,
  children,
}: {
  readonly kind: string
  readonly children: ComponentChildren
}): JSX.Element {
  return <span class={`badge ${kind}`}>{children}</span>
}

/** What a channel is called; most have the name of their protocol. */
export function channelName(channel: string): string {
  return channel === 'xiaoyi' ? texts.value.nav.xiaoyi : channel
}

export function ChannelBadge({ channel }: { readonly channel: string | undefined }): JSX.Element | null {
  if (channel === undefined || channel === '') return null
  const kind = channel === 'xiaoyi' ? 'summary' : channel === 'webhook' ? 'user' : 'system'
  return <Badge kind={kind}>{channelName(channel)}</Badge>
}

/** Fixed rows, only those in sight are in the page. */
export function VirtualList<T>({
  items,
  rowHeight,
  render,
  keyOf,
  onEnd,
  chosen,
  label,
}: {
  readonly items: readonly T[]
  readonly rowHeight: number
  readonly render: (item: T) => JSX.Element
  readonly keyOf: (item: T) => string
  readonly onEnd?: () => void
  /** The key of the item that has to be in sight when it is chosen; afterwards the reader scrolls. */
  readonly chosen: string | undefined
  readonly label: string
}): JSX.Element {
  const box = useRef<HTMLDivElement>(null)
  const [range, setRange] = useState({ top: 0, height: 800 })
  const look = () => {
    const element = box.current
    if (element === null) return
    setRange({ top: element.scrollTop, height: element.clientHeight })
    if (element.scrollTop + element.clientHeight > element.scrollHeight - 10 * rowHeight) onEnd?.()
  }
  useEffect(() => {
    look()
    const observer = new ResizeObserver(look)
    if (box.current !== null) observer.observe(box.current)
    return () => observer.disconnect()
  }, [])
  const place = chosen === undefined ? -1 : items.findIndex((item) => keyOf(item) === chosen)
  useLayoutEffect(() => {
    const element = box.current
    if (element === null || place === -1) return
    const top = place * rowHeight
    if (top < element.scrollTop) element.scrollTop = top
    else if (top + rowHeight > element.scrollTop + element.clientHeight)
      element.scrollTop = top + rowHeight - element.clientHeight
  }, [chosen, place === -1])
  // The end may have been in sight before there was more to load.
  useEffect(look, [items])
  const first = Math.max(0, Math.floor(range.top / rowHeight) - 6)
  const last = Math.min(items.length, Math.ceil((range.top + range.height) / rowHeight) + 6)
  return (
    <div class="virtual" ref={box} onScroll={look} tabIndex={-1}>
      <ul aria-label={label} style={{ height: `${items.length * rowHeight}px` }}>
        {items.slice(first, last).map((item, at) => (
          <li
            key={keyOf(item)}
            aria-setsize={items.length}
            aria-posinset={first + at + 1}
            style={{ transform: `translateY(${(first + at) * rowHeight}px)`, height: `${rowHeight}px` }}
          >
            {render(item)}
          </li>
        ))}
      </ul>
    </div>
  )
}

/** Loads something when what it depends on changes; a newer load makes an older one void. */
export function useLoaded<T>(
  load: (signal: AbortSignal) => Promise<T>,
  inputs: readonly unknown[],
): {
  readonly value: T | undefined
  readonly error: unknown
  readonly again: () => void
} {
  const [state, setState] = useState<{ value?: T; error?: unknown }>({})
  const [round, setRound] = useState(0)
  useEffect(() => {
    const abort = new AbortController()
    load(abort.signal).then(
      (value) => {
        if (!abort.signal.aborted) setState({ value })
      },
      (error: unknown) => {
        if (!abort.signal.aborted) setState((before) => ({ ...before, error }))
      },
    )
    return () => abort.abort()
  }, [...inputs, round])
  // What failed for want of a connection is asked for again when there is one.
  const isOffline = state.error instanceof ApiError && state.error.code === 'OFFLINE'
  const isOpen = feed.state.value === 'open'
  useEffect(() => {
    if (isOffline && isOpen) setRound(round + 1)
  }, [isOffline, isOpen])
  return { value: state.value, error: state.error, again: () => setRound(round + 1) }
}
