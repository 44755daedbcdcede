import type { ComponentChildren, JSX, RefObject } from 'preact'
import { useMemo, useRef, useState } from 'preact/hooks'
import type { Conversation } from '../lib/conversation.ts'
import { count } from '../lib/format.ts'
import { texts } from '../lib/language.ts'
import type { NotSent, RequestDetail } from '../lib/types.ts'
import { useVirtualRows } from '../lib/virtual-rows.ts'
import { VirtualView } from '../lib/virtual-view.ts'
import { hiddenId, kindOf, kindOfRole, linesOf, type TableRow, type XrayLine } from '../lib/xray-rows.ts'
import { Badge } from './basics.tsx'
import { CacheLine } from './cache-line.tsx'
import { GhostGroup } from './ghost-group.tsx'

const ROW_PX = 34
const CACHE_LINE_PX = 26
const COLUMNS = 5

interface Choice {
  readonly chosen: string | undefined
  readonly onChoose: (id: string) => void
}

/** What one request held, in order, and what was left out where it would have stood. Only what is near is in the page. */
export function MessageTable({
  detail,
  rows,
  conversation,
  scroller,
  ...choice
}: Choice & {
  readonly detail: RequestDetail
  readonly rows: readonly TableRow[]
  readonly conversation: Conversation
  readonly scroller: RefObject<HTMLElement | null>
}): JSX.Element {
  const words = texts.value.xray
  const most = useMemo(() => rows.reduce((max, row) => Math.max(max, row.kind === 'ghost' ? 0 : row.tokens), 1), [rows])
  const [unfolded, setUnfolded] = useState<ReadonlySet<string>>(new Set())
  const lines = useMemo(() => linesOf(rows, detail.n, unfolded), [rows, detail.n, unfolded])
  const body = useRef<HTMLTableSectionElement>(null)
  const view = useMemo(
    () => new VirtualView<XrayLine>(({ kind }) => (kind === 'cache' ? CACHE_LINE_PX : ROW_PX), 'at its top'),
    [],
  )
  const shown = useVirtualRows(view, lines, scroller, body)
  const fold = (id: string) => {
    const next = new Set(unfolded)
    if (!next.delete(id)) next.add(id)
    setUnfolded(next)
  }
  return (
    <section class="panel table-panel" aria-label={words.what}>
      <table class="messages" aria-rowcount={lines.length + 1}>
        <colgroup>
          <col span={3} />
          <col class="bar-column" />
          <col />
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            <th scope="col">
              <span class="hidden-text">{words.against(detail.n - 1)}</span>
            </th>
            <th scope="col">{words.who}</th>
            <th scope="col" colSpan={2}>
              {words.what}
              {detail.n > 1 && (
                <span class="key">
                  <b>=</b> {words.sameAs(detail.n - 1)} <b class="good">+</b> {words.fresh}
                </span>
              )}
            </th>
            <th scope="col" class="number">
              {words.tokens}
            </th>
          </tr>
        </thead>
        <tbody ref={body}>
          {shown.map(({ at, gap }) => {
            const line = lines[at]
            if (line === undefined) return null
            return (
              <>
                {gap > 0 && <Gap key={`gap ${line.key}`} px={gap} />}
                <Line key={line.key} line={line} rowIndex={at + 2} {...choice}>
                  {line.kind === 'ghost' && (
                    <GhostGroup
                      row={line.row}
                      most={most}
                      conversation={conversation}
                      isOpen={unfolded.has(line.key)}
                      onFold={() => fold(line.key)}
                    />
                  )}
                  {line.kind === 'sent' && <SentCells row={line.row} most={most} {...choice} />}
                  {line.kind === 'left out' && <LeftOutCells one={line.one} {...choice} />}
                  {line.kind === 'cache' && <CacheLine before={detail.n - 1} columns={COLUMNS} />}
                </Line>
              </>
            )
          })}
          {view.spaceAfter > 0 && <Gap key="rest" px={view.spaceAfter} />}
        </tbody>
      </table>
    </section>
  )
}

/** The place of rows that are not in the page. */
function Gap({ px }: { readonly px: number }): JSX.Element {
  return (
    <tr class="gap" aria-hidden="true">
      <td colSpan={COLUMNS} style={{ height: `${px}px` }} />
    </tr>
  )
}

const CLASSES = { sent: 'sent', ghost: 'ghost', 'left out': 'sent left-out', cache: 'cache-line' } as const

function Line({
  line,
  rowIndex,
  chosen,
  onChoose,
  children,
}: Choice & {
  readonly line: XrayLine
  readonly rowIndex: number
  readonly children: ComponentChildren
}): JSX.Element {
  const canBeChosen = line.kind === 'sent' || line.kind === 'left out'
  return (
    <tr
      class={`${CLASSES[line.kind]} ${line.key === chosen ? 'chosen' : ''}`}
      data-row={line.key}
      aria-rowindex={rowIndex}
      {...(canBeChosen ? { onClick: () => onChoose(line.key) } : {})}
    >
      {children}
    </tr>
  )
}

function SentCells({ row, most, chosen, onChoose }: Choice & { readonly row: TableRow; readonly most: number }) {
  const words = texts.value.xray
  const sign = row.state === 'same' ? '=' : row.state === 'changed' ? '~' : '+'
  return (
    <>
      <td class={`sign ${row.state}`}>
        <span aria-hidden="true">{sign}</span>
        <span class="hidden-text">{words.states[row.state]}</span>
      </td>
      <td>
        <Badge kind={row.kind}>{row.tool ?? words.whoNames[kindOf(row)]}</Badge>
      </td>
      <td class="text">
        <ChooseButton id={row.id} chosen={chosen} onChoose={onChoose}>
          {row.text === '' ? '…' : row.text.slice(0, 200)}
        </ChooseButton>
      </td>
      <td class="bar-cell" aria-hidden="true">
        <span class={`token-bar ${row.kind}`} style={{ width: `${Math.max(2, (row.tokens / most) * 100)}%` }} />
      </td>
      <td class="number">{count(row.tokens)}</td>
    </>
  )
}

function ChooseButton({
  id,
  chosen,
  onChoose,
  children,
}: Choice & { readonly id: string; readonly children: ComponentChildren }): JSX.Element {
  return (
    <button type="button" class="plain-button" aria-pressed={id === chosen} onClick={() => onChoose(id)}>
      {children}
    </button>
  )
}

/** One message of a group that was left out. */
function LeftOutCells({ one, chosen, onChoose }: Choice & { readonly one: NotSent }): JSX.Element {
  const kind = kindOfRole(one.role)
  return (
    <>
      <td />
      <td>
        <Badge kind={kind}>{one.tool ?? texts.value.xray.whoNames[kind]}</Badge>
      </td>
      <td class="text" colSpan={2}>
        <ChooseButton id={hiddenId(one)} chosen={chosen} onChoose={onChoose}>
          <code>{one.entry}</code> {one.reason}
        </ChooseButton>
      </td>
      <td class="number">{count(one.tokens)}</td>
    </>
  )
}
