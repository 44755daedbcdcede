import { signal } from '@preact/signals'
import { go, paths, route } from './router.ts'
import { shownSessions } from './sessions.ts'

export const menuOpen = signal(false)
export const helpOpen = signal(false)

type Step = (by: 1 | -1) => void

/** What `[` and `]` do on the page shown; the X-ray sets it. */
export const stepRequests: { current: Step | undefined } = { current: undefined }
/** What Escape does on the page shown; a conversation stops its answer. */
export const onEscape: { current: (() => void) | undefined } = { current: undefined }
/** What Ctrl F does on the page shown; a conversation finds words that are not in the page too. */
export const onFind: { current: (() => void) | undefined } = { current: undefined }

/**
 * A key that an input method takes, such as the Enter that ends a word of Chinese: it means nothing to the page. Safari
 * ends the composition before that key, and gives it this number.
 */
export function isOfInputMethod(event: KeyboardEvent): boolean {
  return event.isComposing || event.keyCode === 229
}

export function startKeys(): void {
  document.addEventListener('keydown', (event) => {
    if (isOfInputMethod(event)) return
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
      event.preventDefault()
      menuOpen.value = !menuOpen.value
      return
    }
    // Pressed again inside the page's own field it is the browser's.
    const isFinding = event.target instanceof Element && event.target.closest('.find-bar') !== null
    if ((event.ctrlKey || event.metaKey) && event.key === 'f' && onFind.current !== undefined && !isFinding) {
      event.preventDefault()
      onFind.current()
      return
    }
    if (event.key === 'Escape') {
      if (!isDialogOpen()) onEscape.current?.()
      return
    }
    if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey || isDialogOpen()) return
    act(event)
  })
}

function act(event: KeyboardEvent): void {
  switch (event.key) {
    case '?':
      helpOpen.value = true
      break
    case '/':
      event.preventDefault()
      go('/search')
      break
    case 'j':
      stepConversation(1)
      break
    case 'k':
      stepConversation(-1)
      break
    case '[':
      stepRequests.current?.(-1)
      break
    case ']':
      stepRequests.current?.(1)
      break
    default:
  }
}

/** The conversation that the keys of the list opened: they walk on, so its field does not take the focus. */
export const walkedTo: { current: string | undefined } = { current: undefined }

function stepConversation(by: 1 | -1): void {
  const rows = shownSessions.value
  const shown = route.value
  const key = 'key' in shown ? shown.key : undefined
  const at = rows.findIndex((row) => row.key === key)
  const next = rows[at === -1 ? 0 : at + by]
  if (next === undefined || next.key === key) return
  walkedTo.current = next.key
  go(paths.conversation(next.key))
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName))
  )
}

function isDialogOpen(): boolean {
  return document.querySelector('dialog[open]') !== null
}
