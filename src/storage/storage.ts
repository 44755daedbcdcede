import type { JsonObject, JsonValue } from '../base/json.ts'
import type { Change, CleanupTotals, Owner, ReplyState } from '../core/change.ts'
import type { SessionEvent } from '../core/event.ts'
import type { RunId, SessionId, SessionKey } from '../core/ids.ts'
import type { AcceptedMessage, Caller, ReplyContent, SessionRecord } from '../core/inbound.ts'
import type { Spent, UsageQuery, UsageRow } from '../core/spent.ts'
import type { TranscriptStore } from '../transcript/store.ts'

/**
 * Everything durable of a gateway. Look-ups see every transaction that was confirmed before they were called; of a
 * session that this node holds, what another node changed is seen at the latest with the next message that is accepted,
 * and two seconds after it. Nothing above this interface knows whether files, memory or a database are behind it.
 *
 * Errors: `STORAGE_FULL` (nothing was written, space may return), `STORAGE_FAILED` (nothing was confirmed),
 * `OWNERSHIP_LOST` (an owner's epoch is no longer the current one; nothing was written, and nothing more can be with it).
 */
export interface Storage {
  readonly sessions: Sessions
  readonly inbox: Inbox
  readonly outbox: Outbox
  readonly usage: Usage
  readonly state: State
  readonly ownership: Ownership
  /** `append` takes changes along: entries and changes are one transaction. */
  readonly transcripts: TranscriptStore
  /**
   * Applies all changes or none; durable when it resolves. With an owner the whole transaction fails with
   * `OWNERSHIP_LOST` when that epoch is not the session's present one. Two transactions of one caller that were called
   * in an order are applied in that order. An empty one confirms everything called before it.
   */
  transact(changes: readonly Change[], owner?: Owner): Promise<Committed>
  /**
   * Hears of what other callers and nodes made durable, at the latest a second after it. A notice is a hint: it may come
   * twice, late or for nothing, so the listener looks things up. It must not throw. Returns what ends it.
   */
  watch(listener: (notice: Notice) => void): () => void
  /** Passes something to the other nodes without storing it; may be dropped. Absent where there are none. */
  tell?(notice: Notice): void
  /**
   * This node begins to work. Call once, before anything is claimed or accepted. Messages that an unforeseen end of an
   * earlier start or node may be the fault of are counted here or by `ownership.claim`. Other nodes see `load`.
   */
  start(load?: () => NodeLoad): Promise<void>
  /** False while nothing can be stored or looked up; absent where that does not happen. */
  readonly isReachable?: boolean
  /**
   * Which of these folders of media a transcript or an open message names; absent where the transcripts are files, which
   * can be looked through themselves.
   */
  mentionedMedia?(folders: readonly string[]): Promise<ReadonlySet<string>>
  /** Absent where they are on the disk. */
  readonly homeFiles?: HomeFiles
  /** The nodes that share this storage; absent where there is only one. */
  cluster?(): Promise<ClusterStatus>
  /** Others see that this node takes nothing new, and may have all sessions but these; absent where there is no other. */
  leaving?(busy: readonly SessionKey[]): Promise<void>
  /** A foreseen end: nothing that is open counts as its fault. Finishes what was called, releases what this node holds. */
  close(): Promise<void>
}

/** A file of the home that all nodes have, by its path below the home. */
export interface HomeFile {
  readonly path: string
  readonly size: number
  /** Unix ms of the storage's clock. */
  readonly changedAt: number
}

/** Files of messages and notes of the memory tool, where they are not on the disk of one node. */
export interface HomeFiles {
  get(path: string): Promise<Uint8Array | undefined>
  put(path: string, content: Uint8Array): Promise<void>
  /** This file, or all below this folder, by path. */
  list(below: string): Promise<readonly HomeFile[]>
  remove(below: string): Promise<void>
}

/** What a node does at this moment. */
export interface NodeLoad {
  readonly turns: number
  readonly maxTurns: number
  /** Turns that wait because so many run. */
  readonly waiting: number
}

/** One of the gateways that share a database. */
export interface ClusterNode {
  readonly id: string
  readonly address: string
  readonly version: string
  /** Unix ms by the database's clock. */
  readonly startedAt: number
  readonly heartbeatAgeMs: number
  /** That it holds. */
  readonly sessions: number
  /** That it runs. */
  readonly turns: number
  readonly state: 'live' | 'stopping'
}

export interface ClusterStatus {
  readonly nodes: readonly ClusterNode[]
  /** Not seen for a lease, within the last hour. */
  readonly lost: readonly ClusterNode[]
  readonly database: {
    readonly version: string
    readonly ok: boolean
    readonly latencyMs: number
    readonly connections: number
  }
}

/** What a transaction came to. */
export interface Committed {
  /** Messages that got their answer by this transaction, in the order of its changes; those that had one are not here. */
  readonly answered: readonly StoredMessage[]
}

export type Notice =
  /** An open message is there for a session; `elsewhere`: another node accepted it, or its node is gone. */
  | { readonly kind: 'message'; readonly key: SessionKey; readonly elsewhere?: true }
  /** The session's epoch was raised, or its row was changed by another caller. */
  | { readonly kind: 'session'; readonly key: SessionKey; readonly elsewhere?: true }
  /** An answer waits for this account. */
  | {
      readonly kind: 'reply'
      readonly channel: string
      readonly account: string
      readonly run: RunId
      readonly elsewhere?: true
    }
  /** `value` comes along when the transaction was this node's own; otherwise it has to be looked up. */
  | { readonly kind: 'state'; readonly section: string; readonly key: string; readonly value?: JsonValue | null }
  /** An account can be reached at a node: what waits for a person elsewhere is shown again. */
  | { readonly kind: 'reader'; readonly channel: string; readonly account: string; readonly elsewhere?: true }
  /** Other nodes have room for so many turns, and some wait here. */
  | { readonly kind: 'room'; readonly turns: number; readonly elsewhere: true }
  /** Some time has passed: what a lost notice may have been about is looked for. */
  | { readonly kind: 'look'; readonly elsewhere: true }
  /** Of a turn whose client is not connected to the node that works; sent to the others, never stored. */
  | { readonly kind: 'progress'; readonly progress: Progress; readonly elsewhere?: true }

/** What happens in a turn, for a client that is connected elsewhere. */
export interface Progress {
  /** As much of the message as its channel needs to show something to its client. */
  readonly about: Pick<AcceptedMessage, 'run' | 'key' | 'channel' | 'account' | 'messageId' | 'replyTo' | 'acceptedAt'>
  readonly event: SessionEvent
  /** Of a text: where in its round it begins. */
  readonly from?: number
}

export interface SessionRow {
  readonly key: SessionKey
  readonly record: SessionRecord
}

export interface SessionQuery {
  readonly limit: number
  /** From `nextCursor` of the page before; another text is `FIELD_INVALID`. */
  readonly cursor?: string
  /** Keys that begin so. */
  readonly prefix?: string
  /** Only what this one may see: with `sees: "own"` rows of its owner. */
  readonly caller?: Caller
  /**
   * Rows whose key, title or preview contains these words, without regard to case; with `archived` the title or preview of
   * an archived conversation counts in place of the row's own.
   */
  readonly search?: string
  /** Rows last used on this channel. */
  readonly channel?: string
  /** Rows with archived conversations. */
  readonly archived?: true
  /** Only these keys, or all but these. */
  readonly only?: ReadonlySet<SessionKey>
  readonly without?: ReadonlySet<SessionKey>
}

export interface SessionPage {
  /** By `updatedAt`, newest first; of equal times the row that was touched later comes first. */
  readonly sessions: readonly SessionRow[]
  /** How many fit the query, on this page or not. */
  readonly total: number
  /** Goes on behind the last row; a row that was changed meanwhile may come twice or not at all. */
  readonly nextCursor?: string
}

/** A digest in a row's `chat`: of how a resent history begins, or of how far its last request came. */
export interface ChatMark {
  readonly kind: 'root' | 'last'
  readonly value: string
}

/** Rows that left the index, in an order of their own that does not change. */
export interface ArchivedPage {
  readonly rows: readonly SessionRow[]
  readonly next?: string
}

/** The rows of conversations. They change by `begin-session`, `change-session`, `put-session` and `delete-session`. */
export interface Sessions {
  /** For the work on a message: where this node holds the session, what it knows of it. */
  get(key: SessionKey): Promise<SessionRecord | undefined>
  /**
   * What every node has confirmed so far, for a client that asks by name. The key as stored: exactly as given (without space
   * around it), else the one changed last that differs by case only.
   */
  resolve(key: string): Promise<SessionRow | undefined>
  byId(sessionId: string): Promise<SessionRow | undefined>
  list(query: SessionQuery): Promise<SessionPage>
  /** Rows with this mark that the caller may use, the one changed last first. */
  marked(mark: ChatMark, caller: Caller, limit: number): Promise<readonly SessionRow[]>
  count(): Promise<number>
  /** Rows not touched since this time of the storage, oldest first, without these keys. */
  untouchedSince(before: number, limit: number, without: ReadonlySet<SessionKey>): Promise<readonly SessionRow[]>
  /**
   * Takes rows out of what every other look-up sees; their transcripts stay. One that was touched since it was read stays
   * in. Resolves with how many went.
   */
  archive(rows: readonly SessionRow[]): Promise<number>
  /** Puts an archived row back, found as `resolve` finds; resolves with whether there was one. */
  bringBack(key: string): Promise<boolean>
  /** False when nothing is archived; with a key, when naming it brings nothing back. True may be wrong for a key. */
  hasArchived(key?: string): Promise<boolean>
  archived(page: { readonly limit: number; readonly after?: string }): Promise<ArchivedPage>
}

/** An accepted message with everything that is known of it. */
export interface StoredMessage {
  readonly message: AcceptedMessage
  readonly state: 'open' | ReplyState
  /** The reply's number, 0 while it is open. */
  readonly seq: number
  readonly content: ReplyContent | undefined
  readonly endedAt?: number
  readonly resetDone?: boolean
  /** Starts or owners that ended unforeseen while it was worked on. */
  readonly deaths?: number
  /** Another node accepted it, or holds its session, or held it until it went silent. */
  readonly elsewhere?: true
  /** The node that accepted it is gone. */
  readonly orphaned?: true
}

export interface Acceptance {
  /** Of redelivered messages: what tells a copy from a new message. */
  readonly fingerprint: string
  /** What the sender recognises its request by, and what the request was. */
  readonly request?: { readonly key: string; readonly digest: string }
  /** What the message changes in its session's row, in the same transaction; none for a key that stays without one. */
  readonly session?: Change & { readonly kind: 'begin-session' | 'change-session' }
  /** Further changes of the same transaction. */
  readonly also?: readonly Change[]
  /**
   * Which rows the message may join: any; only those of this owner; none, so that it has to begin one. A session that
   * another message is beginning at this moment counts.
   */
  readonly joins?: { readonly rows: 'any' | 'none' } | { readonly rows: 'own'; readonly owner: string }
}

export type Accepted =
  /**
   * Stored. It is open, behind every message of its session that was accepted before. `mine`: this node holds the
   * session, or is the only one; otherwise `claim` says whether it may work on it. `epoch`: what this node holds it with,
   * when that is known.
   */
  | { readonly kind: 'fresh'; readonly mine: boolean; readonly epoch?: number }
  /** `joins` does not allow the row that the key has. Nothing was written. */
  | { readonly kind: 'taken' }
  | Recalled

export type Recalled =
  /**
   * The same fingerprint, or the same request with the same digest, within the time that is remembered. Nothing was
   * written. Of several copies that come at once one is fresh and the others are duplicates of it.
   */
  | { readonly kind: 'duplicate'; readonly known: StoredMessage }
  /** The request key was used for another request. Nothing was written. */
  | { readonly kind: 'conflict' }

/** Messages from their acceptance to their answer. */
export interface Inbox {
  /** Durable when it resolves with `fresh`. The message's text stays until it is answered, its fingerprint longer. */
  accept(message: AcceptedMessage, acceptance: Acceptance): Promise<Accepted>
  /** What `accept` would say of a message that it would not store; undefined for one that it would. */
  recall(acceptance: Pick<Acceptance, 'fingerprint' | 'request'>): Promise<Recalled | undefined>
  find(run: RunId): Promise<StoredMessage | undefined>
  /** Messages without an answer in the order of their acceptance, whichever node accepted them. */
  open(filter?: { readonly key?: SessionKey; readonly channel?: string }): Promise<readonly StoredMessage[]>
  openCount(): Promise<number>
}

/** Answers from their transaction to their delivery. They are made by `answer` and change by `delivery`. */
export interface Outbox {
  /** Answered messages that an account may still miss: this one, or any of the channel, in the order they were answered. */
  undelivered(filter: { readonly channel: string; readonly account?: string }): Promise<readonly StoredMessage[]>
  /** The same of one session, in no particular order. */
  undeliveredOf(key: SessionKey): Promise<readonly StoredMessage[]>
  /** Every message of a channel that is remembered, answered or not, in the order of acceptance. */
  remembered(channel: string): Promise<readonly StoredMessage[]>
  /** Every remembered answer with a higher number, by number: what `resume` sends again. */
  answeredAfter(channel: string, account: string, seq: number): Promise<readonly StoredMessage[]>
  /** The undelivered answer with this number, for an acknowledgement. */
  bySeq(channel: string, account: string, seq: number): Promise<StoredMessage | undefined>
  /**
   * The next number for a frame to this account. Numbers of an account rise, are never given twice, not after a crash
   * and not by two nodes, and are shared with replies; gaps are allowed. An account that ends with its connection
   * begins at 1 and need not be remembered.
   */
  nextSeq(channel: string, account: string): Promise<number>
  /**
   * From `waiting` to `unknown`, durably, before the first attempt: true for the one caller that did it, on whichever
   * node. False when another did, or the state is another.
   */
  take(run: RunId): Promise<boolean>
  /** Where the answer goes from now on. May be forgotten by a restart: then it goes where the message came from. */
  redirect(run: RunId, to: { readonly account: string; readonly replyTo: JsonObject }): Promise<void>
  /** An account that ends with its connection is gone: nothing waits for it any more. */
  abandon(channel: string, account: string): Promise<void>
  counts(): Promise<Readonly<Record<'open' | ReplyState, number>>>
  /** Remembered messages that were answered with this error. */
  failedWith(code: string): Promise<readonly StoredMessage[]>
}

/** Costs and savings. They change by `spend`, `save` and `forget-usage`. */
export interface Usage {
  ofSession(sessionId: SessionId): Promise<Spent>
  /** Of the UTC day of the storage's clock. */
  today(): Promise<Spent>
  report(query: UsageQuery): Promise<readonly UsageRow[]>
  savedBy(sessionId: SessionId): Promise<CleanupTotals>
  savedInAll(): Promise<CleanupTotals>
}

/**
 * Small remembered things by section and key: what a channel must know after a restart (`xiaoyi.pins`, …), what refusals
 * taught about models (`windows`), models chosen before a conversation begins (`chosen`). They change by `set-state`.
 */
export interface State {
  get(section: string, key: string): Promise<JsonValue | undefined>
  /** Changed longest ago first. */
  entries(section: string): Promise<readonly (readonly [string, JsonValue])[]>
}

/** What only one node may have at a time. */
export interface Hold {
  /** Aborts when another node has it, or may take it because this one could not renew its lease. */
  readonly lost: AbortSignal
  /** Whether another node is there that would take it. */
  readonly hasSuccessor: boolean
  release(): Promise<void>
}

/** A session that was taken. */
export interface Claim {
  readonly owner: Owner
  /** Open messages of the session that unforeseen ends may be the fault of, with how many, this one included. */
  readonly suspects: readonly { readonly run: RunId; readonly deaths: number }[]
}

/**
 * Which node works on a session. A lease says who should; the epoch says who may. With one node a claim always succeeds.
 */
export interface Ownership {
  /**
   * Takes the session, with or without a row, when no node holds it, its lease has run out, or this node holds it
   * already. A new taking raises the epoch; asking again while it is held gives the same owner, with the present epoch.
   * Undefined while another node holds it.
   */
  claim(key: SessionKey): Promise<Claim | undefined>
  /**
   * Takes the session also from a living node, which is told: for what must not wait for another one. From here on only
   * this node begins what is open in it, so that what is found open then, and stored under this owner, is decided once.
   */
  takeOver(key: SessionKey): Promise<Owner>
  /** Gives it back at once; void when the epoch is no longer the present one. */
  release(owner: Owner): Promise<void>
  /** Nothing of it runs or waits here. Only where a session that is not in use need not be held for the next message. */
  idle?(key: SessionKey): void
  /**
   * For a node that has no room for another turn. True when the session is not held here, or not any more: whichever node
   * has room takes what is open in it. False when it has to wait here, because no other node has room.
   */
  leave(key: SessionKey): Promise<boolean>
  /** False once the epoch is no longer the present one, as far as this node has heard: for what must not be shown. */
  isCurrent(owner: Owner): boolean
  /** The connections of this account, for a service that allows one set of them. Undefined while another node has them. */
  hold(channel: string, account: string): Promise<Hold | undefined>
  /** Sessions with open messages that no living node holds, the longest waiting first. */
  unclaimed(limit: number): Promise<readonly SessionKey[]>
}
