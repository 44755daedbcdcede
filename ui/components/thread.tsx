import type { ComponentChildren, JSX, RefObject } from 'preact'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { Conversation } from '../lib/conversation.ts'
import { outgoing } from '../lib/sender.ts'
import { estimateHeight, rowWithEntry, threadRows, type ThreadRow } from '../lib/thread-rows.ts'
import { useVirtualRows } from '../lib/virtual-rows.ts'
import { VirtualView } from '../lib/virtual-view.ts'
import { Answer, Instruction } from './answer.tsx'
import { OutgoingMessage } from './live-answer.tsx'
import { Rounds } from './rounds.tsx'

/** The thread of one conversation, of which only what is near the reader is in the page. */
export type ThreadView = VirtualView<ThreadRow>

export function useThreadView(conversation: Conversation): ThreadView {
  return useMemo(() => new VirtualView<ThreadRow>(estimateHeight), [conversation])
}

/** The conversation as one line with knots: what was asked, what was done, what was answered. */
export function Thread({
  conversation,
  view,
  scroller,
}: {
  readonly conversation: Conversation
  readonly view: ThreadView
  readonly scroller: RefObject<HTMLElement | null>
}): JSX.Element {
  const list = useRef<HTMLOListElement>(null)
  const steps = conversation.steps.value
  const live = conversation.live.value
  const sent = outgoing.value
  const rows = useMemo(
    () =>
      threadRows(
        steps,
        [...live.values()],
        sent.filter((message) => message.key === conversation.key),
      ),
    [steps, live, sent],
  )
  const shown = useVirtualRows(view, rows, scroller, list)
  useShowFound(conversation, view, rows)
  return (
    <ol class="thread" ref={list} style={{ paddingBottom: `${view.spaceAfter}px` }}>
      {shown.map(({ at, gap }) => {
        const row = rows[at]
        return row === undefined ? null : (
          <Knot key={row.key} row={row} conversation={conversation} at={at} of={rows.length} gap={gap}>
            <RowContent row={row} conversation={conversation} />
          </Knot>
        )
      })}
    </ol>
  )
}

/** Brings the entry that is looked for into sight, once it is loaded. */
function useShowFound(conversation: Conversation, view: ThreadView, rows: readonly ThreadRow[]): void {
  const entry = conversation.found.value
  const shownEntry = useRef<string | undefined>(undefined)
  const row = entry === undefined ? undefined : rowWithEntry(rows, entry)
  useEffect(() => {
    if (entry === undefined || row === undefined || shownEntry.current === entry) return
    shownEntry.current = entry
    view.jumpTo(row.key)
    // Its row may be longer than the window: the entry itself has to be seen.
    const frame = requestAnimationFrame(() =>
      document.getElementById(`entry-${entry}`)?.scrollIntoView({ block: 'center' }),
    )
    return () => cancelAnimationFrame(frame)
  }, [entry, row === undefined])
  useEffect(() => {
    if (entry === undefined) shownEntry.current = undefined
  }, [entry])
}

function Knot({
  row,
  conversation,
  at,
  of,
  gap,
  children,
}: {
  readonly row: ThreadRow
  readonly conversation: Conversation
  readonly at: number
  readonly of: number
  readonly gap: number
  readonly children: ComponentChildren
}): JSX.Element {
  const entry = row.kind === 'instruction' || row.kind === 'answer' ? row.message.id : undefined
  const isFound = entry !== undefined && conversation.found.value === entry
  return (
    <li
      class={`${classOf(row)} ${at === 0 ? 'first' : ''} ${isFound ? 'found' : ''}`}
      data-row={row.key}
      aria-setsize={of}
      aria-posinset={at + 1}
      {...(entry === undefined ? {} : { id: `entry-${entry}` })}
      {...(gap > 0 ? { style: { marginTop: `${gap}px` } } : {})}
    >
      {children}
    </li>
  )
}

function classOf(row: ThreadRow): string {
  switch (row.kind) {
    case 'instruction':
    case 'outgoing':
      return 'knot open'
    case 'answer':
      return 'knot closed'
    case 'live':
      return 'knot live'
    case 'rounds':
      return row.work.every((message) => message.hidden === true) ? 'rounds stitched' : 'rounds'
  }
}

function RowContent({
  row,
  conversation,
}: {
  readonly row: ThreadRow
  readonly conversation: Conversation
}): JSX.Element {
  switch (row.kind) {
    case 'instruction':
      return <Instruction message={row.message} conversation={conversation} />
    case 'answer':
      return <Answer message={row.message} conversation={conversation} />
    case 'rounds':
      return <Rounds step={row.step} work={row.work} conversation={conversation} isLive={row.isLive} />
    case 'live':
      return <Answer turn={row.turn} conversation={conversation} />
    case 'outgoing':
      return <OutgoingMessage message={row.message} />
  }
}
