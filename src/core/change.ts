import type { JsonValue } from '../base/json.ts'
import type { RunId, SessionId, SessionKey } from './ids.ts'
import type { ReplyContent, SessionRecord } from './inbound.ts'
import type { Spent } from './spent.ts'

/**
 * The right to write for one session: the epoch that its holder got when it took the session. Every later taking and
 * every `raise-epoch` makes it void, and what is written with it fails with `OWNERSHIP_LOST`.
 */
export interface Owner {
  readonly session: SessionKey
  readonly epoch: number
  /** What a client waits for: what was not handed to the storage by then is not done any more. */
  readonly until?: AbortSignal
}

/** `waiting`: nothing was sent · `unknown`: sent, and whether it arrived is unknown · `delivered`. */
export type ReplyState = 'waiting' | 'unknown' | 'delivered'

/** What cleanups of a conversation come to; as a change, what is added. */
export interface CleanupTotals {
  /** In force: cleaned and not restored. */
  readonly steps: number
  readonly messages: number
  readonly tokensSaved: number
  /** Over all requests so far, less what writing prompt caches again cost; in tokens at the price of fresh input. */
  readonly netTokensSaved: number
  /** `measured` when every number in the net was counted. */
  readonly netBasis: 'measured' | 'estimated'
}

/** Changes of a session's row. */
export interface RowChange {
  /** Set, over what is there. */
  readonly fields?: Partial<SessionRecord>
  /** Set only where the row has no such field. */
  readonly defaults?: Partial<SessionRecord>
  /** Added to the number that is there, or to 0. */
  readonly added?: { readonly messages: number }
  readonly removed?: readonly string[]
  /** Sets `updatedAt` to the storage's own time, never below the newest of all rows: the list shows the order of changes. */
  readonly touched?: boolean
}

/**
 * One thing that a transaction changes, as data: a journal writes it as a line, a database as a statement. Changes of
 * one transaction are applied in their order, all of them or none.
 */
export type Change =
  /**
   * Without a row it begins the session, which then has this id and belongs to `owner`; with one it only changes it. In
   * SQL: `insert … on conflict (key) do update`.
   */
  | ({
      readonly kind: 'begin-session'
      readonly key: SessionKey
      readonly sessionId: SessionId
      readonly owner: string
    } & RowChange)
  /** Without a row nothing happens. */
  | ({ readonly kind: 'change-session'; readonly key: SessionKey } & RowChange)
  /** The whole row as another program wrote it, with its own time. */
  | { readonly kind: 'put-session'; readonly key: SessionKey; readonly record: SessionRecord }
  /**
   * The row goes, and every answered message of the key; in a database also the transcripts of its conversations, as an
   * earlier holder may have written to them meanwhile. Epochs of the key go on where they were.
   */
  | { readonly kind: 'delete-session'; readonly key: SessionKey }
  /** Whatever holds this key's present epoch may write nothing from here on; takes effect with this transaction. */
  | { readonly kind: 'raise-epoch'; readonly key: SessionKey }
  /** The one terminal answer. A message that has one keeps it; an unknown run is skipped. Draws the reply's number. */
  | { readonly kind: 'answer'; readonly run: RunId; readonly content: ReplyContent }
  /** Of an answered message; an open or unknown one is skipped. */
  | { readonly kind: 'delivery'; readonly run: RunId; readonly state: ReplyState }
  /** The session was reset for this message (`/new text`): working on it again must not reset it again. */
  | { readonly kind: 'reset-done'; readonly run: RunId }
  /** Work on a message that ended an earlier start begins again: from here on it is to blame for the next end. */
  | { readonly kind: 'resumed'; readonly run: RunId }
  /** It waits for a person: an unforeseen end meanwhile is not its doing, and earlier ones are forgiven. */
  | { readonly kind: 'paused'; readonly run: RunId }
  /** Added to the totals of the session, of the day, of the hour by model and channel, and of the hour by session. */
  | {
      readonly kind: 'spend'
      readonly sessionId: SessionId
      /** `provider/model`. */
      readonly model: string
      readonly channel: string
      readonly spent: Spent
    }
  /** Added to the session's totals; the basis is `measured` only while everything added was. */
  | ({ readonly kind: 'save' } & { readonly sessionId: SessionId } & CleanupTotals)
  /** What a session spent and saved is forgotten; days and hours keep it. */
  | { readonly kind: 'forget-usage'; readonly sessionId: SessionId }
  /** Null removes. Beyond the section's limit the entry changed longest ago goes. */
  | { readonly kind: 'set-state'; readonly section: string; readonly key: string; readonly value: JsonValue | null }
