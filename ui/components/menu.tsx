import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

/** What unfolds below a button: it closes when something in it was chosen, by Escape, and by a press elsewhere. */
export function Menu({
  label,
  summary,
  summaryClass = '',
  class: name,
  isCurrent = false,
  children,
}: {
  readonly label?: string
  readonly summary: ComponentChildren
  readonly summaryClass?: string
  readonly class: string
  readonly isCurrent?: boolean
  readonly children: ComponentChildren
}): JSX.Element {
  const element = useRef<HTMLDetailsElement>(null)
  const [isOpen, setIsOpen] = useState(false)
  useEffect(() => {
    if (!isOpen) return
    const onPress = (event: Event): void => {
      if (event.target instanceof Node && element.current?.contains(event.target) !== true) setIsOpen(false)
    }
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== 'Escape') return
      // An answer that is being written goes on: the menu was in front of it.
      event.stopPropagation()
      setIsOpen(false)
      element.current?.querySelector('summary')?.focus()
    }
    document.addEventListener('pointerdown', onPress)
    window.addEventListener('keydown', onKey, { capture: true })
    return () => {
      document.removeEventListener('pointerdown', onPress)
      window.removeEventListener('keydown', onKey, { capture: true })
    }
  }, [isOpen])
  return (
    <details class={name} ref={element} open={isOpen} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary
        class={summaryClass}
        {...(label === undefined ? {} : { 'aria-label': label })}
        {...(isCurrent ? { 'aria-current': 'true' as const } : {})}
      >
        {summary}
      </summary>
      <div
        onClick={(event) => {
          if (event.target instanceof Element && event.target.closest('a, button') !== null) setIsOpen(false)
        }}
      >
        {children}
      </div>
    </details>
  )
}
