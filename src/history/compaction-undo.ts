import type { CompactionEntry, Entry, EntryDraft } from '../core/entry.ts'
import type { EntryId, RunId } from '../core/ids.ts'
import { estimateMessageTokens } from '../core/tokens.ts'
import { compactionsInForce, undoDetails, type UndoDetails } from './compaction-records.ts'
import { TAKEN_BACK_SUMMARY } from './texts.ts'
import { activeEntries, viewOf } from './view.ts'

export interface CompactionUndo {
  readonly draft: EntryDraft
  readonly tokensBefore: number
  readonly tokensAfter: number
}

/**
 * Takes the latest compaction of a whole path back; undefined when none is in force. It is itself a compaction, one that
 * keeps everything the other had replaced, behind the summary that was in force before: so every reader of the file
 * sees what it saw then, and the next undo goes one further back.
 */
export function planCompactionUndo(path: readonly Entry[], run?: RunId): CompactionUndo | undefined {
  const [undone, former] = compactionsInForce(path).toReversed()
  if (undone === undefined) return undefined
  const details: UndoDetails = {
    undoes: undone.id,
    ...(former === undefined ? {} : { reinstates: former.id }),
    ...(run === undefined ? {} : { run }),
  }
  const tokensBefore = tokensInView(path)
  const draft = {
    type: 'compaction',
    summary: former?.summary ?? TAKEN_BACK_SUMMARY,
    firstKeptEntryId: firstInViewOf(path, former),
    tokensBefore,
    details,
    ...(former?.systemMessage === undefined ? {} : { systemMessage: former.systemMessage }),
  } as const satisfies EntryDraft
  const entry = { ...draft, id: 'undo' as EntryId, parentId: null, timestamp: undone.timestamp }
  return { draft, tokensBefore, tokensAfter: tokensInView([...path, entry]) }
}

/** The undo that this command has already done, before a crash made it come again. */
export function compactionUndoneBy(path: readonly Entry[], run: RunId): CompactionEntry | undefined {
  return path.findLast(
    (entry): entry is CompactionEntry => entry.type === 'compaction' && undoDetails(entry)?.run === run,
  )
}

/** Where the view began while this compaction was the last one; the root, when there was none. */
function firstInViewOf(path: readonly Entry[], compaction: CompactionEntry | undefined): EntryId {
  const then = compaction === undefined ? path : activeEntries(path.slice(0, path.indexOf(compaction) + 1))
  const [first] = then
  if (first === undefined) throw new RangeError('a path with a compaction has entries')
  return first.id
}

/** Of what the model sees of this path, without what a provider's rules change. */
export function tokensInView(path: readonly Entry[]): number {
  return viewOf(activeEntries(path)).items.reduce((sum, { message }) => sum + estimateMessageTokens(message), 0)
}
