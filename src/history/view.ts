import { assertNever } from '../base/assert-never.ts'
import type { CompactionEntry, ContextEditEntry, Entry } from '../core/entry.ts'
import type { EntryId } from '../core/ids.ts'
import { wellFormed } from '../base/text.ts'
import type { Message } from '../core/message.ts'
import { soundMessage } from '../core/sound-message.ts'
import { activeCleanups, latestCompaction, latestCompactionAt, undoDetails } from './view-records.ts'
import type { Change, Item } from './item.ts'
import { normalizeMessage, type Normalized } from './normalize-message.ts'
import type { Reason } from './reasons.ts'
import { compactionSummaryText } from './texts.ts'

export interface View {
  readonly items: readonly Item[]
  readonly changes: readonly Change[]
}

/**
 * The part of a path that can matter to the model: from the first kept entry of the last compaction on. Given a whole
 * path or that part alone, everything after gives the same history.
 */
export function activeEntries(entries: readonly Entry[]): readonly Entry[] {
  const at = latestCompactionAt(entries)
  const compaction = entries[at]
  if (compaction?.type !== 'compaction') return entries
  const kept = entries.findIndex((entry) => entry.id === compaction.firstKeptEntryId)
  // The first kept entry may be lost; then what follows the summary is kept.
  const start = kept >= 0 && kept < at ? kept : at
  return start === 0 ? entries : entries.slice(start)
}

/** What entries say about others: which are hidden, which are replaced, and what stands for those that are gone. */
export interface Statements {
  readonly cleanups: ReadonlyMap<EntryId, { readonly id: EntryId; readonly note: string }>
  readonly edits: ReadonlyMap<EntryId, ContextEditEntry>
  readonly compaction: CompactionEntry | undefined
}

export function statementsIn(entries: readonly Entry[]): Statements {
  const cleanups = new Map<EntryId, { id: EntryId; note: string }>()
  for (const { id, record } of activeCleanups(entries))
    for (const hidden of record.hidden) cleanups.set(hidden, { id, note: record.note })
  const edits = new Map<EntryId, ContextEditEntry>()
  for (const entry of entries)
    if (entry.type === 'context_edit' && entry.mirrors === undefined) edits.set(entry.targetId, entry)
  return { cleanups, edits, compaction: latestCompaction(entries) }
}

/**
 * The transcript as the model should see it before any provider's rules: compactions, cleanups and edits applied. For a
 * part of a path, what is said about it elsewhere is given.
 */
export function viewOf(entries: readonly Entry[], said: Statements = statementsIn(entries)): View {
  const { cleanups, edits, compaction } = said
  const changes: Change[] = []
  const items: Item[] = compaction === undefined || isWithoutSummary(compaction) ? [] : [summaryItem(compaction)]
  const notesPlaced = new Set<string>()

  for (const entry of entries) {
    const cleanup = cleanups.get(entry.id)
    if (cleanup !== undefined) {
      changes.push(viewed('dropped', 'cleaned up', entry.id))
      if (!notesPlaced.has(cleanup.id)) {
        notesPlaced.add(cleanup.id)
        placeNote(items, cleanup, changes)
      }
      continue
    }
    const item = itemOf(entry, edits, changes)
    if (item !== undefined) items.push(item)
  }
  return { items, changes }
}

/**
 * Behind the instruction whose rounds are hidden, in the same message: a message of its own would make two user turns
 * in a row, and in the answer the model would take it for its own words.
 */
function placeNote(items: Item[], cleanup: { id: EntryId; note: string }, changes: Change[]): void {
  const text = wellFormed(cleanup.note).trim()
  if (text === '') return
  const at = items.length - 1
  const last = items[at]
  const block = { type: 'text', text } as const
  if (last?.message.role === 'user' && Array.isArray(last.message.content)) {
    items[at] = { ...last, message: { ...last.message, content: [...last.message.content, block] } }
    changes.push(viewed('rewritten', 'cleanup note', last.sources[0]))
    return
  }
  items.push({ kind: 'context', sources: [cleanup.id], message: { role: 'user', content: [block], timestamp: 0 } })
  changes.push(viewed('added', 'cleanup note'))
}

function viewed(action: Change['action'], reason: Reason, entry?: EntryId): Change {
  return { step: 'view', action, reason, ...(entry === undefined ? {} : { entry }) }
}

function itemOf(entry: Entry, edits: ReadonlyMap<EntryId, ContextEditEntry>, changes: Change[]): Item | undefined {
  const edit = edits.get(entry.id)
  if (edit?.replacement === null) {
    changes.push(viewed('dropped', 'hidden by an edit', entry.id))
    return undefined
  }
  const normalized = normalizedOf(entry, edit)
  if (normalized === undefined) return undefined
  if (edit !== undefined) changes.push(viewed('rewritten', 'replaced by an edit', entry.id))
  for (const note of normalized.notes) changes.push(viewed('rewritten', note, entry.id))
  const { message, kind } = normalized
  return message === undefined ? undefined : { kind, sources: [entry.id], message }
}

function normalizedOf(entry: Entry, edit: ContextEditEntry | undefined): Normalized | undefined {
  switch (entry.type) {
    case 'message':
      return normalizeMessage(withEdit(entry.message, edit))
    case 'custom_message': {
      const { customType, content, display } = entry
      return normalizeMessage(
        withEdit({ role: 'custom', customType, content, display, timestamp: timeOf(entry) }, edit),
      )
    }
    case 'branch_summary': {
      const { summary, fromId } = entry
      return normalizeMessage({ role: 'branchSummary', summary, fromId, timestamp: timeOf(entry) })
    }
    case 'compaction':
    case 'custom':
    case 'model_change':
    case 'thinking_level_change':
    case 'label':
    case 'session_info':
    case 'context_edit':
    case 'unknown':
      return undefined
    default:
      return assertNever(entry)
  }
}

/** The replacement need not suit the role of what it replaces, so the result passes the boundary for messages again. */
function withEdit(message: Message, edit: ContextEditEntry | undefined): Message {
  return edit === undefined ? message : soundMessage({ ...message, content: edit.replacement?.content })
}

/** 0 for a time that cannot be read. */
const timeOf = ({ timestamp }: Entry): number => Date.parse(timestamp) || 0

/** It took the first one back: nothing is summarised any more. */
function isWithoutSummary(compaction: CompactionEntry): boolean {
  const undo = undoDetails(compaction)
  return undo !== undefined && undo.reinstates === undefined
}

function summaryItem(compaction: CompactionEntry): Item {
  const { id, summary } = compaction
  const content = [{ type: 'text', text: wellFormed(compactionSummaryText(summary)) }] as const
  return { kind: 'summary', sources: [id], message: { role: 'user', content, timestamp: timeOf(compaction) } }
}
