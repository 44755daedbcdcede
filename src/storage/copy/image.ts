import type { JsonObject } from '../../base/json.ts'

/** What a storage holds, in the order in which it is copied: what a conversation refers to comes before its row. */
export const ITEM_KINDS = [
  'file',
  'blob',
  'transcript',
  'archived-session',
  'session',
  'account',
  'usage',
  'saving',
  'state',
  'message',
] as const
export type ItemKind = (typeof ITEM_KINDS)[number]

/**
 * One thing that a storage holds, in a form that does not say which storage it is. Names are unique within a kind:
 * `session` its key · `message` its run · `account` channel, newline, account · `usage` scope, at, session, model,
 * channel by lines · `saving` a session id · `state` section, newline, key · `transcript` a session id, with `archived:`
 * before it when it was archived · `blob` session id, slash, hash · `file` a path below the home.
 */
export type Item = RowItem | TranscriptItem | BytesItem

export interface RowItem {
  readonly kind: Exclude<ItemKind, 'transcript' | 'blob' | 'file'>
  readonly name: string
  readonly value: JsonObject
}

export interface TranscriptItem {
  readonly kind: 'transcript'
  readonly name: string
  /** The header first; each with its newline, some at a time. */
  lines(): AsyncIterable<readonly string[]>
}

export interface BytesItem {
  readonly kind: 'blob' | 'file'
  readonly name: string
  bytes(): Promise<Uint8Array>
}

export interface ImageReader {
  /** Everything of a kind. The order is the same at every call, and means something for sessions, states and messages. */
  items(kind: ItemKind): AsyncIterable<Item>
}

/** How far a copy has come; stored in the target, in one transaction with what it counts. */
export interface Progress {
  /** Says which storage it is a copy of; no password. */
  readonly from: string
  readonly state: 'copying' | 'done'
  readonly kind: ItemKind
  /** Items of this kind that are there; those of kinds before it all are. */
  readonly done: number
}

export interface ImageWriter {
  progress(): Promise<Progress | undefined>
  /** Whether it holds anything at all. */
  isEmpty(): Promise<boolean>
  /** Items of one kind, durable together with the progress when it resolves. */
  write(items: readonly Item[], progress: Progress): Promise<void>
  /** Everything is there: makes what other programs read. */
  complete(): Promise<void>
}

/** Where a target keeps its `Progress`. It is not copied. */
export const COPY_SECTION = 'copy'
export const COPY_KEY = 'progress'

export function isProgress(value: unknown): value is Progress {
  const given = value as Partial<Progress> | null | undefined
  return (
    typeof given?.from === 'string' && typeof given.done === 'number' && ITEM_KINDS.includes(given.kind as ItemKind)
  )
}

/** As JSON with the fields of every object by name: equal values have equal texts. */
export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_name, one: unknown) => {
    if (typeof one !== 'object' || one === null || Array.isArray(one)) return one
    return Object.fromEntries(Object.entries(one).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  })
}
