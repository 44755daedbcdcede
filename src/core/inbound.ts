import type { JsonObject } from '../base/json.ts'
import type { RunId, SessionId, SessionKey } from './ids.ts'
import type { ClientTurn } from './client-turn.ts'
import type { AnsweredBy, CancelCause } from './outcome.ts'
import type { ErrorCode } from './errors.ts'

/** A user's message as a channel understood it. Everything in it is JSON, because it is stored before it is accepted. */
export interface InboundMessage {
  readonly channel: string
  /** The stable identity of the client or service behind the connection (`uid`, agent id …). */
  readonly account: string
  /** Whose conversations it may join; absent, it is its account that owns, and it sees all. */
  readonly caller?: Caller
  /** The sender's own id. Together with owner, session and content it tells a redelivery from a new message. */
  readonly messageId: string
  readonly text: string
  readonly attachments: readonly Attachment[]
  readonly route: RouteFields
  /** What the channel needs to answer this message; opaque to everyone else and handed back with every event and reply. */
  readonly replyTo: JsonObject
  /** Overrides `task.auto_cleanup_enabled` for this message. */
  readonly autoCleanup?: boolean
  /** Written on the dashboard: where the conversation is delivered otherwise does not change. */
  readonly fromDashboard?: boolean
  /** A key by which the sender recognises its own request: the same key stands for the same request, or is refused. */
  readonly idempotency?: Idempotency
  /** What a client that speaks a model's API decides about this turn. */
  readonly client?: ClientTurn
}

export interface Idempotency {
  readonly key: string
  /** Of the whole request: another one under the same key is a mistake of the sender. */
  readonly digest: string
}

/** Who a message or a command comes from, as far as conversations are concerned. */
export interface Caller {
  /** The owner of every conversation it begins: the name of its token, else its account. */
  readonly owner: string
  /** `own`: conversations of other owners are as if they were not there. */
  readonly sees: 'own' | 'all'
}

export function callerOf({ caller, account }: Pick<InboundMessage, 'caller' | 'account'>): Caller {
  return caller ?? { owner: account, sees: 'all' }
}

/** The owner of what came in by HTTP without any identity: it owns nothing, so nothing of it is ever joined or recognised. */
export const UNKNOWN_OWNER = 'http-anonymous'

/** Whom notes are about: the owner, and behind an owner that speaks for many the person it names. */
export function personOf(message: Pick<InboundMessage, 'caller' | 'account' | 'route'>): string {
  const { owner } = callerOf(message)
  const { senderId, peerKind, peerId } = message.route
  const person = senderId ?? (peerKind === 'dm' ? peerId : undefined)
  return person === undefined || person === '' ? owner : `${owner}/${person}`
}

const EPHEMERAL = 'anon-'

/** The account of a connection that gave no identity: it ends with the connection. */
export function ephemeralAccount(unique: string): string {
  return `${EPHEMERAL}${unique}`
}

/** Also for an account behind its channel's name. */
export function isEphemeralAccount(account: string): boolean {
  return account.slice(account.indexOf('\n') + 1).startsWith(EPHEMERAL)
}

/** A file that came with a message, on this machine's disk. */
export interface Attachment {
  readonly name: string
  readonly mimeType: string
  /** Absolute path below `<home>/media`. */
  readonly path: string
  readonly bytes: number
  /** Extracted text of a text file, within the cap. */
  readonly text?: string
}

/** The fields that decide which conversation a message belongs to; see `gateway/claims.ts`. */
export interface RouteFields {
  readonly session?: string
  readonly peerKind?: string
  readonly peerId?: string
  readonly chatType?: string
  readonly chatId?: string
  readonly senderId?: string
  readonly topicId?: string
  readonly threadId?: string
  /** Ids of this channel differ by case only: never fold them. */
  readonly preserveCase?: boolean
  /** The channel whose keys it shares; its own when absent. */
  readonly keysOf?: string
}

/** A message that is durable: from here on it will be answered, whatever happens. */
export interface AcceptedMessage extends InboundMessage {
  readonly run: RunId
  readonly key: SessionKey
  readonly acceptedAt: number
}

/** The one terminal answer to a message, durable in the outbox before anybody sees it. */
export interface Reply {
  readonly run: RunId
  readonly key: SessionKey
  readonly channel: string
  readonly account: string
  readonly messageId: string
  readonly replyTo: JsonObject
  /** Rises per channel and account, over restarts too. */
  readonly seq: number
  readonly content: ReplyContent
  /** True when an earlier attempt may have reached the peer. */
  readonly redelivered: boolean
  /** The peer asked for it (it sent its message again, or resumes): send it even while an earlier attempt is unconfirmed. */
  readonly requested?: boolean
}

/** How a message ended: answered, failed, or stopped. */
export type ReplyContent =
  | ({
      readonly kind: 'complete'
      readonly text: string
      /** What a command did, for programs. */
      readonly done?: JsonObject
    } & AnsweredBy)
  | { readonly kind: 'error'; readonly code: ErrorCode; readonly message: string; readonly partialText: string }
  | { readonly kind: 'cancelled'; readonly by: CancelCause }

/** `waiting`: nothing was sent, the reply stays in the outbox. `unknown`: it was sent, and whether it arrived is unknown. */
export type DeliveryFate = 'delivered' | 'waiting' | 'unknown'

/** Commands that never wait behind a running turn. */
export type ControlCommand =
  | { readonly type: 'reset'; readonly key: string }
  | { readonly type: 'delete'; readonly key: string }
  | { readonly type: 'cancel'; readonly key: string; readonly run?: RunId }
  | { readonly type: 'get'; readonly key?: string; readonly sessionId?: string }
  | { readonly type: 'list'; readonly limit?: number; readonly cursor?: string; readonly prefix?: string }

/** An earlier conversation of a key, with what a list shows of it; older versions did not keep that. */
export interface ArchivedConversation {
  readonly sessionId: SessionId
  readonly at: number
  readonly title?: string
  readonly preview?: string
  readonly messages?: number
  readonly contextTokens?: number
}

/** A row of the session index, in the seed's own field names: this is what `sessions.json` holds. */
export interface SessionRecord {
  readonly sessionId: SessionId
  readonly updatedAt: number
  readonly deliveryContext?: DeliveryContext
  readonly lastChannel?: string
  readonly lastTo?: string
  /** The owner that began the conversation. */
  readonly owner?: string
  readonly lastAccountId?: string
  readonly lastThreadId?: string
  readonly webhookMessageId?: string
  readonly webhookSessionId?: string
  readonly providerOverride?: string
  readonly modelOverride?: string
  /** Earlier transcripts of this key, newest last; each can be restored. */
  readonly archived?: readonly ArchivedConversation[]
  /** The name given, else the first words of the first message. */
  readonly title?: string
  /** The first words of the last message. */
  readonly preview?: string
  /** Messages in the transcript. */
  readonly messages?: number
  /** Tokens of the latest request, as the provider counted them. */
  readonly contextTokens?: number
  /** Fields of other programs are kept. */
  readonly [field: string]: unknown
}

export interface DeliveryContext {
  readonly channel: string
  readonly to?: string
  readonly accountId?: string
  readonly threadId?: string
}

/** Rows of other programs, and of versions that knew no owner, belong to the account that used them last. */
export function ownerOf({ owner, lastAccountId, deliveryContext }: SessionRecord): string | undefined {
  return owner ?? lastAccountId ?? deliveryContext?.accountId
}

export function mayUse(caller: Caller | undefined, record: SessionRecord): boolean {
  return caller === undefined || caller.sees === 'all' || ownerOf(record) === caller.owner
}

/** Whether what a list shows of a conversation contains these words, which are in lower case. */
export function holdsWords(
  key: SessionKey,
  { title, preview }: Pick<SessionRecord, 'title' | 'preview'>,
  words: string,
): boolean {
  return [key, title, preview].some((text) => text?.toLowerCase().includes(words) === true)
}

/** Ids and keys become rows of the index, parts of every frame, and lines on an operator's terminal. */
const MAX_ID_CHARS = 512

/** Unicode's class Cc: C0, DEL and C1. */
const CONTROL_CHARACTERS = /\p{Cc}/u

export function hasControlCharacters(text: string): boolean {
  return CONTROL_CHARACTERS.test(text)
}

/** What is wrong with a field that names a message, a conversation or a person; undefined when nothing is. */
export function faultOfId(field: string, value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined
  if (value.length > MAX_ID_CHARS) return `"${field}" has more than ${MAX_ID_CHARS} characters`
  return hasControlCharacters(value) ? `"${field}" holds a control character` : undefined
}
