import type { CompactionEntry, Entry, EntryDraft } from '../core/entry.ts'
import type { EntryId, RunId } from '../core/ids.ts'
import { compactionsInForce, undoDetails, type UndoDetails } from './view-records.ts'
import { TAKEN_BACK_SUMMARY } from './texts.ts'
import { activeEntries } from './view.ts'
import { estimateMessages, tokensInView, type CountMessages } from './view-tokens.ts'

export interface CompactionUndo {
  readonly draft: EntryDraft
  readonly tokensBefore: number
  readonly tokensAfter: number
  readonly estimated: boolean
}

/**
 * Takes the latest compaction of a whole path back; undefined when none is in force. It is itself a compaction, one that
 * keeps everything the other had replaced, behind the summary that was in force before: so every reader of the file
 * sees what it saw then, and the next undo goes one further back.
 */
export function planCompactionUndo(
  path: readonly Entry[],
  { run, count = estimateMessages }: { readonly run?: RunId; readonly count?: CountMessages } = {},
): CompactionUndo | undefined {
  const [undone, former] = compactionsInForce(path).toReversed()
  if (undone === undefined) return undefined
  const details: UndoDetails = {
    undoes: undone.id,
    ...(former === undefined ? {} : { reinstates: former.id }),
    ...(run === undefined ? {} : { run }),
  }
  const before = tokensInView(path, count)
  const draft = {
    type: 'compaction',
    summary: former?.summary ?? TAKEN_BACK_SUMMARY,
    firstKeptEntryId: firstInViewOf(path, former),
    tokensBefore: before.count,
    details,
    ...(former?.systemMessage === undefined ? {} : { systemMessage: former.systemMessage }),
  } as const satisfies EntryDraft
  const entry = { ...draft, id: 'undo' as EntryId, parentId: null, timestamp: undone.timestamp }
  const after = tokensInView([...path, entry], count)
  const estimated = before.estimated || after.estimated
  return { draft, tokensBefore: before.count, tokensAfter: after.count, estimated }
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
