import type { CompactionEntry, ContextEditEntry, Entry } from '../core/entry.ts'
import type { EntryId } from '../core/ids.ts'
import type { Message } from '../core/message.ts'
import { soundMessage } from '../core/sound-message.ts'
import type { TranscriptContext } from './store.ts'

/** What the end of a path means to the model: the entries that can matter, and the settings of the whole path. */
export interface ActivePath {
  readonly entries: readonly Entry[]
  readonly thinkingLevel: string
  readonly model: TranscriptContext['model']
}

export const EMPTY_PATH: ActivePath = { entries: [], thinkingLevel: 'off', model: null }

/** The active part of a whole path from the root. */
export function toActivePath(path: readonly Entry[]): ActivePath {
  let active = EMPTY_PATH
  for (const entry of path) active = withSettings(active, entry)
  return { ...active, entries: path.slice(activeStart(path)) }
}

/**
 * The active path a few entries further. Undefined when a compaction among them reaches back before what is held here:
 * then the whole path must be read.
 */
export function extendActivePath(active: ActivePath, more: readonly Entry[]): ActivePath | undefined {
  const settled = more.reduce(withSettings, active)
  const entries = [...active.entries, ...more]
  const compaction = more.findLast((entry) => entry.type === 'compaction')
  if (compaction === undefined) return { ...settled, entries }
  const start = activeStart(entries)
  const isWhole = entries[0]?.parentId === null
  const isKeptKnown = entries[start] !== compaction || compaction.firstKeptEntryId === compaction.id
  return isKeptKnown || isWhole ? { ...settled, entries: entries.slice(start) } : undefined
}

/** Where the model's view begins: the first kept entry of the last compaction, or that compaction, or the root. */
export function activeStart(path: readonly Entry[]): number {
  const at = lastCompaction(path)
  const compaction = path[at]
  if (compaction?.type !== 'compaction') return 0
  const kept = path.findIndex((entry) => entry.id === compaction.firstKeptEntryId)
  return kept >= 0 && kept < at ? kept : at
}

function withSettings(active: ActivePath, entry: Entry): ActivePath {
  const level = levelSetBy(entry)
  if (level !== undefined) return { ...active, thinkingLevel: level }
  const model = modelSetBy(entry)
  return model === undefined ? active : { ...active, model }
}

export function levelSetBy(entry: Entry): string | undefined {
  return entry.type === 'thinking_level_change' ? entry.thinkingLevel : undefined
}

export function modelSetBy(entry: Entry): NonNullable<TranscriptContext['model']> | undefined {
  if (entry.type === 'model_change') return { provider: entry.provider, modelId: entry.modelId }
  if (entry.type !== 'message' || entry.message.role !== 'assistant') return undefined
  return { provider: entry.message.provider, modelId: entry.message.model }
}

/** The messages are made on demand: a turn works on the entries. */
export function buildContext(active: ActivePath): TranscriptContext {
  let messages: readonly Message[] | undefined
  return {
    ...active,
    get messages() {
      messages ??= messagesOf(active.entries)
      return messages
    },
  }
}

/** The rules of pi-coding-agent 0.73, and of 1.5 where a file uses what came later. */
function messagesOf(entries: readonly Entry[]): readonly Message[] {
  const at = lastCompaction(entries)
  const compaction = entries[at]
  const edits = lastEdits(entries)
  const messagesIn = (part: readonly Entry[]): Message[] => {
    const messages: Message[] = []
    for (const entry of part) {
      const message = messageOf(entry, edits)
      if (message !== undefined) messages.push(message)
    }
    return messages
  }
  if (compaction?.type !== 'compaction') return messagesIn(entries)
  const kept = messagesIn(entries.slice(0, at))
  return [
    ...summaryOf(compaction),
    ...(compaction.systemMessage === undefined ? kept : kept.filter((message) => message.role !== 'system')),
    ...messagesIn(entries.slice(at + 1)),
  ]
}

function lastCompaction(path: readonly Entry[]): number {
  return path.findLastIndex((entry) => entry.type === 'compaction')
}

function summaryOf(compaction: CompactionEntry): Message[] {
  const { summary, tokensBefore, timestamp, systemMessage } = compaction
  const message = { role: 'compactionSummary', summary, tokensBefore, timestamp: timeOf(timestamp) } as const
  return systemMessage === undefined ? [message] : [systemMessage, message]
}

function lastEdits(entries: readonly Entry[]): ReadonlyMap<EntryId, ContextEditEntry> {
  const edits = new Map<EntryId, ContextEditEntry>()
  for (const entry of entries) if (entry.type === 'context_edit') edits.set(entry.targetId, entry)
  return edits
}

function messageOf(entry: Entry, edits: ReadonlyMap<EntryId, ContextEditEntry>): Message | undefined {
  const message = plainMessageOf(entry)
  const edit = message === undefined ? undefined : edits.get(entry.id)
  if (edit === undefined) return message
  return edit.replacement === null ? undefined : soundMessage({ ...message, content: edit.replacement.content })
}

function plainMessageOf(entry: Entry): Message | undefined {
  if (entry.type === 'message') return entry.message
  if (entry.type === 'custom_message') {
    const { customType, content, display, details, timestamp } = entry
    const message = { role: 'custom', customType, content, display, timestamp: timeOf(timestamp) } as const
    return details === undefined ? message : { ...message, details }
  }
  if (entry.type === 'branch_summary' && entry.summary !== '') {
    const { summary, fromId, timestamp } = entry
    return { role: 'branchSummary', summary, fromId, timestamp: timeOf(timestamp) }
  }
  return undefined
}

/** 0 for a time that cannot be read. */
function timeOf(timestamp: string): number {
  return Date.parse(timestamp) || 0
}
