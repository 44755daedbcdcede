import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { Conversation } from '../lib/conversation.ts'
import { count } from '../lib/format.ts'
import { texts } from '../lib/language.ts'
import { notify } from '../lib/notice.ts'
import type { TableRow } from '../lib/xray-rows.ts'
import { Failure } from './basics.tsx'
import { Icon } from './icons.tsx'

/** Messages that were left out together, where they would have stood, with what brings them back. */
export function GhostGroup({
  row,
  most,
  conversation,
  isOpen,
  onFold,
}: {
  readonly row: TableRow
  /** Tokens of the longest bar; a longer one ends torn. */
  readonly most: number
  readonly conversation: Conversation
  readonly isOpen: boolean
  readonly onFold: () => void
}): JSX.Element {
  const words = texts.value.xray
  const [error, setError] = useState<unknown>(undefined)
  const isSummary = row.by === 'compaction'
  const restore = async () => {
    try {
      if (row.cleanup !== undefined) await conversation.restoreCleanup(row.cleanup)
      else await conversation.undoCompaction()
      notify(words.restored)
    } catch (thrown) {
      setError(thrown)
    }
  }
  const isActive = row.cleanup !== undefined && conversation.cleanups.value.some((one) => one.id === row.cleanup)
  const canUndo = isActive || (isSummary && conversation.compactions.value.length > 0)
  return (
    <>
      <td class="sign">
        <Icon name="scissors" size={15} />
      </td>
      <td colSpan={2} class="text">
        <div class="ghost-line">
          <span>
            <strong>{words.hidden(row.entries.length)}</strong>{' '}
            {row.cleanup === undefined ? words.otherLeftOut(words.reason(row.reason ?? '')) : words.hiddenWhy}
          </span>
          <span class="ghost-tools">
            <button type="button" class="button small" aria-expanded={isOpen} onClick={onFold}>
              {isOpen ? words.hide : words.look}
            </button>
            {canUndo && (
              <button type="button" class="button small outlined" onClick={() => void restore()}>
                <Icon name="undo" size={14} /> {isSummary ? texts.value.thread.undoSummary : words.showAgain}
              </button>
            )}
          </span>
        </div>
        {error !== undefined && <Failure error={error} />}
      </td>
      <td class="bar-cell" aria-hidden="true">
        <span
          class={`token-bar ghost ${row.tokens > most ? 'torn' : ''}`}
          style={{ width: `${Math.min(100, Math.max(2, (row.tokens / most) * 100))}%` }}
        />
      </td>
      <td class="number">{count(row.tokens)}</td>
    </>
  )
}
