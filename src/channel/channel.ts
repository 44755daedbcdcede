import type { JsonObject } from '../base/json.ts'
import type { ReplyState } from '../core/change.ts'
import type { SessionEvent } from '../core/event.ts'
import type { RunId, SessionKey } from '../core/ids.ts'
import type {
  AcceptedMessage,
  Caller,
  ControlCommand,
  DeliveryFate,
  InboundMessage,
  Reply,
  SessionRecord,
} from '../core/inbound.ts'

/**
 * A channel is an adapter: bytes to messages, events and replies to bytes. Everything durable (inbox, outbox, sessions,
 * order, redelivery) belongs to the gateway and is the same for all channels.
 */
export interface Channel {
  readonly name: string
  /** Opens connections and begins to take messages. Called after recovery, so that nothing old is overtaken. */
  start(intake: Intake): Promise<void>
  /**
   * What happens while a message is answered, in order. A preview: may be coalesced or dropped, and must not block; the
   * terminal answer comes through `deliver`.
   */
  observe(event: SessionEvent, message: AcceptedMessage): void
  /** Sends the terminal answer. Never throws for a missing or broken connection: that is a fate. */
  deliver(reply: Reply): Promise<DeliveryFate>
  /** Whether a client of this account is connected here; of a channel without connections nothing is. */
  reaches?(account: string): boolean
  /** Messages whose answer a client may be waiting for here, wherever they are answered; of a channel without accounts. */
  readonly awaited?: Pick<ReadonlyMap<RunId, unknown>, 'has' | 'keys'>
  /** Whether a client follows here what happens in this run; of a channel with accounts it is the one that `reaches` names. */
  follows?(run: RunId): boolean
  /** For `/api/status` and `clew status`. No secrets. */
  status(): JsonObject
  /** Accepts the server certificates that were refused because they had changed; returns how many. */
  trust?(): Promise<number>
  /** What happened to its links, oldest first; a bounded number of rows. */
  linkHistory?(): readonly LinkHistoryRow[]
  /** Makes new connections at once, also in place of open ones; returns how many. */
  reconnect?(): number
  /** While draining: what still arrives is stored and answered after the restart. */
  drain(): void
  /** Ends every connection and timer of the channel. */
  close(): Promise<void>
}

/** One change of a channel's link. No secrets. */
export interface LinkHistoryRow {
  /** Wall time in milliseconds. */
  readonly at: number
  /** Counted from 1. */
  readonly link: number
  readonly what: string
  readonly reason?: string
  readonly nextInMs?: number
}

/** What the gateway offers to a channel. */
export interface Intake {
  /**
   * Resolves once the message is durable: only then may the channel acknowledge it. Rejects with a `GatewayError`
   * (`QUEUE_FULL`, `FIELD_INVALID`, `STORAGE_FULL` …) that the channel shows its peer. `onDurable` is called before the
   * message can cause anything visible: what it sends comes first.
   */
  accept(message: InboundMessage, onDurable?: (acceptance: Acceptance) => void): Promise<Acceptance>
  /**
   * Messages of this channel that were accepted and not answered, oldest first: what it has to know again after a
   * restart, when some of them only wait and nothing else tells of them.
   */
  unanswered(channel: string): Promise<readonly AcceptedMessage[]>
  /** A message of this channel (undefined: of any), with its answer as long as that is remembered. */
  find(channel: string | undefined, run: RunId): Promise<KnownRun | undefined>
  /** Every message of this channel that is remembered, answered or not, in the order of acceptance. */
  runs(channel: string): Promise<readonly KnownRun[]>
  /** Answered messages of this channel whose answers count as not delivered, in the order they were answered. */
  undelivered(channel: string): Promise<readonly KnownRun[]>
  /**
   * Takes effect, durably, before it resolves; never waits for a running turn to finish by itself. Conversations that the
   * caller may not see are not found; without a caller it is the channel itself that asks.
   */
  control(command: ControlCommand, caller?: Caller): Promise<ControlResult>
  /** The peer has confirmed the reply with this number. */
  acknowledge(channel: string, account: string, seq: number): void
  /** The account can be reached (again): its waiting replies are handed to `deliver`. */
  available(channel: string, account: string): void
  /** A client without an identity has left for good. */
  gone(channel: string, account: string): void
  /**
   * Sends the stored answer of a redelivered message again, to where its sender is now; while it is still being worked
   * on, the answer will go there.
   */
  resend(run: RunId, to: { readonly account: string; readonly replyTo: JsonObject }): Promise<void>
  /**
   * The account can be reached again and has everything up to this number: replies with a higher one are sent again,
   * marked as redelivered, to where `redirect` points now; then whatever else waits for it.
   */
  resume(channel: string, account: string, afterSeq: number, redirect: (replyTo: JsonObject) => JsonObject): void
  /**
   * For a service that allows one set of connections per account: taken before they are opened. Undefined while another
   * node of this gateway has them.
   */
  hold(channel: string, account: string): Promise<Hold | undefined>
  /** The next number for a frame to this account; also numbers previews. Survives restarts. */
  nextSeq(channel: string, account: string): Promise<number>
}

/** What only this node has, until `lost` aborts or it is released. */
export interface Hold {
  readonly lost: AbortSignal
  /** Whether another node would take it over. */
  readonly hasSuccessor: boolean
  release(): Promise<void>
}

/** A message that is durable: the run that will answer it, and its session. */
export interface Acceptance {
  readonly run: RunId
  readonly key: SessionKey
  /** True for a redelivery: there is no new turn. Channels that want the answer sent again call `resend`. */
  readonly duplicate: boolean
}

/** How far a message has come. */
export interface KnownRun {
  readonly message: AcceptedMessage
  readonly isRunning: boolean
  /** Once it is answered. */
  readonly reply?: Reply
  /** What is known of the reply's arrival. */
  readonly delivery?: ReplyState
  readonly endedAt?: number
}

/** What a command did, after it took effect. */
export type ControlResult =
  | { readonly type: 'reset' | 'delete'; readonly key: SessionKey }
  | { readonly type: 'cancel'; readonly key: SessionKey; readonly cancelled: number }
  | { readonly type: 'get'; readonly key: SessionKey; readonly record: SessionRecord }
  | {
      readonly type: 'list'
      readonly sessions: readonly { readonly key: SessionKey; readonly record: SessionRecord }[]
      readonly total: number
      readonly nextCursor?: string
    }
