/** Shapes of the JSON interface that the pages read; `docs/protocol/http.md` describes them. */

export interface Usage {
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly usd?: number | null
}

export type SessionState = 'running' | 'queued' | 'idle'

export interface SessionRow {
  readonly key: string
  readonly sessionId: string
  readonly updatedAt: number
  readonly lastChannel?: string
  readonly title?: string
  readonly preview?: string
  readonly messages?: number
  readonly state?: SessionState
  readonly queued?: number
  /** The one that answers next. */
  readonly model?: string
  /** Present when a model was chosen for this conversation. */
  readonly modelOverride?: string
  readonly contextTokens?: number
  readonly usd?: number | null
  readonly archived?: boolean
}

export interface SessionPage {
  readonly sessions: readonly SessionRow[]
  readonly nextCursor?: string
  readonly total?: number
}

export type AnswerBlock =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'thinking'; readonly text: string }
  | { readonly type: 'call'; readonly id: string; readonly tool: string; readonly arguments: unknown }

interface MessageBase {
  readonly id: string
  readonly at: string | number
  readonly stepId?: string
  readonly round?: number
  readonly tokens: number
  readonly hidden?: boolean
  readonly summarised?: boolean
  readonly cut?: boolean
}

export interface UserMessage extends MessageBase {
  readonly role: 'user'
  readonly text: string
  /** Where it was written, when that was not the conversation's own channel. */
  readonly from?: 'dashboard'
  readonly images?: readonly { readonly mimeType: string }[]
}

export interface AssistantMessage extends MessageBase {
  readonly role: 'assistant'
  readonly blocks: readonly AnswerBlock[]
  readonly model?: string
  readonly usage?: Usage
  readonly stopReason?: string
  readonly error?: string
}

export interface ResultMessage extends MessageBase {
  readonly role: 'toolResult'
  readonly callId: string
  readonly tool: string
  readonly failed: boolean
  readonly text: string
  readonly images?: readonly { readonly mimeType: string }[]
  readonly durationMs?: number
}

/** Anything else that stands in a transcript: system notes, shell output of other programs. */
export interface OtherMessage extends MessageBase {
  readonly role: 'other'
  readonly kind: string
  readonly text: string
}

export type Message = UserMessage | AssistantMessage | ResultMessage | OtherMessage

export interface CleanupRow {
  readonly id: string
  readonly stepId: string
  readonly at: string | number
  readonly hidden: readonly string[]
  readonly tokensBefore: number
  readonly tokensAfter: number
  readonly estimated: boolean
}

export interface CompactionRow {
  readonly id: string
  readonly at: string | number
  readonly summary: string
  readonly tokensBefore?: number
  readonly tokensAfter?: number
}

/** An answer that its channel may not have. */
export interface UndeliveredAnswer {
  readonly stepId: string
  readonly channel: string
  readonly state: 'waiting' | 'unknown'
  readonly ageMs: number
}

export interface MessagePage {
  readonly messages: readonly Message[]
  readonly cleanups: readonly CleanupRow[]
  readonly compactions: readonly CompactionRow[]
  readonly undelivered: readonly UndeliveredAnswer[]
  readonly before?: string
}

export interface SessionDetail {
  readonly session: SessionRow
  readonly requests: number
  readonly usage: { readonly tokens?: number; readonly usd?: number | null } & Partial<Usage>
  readonly cleanup?: { readonly messages: number; readonly saved: number; readonly net?: number }
}

export interface RequestRow {
  readonly n: number
  readonly at: string | number
  readonly model: string
  readonly stepId?: string
  readonly round?: number
  readonly estimate: number
  readonly fixed: number
  readonly window: number
  readonly reserved: number
  readonly messages: number
  readonly leftOut: { readonly messages: number; readonly tokens: number }
  readonly usage?: Usage
  readonly startedAt?: number
  readonly firstByteMs?: number
  readonly durationMs?: number
}

export interface SentMessage {
  readonly role: string
  readonly kind: string
  readonly entries: readonly string[]
  /** A stored message that an earlier one of this request began. */
  readonly continues?: readonly string[]
  readonly tokens: number
  readonly text: string
  /** Of a tool's result. */
  readonly tool?: string
  readonly state: 'same' | 'new' | 'changed'
  readonly changes: readonly { readonly step: string; readonly action: string; readonly reason: string }[]
}

export interface NotSent {
  readonly entry: string
  readonly role: string
  readonly tool?: string
  readonly tokens: number
  readonly by: string
  readonly reason: string
  readonly cleanup?: string
  /** The sent message that it stood before. */
  readonly before?: string
}

export interface RequestDetail extends Omit<RequestRow, 'messages'> {
  readonly hash: string
  readonly hashMatches: boolean
  readonly bytes: number
  readonly system: string
  readonly systemTokens?: number
  /** Against the request before. */
  readonly systemState: SentMessage['state']
  readonly tools: readonly { readonly name: string; readonly description?: string }[]
  readonly toolTokens?: number
  readonly toolsState: SentMessage['state']
  readonly same: number
  readonly messages: readonly SentMessage[]
  readonly notSent: readonly NotSent[]
  readonly body?: string
}

export interface ModelRow {
  readonly ref: string
  readonly contextWindow?: number
  readonly price?: { readonly input: number; readonly output: number } | null
  readonly images?: boolean
  readonly reasoning?: boolean
}

export interface UsageRow {
  readonly at: string | number
  readonly group: string
  readonly requests: number
  readonly input: number
  readonly output: number
  readonly cacheRead: number
  readonly cacheWrite: number
  readonly usd: number | null
  readonly saved: number
}

export interface SearchHit {
  readonly key: string
  readonly entry: string
  readonly at: string | number
  readonly role: string
  readonly snippet: string
  readonly marks: readonly (readonly [number, number])[]
}

export interface LogLine {
  readonly at: number | string
  readonly level: string
  readonly message: string
  readonly session?: string
  readonly facts?: Readonly<Record<string, unknown>>
}

export interface ConfigValue {
  readonly key: string
  readonly value: unknown
  readonly origin: 'file' | 'default' | 'flag' | 'environment'
  readonly default?: unknown
}

export interface ConfigProblem {
  readonly line?: number
  readonly column?: number
  readonly key?: string
  readonly message: string
  readonly nearest?: string
}

export interface LinkStatus {
  readonly url: string
  readonly state: string
  readonly since?: number
  readonly attempts?: number
  readonly lastError?: string | null
  readonly nextInMs?: number | null
  readonly lastSeenAt?: number | null
  /** Both where the certificate has changed. */
  readonly pinned?: string | { readonly pinned: string; readonly refused: string } | null
}

export type ChannelStatus = Readonly<Record<string, unknown>> & {
  readonly links?: readonly LinkStatus[]
  /** The connection that the webhook channel dials and keeps. */
  readonly hub?: LinkStatus
}

export interface ProviderStatus {
  readonly circuit: 'closed' | 'open' | 'probing'
  readonly running: number
  /** For a place: its turns take all that it may have. */
  readonly waiting: number
}

export interface GatewayStatus {
  readonly version: string
  readonly model: string
  readonly uptimeSeconds?: number
  readonly sessions?: number
  readonly activity?: Readonly<Record<string, number>>
  readonly replies?: Readonly<Record<string, number>>
  readonly channels?: Readonly<Record<string, ChannelStatus>>
  readonly providers?: Readonly<Record<string, ProviderStatus>>
  readonly rates?: Readonly<Record<string, number>>
  readonly turns?: readonly RunningTurn[]
  readonly budget?: Readonly<Record<string, number>>
  readonly simulatesXiaoyi?: boolean
  readonly [field: string]: unknown
}

export interface RunningTurn {
  readonly key: string
  readonly run: string
  readonly startedAt: number
  readonly round?: number
  readonly tool?: string
}

export interface HistoryRow {
  readonly at: number | string
  readonly link: number | string
  readonly what: string
  readonly reason?: string
  readonly nextInMs?: number
}

export interface Me {
  readonly account: string
  readonly admin: boolean
  /** Null without a cookie. */
  readonly expiresAt: string | null
}

/** A gateway of several on one database. */
export interface ClusterNode {
  readonly id: string
  readonly address?: string
  readonly version?: string
  readonly startedAt?: string | number
  readonly heartbeatAgeMs?: number
  readonly sessions?: number
  readonly turns?: number
  readonly state: string
}

export interface ClusterStatus {
  readonly nodes: readonly ClusterNode[]
  readonly lost: readonly ClusterNode[]
  readonly database?: {
    readonly version?: string
    readonly ok: boolean
    readonly latencyMs?: number | null
    readonly connections?: number
  } | null
}

/** A frame of a turn as the event stream carries it. */
export interface TurnEvent {
  readonly key: string
  readonly run: string
  readonly at: number
  readonly event: TurnFrame
}

export type TurnFrame = Readonly<Record<string, unknown>> & { readonly type: string }

export interface LiveTool {
  readonly id: string
  readonly tool: string
  readonly detail: string
  readonly startedAt: number
  readonly durationMs?: number
  readonly failed?: boolean
}

/** A turn that runs now, as far as it is not stored yet. */
export interface LiveTurn {
  readonly run: string
  readonly startedAt: number
  readonly round: number
  readonly text: string
  /** The text belongs to the round before, and stays until that is stored. */
  readonly isRoundOver?: boolean
  readonly tools: readonly LiveTool[]
  readonly note?: string
  readonly ended?: 'complete' | 'error'
  readonly error?: string
}

/** One instruction with everything it led to. */
export interface Step {
  readonly id: string
  readonly messages: readonly Message[]
  readonly cleanup?: CleanupRow
}

/** A file that the gateway has; a message names it by its id. */
export interface StoredFile {
  readonly id: string
  readonly name: string
  readonly mimeType: string
  readonly bytes: number
}

/** A message written here that the transcript does not show yet. */
export interface Outgoing {
  readonly id: string
  readonly key: string
  readonly text: string
  readonly files?: readonly StoredFile[]
  readonly at: number
  readonly state: 'sending' | 'accepted' | 'failed'
  /** The run it became; the stored message has it as its step. */
  readonly run?: string
  readonly error?: string
  /** A command's answer: it is shown here and stands in no transcript. */
  readonly reply?: string
}
