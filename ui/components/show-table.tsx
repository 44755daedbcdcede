import type { ComponentChildren, JSX } from 'preact'
import { useState } from 'preact/hooks'
import { texts } from '../lib/language.ts'

/** The numbers of a chart as a table, made only when they are asked for. */
export function ShowTable({
  label,
  children,
}: {
  readonly label: string
  readonly children: () => ComponentChildren
}): JSX.Element {
  const [isOpen, setIsOpen] = useState(false)
  return (
    <details onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>{texts.value.state.showTable}</summary>
      {isOpen && (
        <div class="table-scroll" tabIndex={0} role="region" aria-label={label}>
          {children()}
        </div>
      )}
    </details>
  )
}
