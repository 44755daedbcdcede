import type { ComponentChildren, JSX } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'

/**
 * What unfolds below a button: it closes when something in it was chosen, by Escape, and by a press elsewhere. Whether it
 * is open is known to the element alone, which a key pressed right behind the click finds open already.
 */
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
  const close = (): void => {
    if (element.current !== null) element.current.open = false
  }
  useLayoutEffect(() => {
    const onPress = (event: Event): void => {
      if (event.target instanceof Node && element.current?.contains(event.target) !== true) close()
    }
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== 'Escape' || element.current?.open !== true) return
      // An answer that is being written goes on: the menu was in front of it.
      event.stopPropagation()
      close()
      element.current.querySelector('summary')?.focus()
    }
    document.addEventListener('pointerdown', onPress)
    window.addEventListener('keydown', onKey, { capture: true })
    return () => {
      document.removeEventListener('pointerdown', onPress)
      window.removeEventListener('keydown', onKey, { capture: true })
    }
  }, [])
  return (
    <details class={name} ref={element}>
      <summary
        class={summaryClass}
        {...(label === undefined ? {} : { 'aria-label': label })}
        {...(isCurrent ? { 'aria-current': 'true' as const } : {})}
      >
        {summary}
      </summary>
      <div
        onClick={(event) => {
          if (event.target instanceof Element && event.target.closest('a, button') !== null) close()
        }}
      >
        {children}
      </div>
    </details>
  )
}
