import type { JsonObject } from '../base/json.ts'
import type { EntryId } from './ids.ts'
import type { AssistantMessage, CustomMessage, Message, UserBlock } from './message.ts'

/** `custom` entry that moves the leaf: its parent is the new leaf, so that readers who do not know it agree. */
export const LEAF_POINTER = 'clew.leaf'

/**
 * A line of a transcript: a node of a tree (pi-coding-agent's session format 3). The path from the root to the leaf is
 * the conversation. Entries are never changed; whatever alters the model's view is itself an entry.
 */
export type Entry =
  | MessageEntry
  | CompactionEntry
  | BranchSummaryEntry
  | CustomEntry
  | CustomMessageEntry
  | ModelChangeEntry
  | ThinkingLevelChangeEntry
  | LabelEntry
  | SessionInfoEntry
  | ContextEditEntry
  | UnknownEntry

interface EntryBase {
  readonly id: EntryId
  readonly parentId: EntryId | null
  /** ISO 8601. */
  readonly timestamp: string
  /** Which step (one instruction worked to its end) this belongs to. Ours; pi ignores and keeps it. */
  readonly stepId?: string
  /** 0 for the first model answer of the step. */
  readonly round?: number
}

export interface MessageEntry extends EntryBase {
  readonly type: 'message'
  readonly message: Message
}

export interface CompactionEntry extends EntryBase {
  readonly type: 'compaction'
  readonly summary: string
  /** Entries from here up to the compaction stay in context behind the summary. */
  readonly firstKeptEntryId: EntryId
  readonly tokensBefore: number
  readonly details?: unknown
  readonly fromHook?: boolean
  readonly systemMessage?: Message
}

export interface BranchSummaryEntry extends EntryBase {
  readonly type: 'branch_summary'
  readonly fromId: string
  readonly summary: string
  readonly details?: unknown
}

/** State of ours or of another program, outside the model's view. Ours have `customType` `clew.…`. */
export interface CustomEntry extends EntryBase {
  readonly type: 'custom'
  readonly customType: string
  readonly data?: unknown
}

export interface CustomMessageEntry extends EntryBase {
  readonly type: 'custom_message'
  readonly customType: string
  readonly content: CustomMessage['content']
  readonly display: boolean
  readonly details?: unknown
}

export interface ModelChangeEntry extends EntryBase {
  readonly type: 'model_change'
  readonly provider: string
  readonly modelId: string
}

export interface ThinkingLevelChangeEntry extends EntryBase {
  readonly type: 'thinking_level_change'
  readonly thinkingLevel: string
}

export interface LabelEntry extends EntryBase {
  readonly type: 'label'
  readonly targetId: EntryId
  readonly label?: string
}

export interface SessionInfoEntry extends EntryBase {
  readonly type: 'session_info'
  readonly name: string
}

/** Replaces or hides what another entry contributes to the model's view (pi 0.87 and later honour it too). */
export interface ContextEditEntry extends EntryBase {
  readonly type: 'context_edit'
  readonly targetId: EntryId
  readonly replacement: null | { readonly content: string | readonly UserBlock[] | AssistantMessage['content'] }
  /** Repeats a cleanup of ours for pi's readers; our own view goes by the cleanup record and passes this over. */
  readonly mirrors?: 'cleanup'
}

/** An entry of a type we do not know; kept through every operation. */
export interface UnknownEntry extends EntryBase {
  readonly type: 'unknown'
  /** The whole line as it was read, its own `type` included. */
  readonly raw: JsonObject
}

/** What a caller hands to `append`: the store adds id, parent and time. */
export type EntryDraft = Entry extends infer E
  ? E extends EntryBase
    ? Omit<E, 'id' | 'parentId' | 'timestamp'>
    : never
  : never

export interface SessionHeader {
  readonly type: 'session'
  readonly version: number
  readonly id: string
  readonly timestamp: string
  readonly cwd: string
  readonly parentSession?: string
}
