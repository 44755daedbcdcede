import type { JsonObject } from '../base/json.ts'
import type { EntryId, RunId, SessionId, SessionKey } from './ids.ts'
import type { Outcome } from './outcome.ts'
import type { Usage } from './message.ts'

/**
 * What happens while a message is answered. `tool-end`, `round-end`, `step-completed` and `turn-end` follow the append
 * they report; the deltas are previews and may be dropped for a slow reader.
 */
export type TurnEvent =
  | { readonly type: 'turn-start'; readonly model: string }
  | { readonly type: 'text-delta'; readonly round: number; readonly delta: string }
  | { readonly type: 'thinking-delta'; readonly round: number; readonly delta: string }
  | {
      readonly type: 'tool-start'
      readonly round: number
      readonly callId: string
      readonly tool: string
      readonly arguments: JsonObject
    }
  | {
      readonly type: 'tool-end'
      readonly round: number
      readonly callId: string
      readonly tool: string
      readonly failed: boolean
      readonly durationMs: number
    }
  /** A call waits until a person allows it; sent again when its reader comes back. */
  | {
      readonly type: 'approval-requested'
      readonly round: number
      readonly callId: string
      readonly id: string
      readonly tool: string
      readonly arguments: JsonObject
      /** Unix time after which it counts as denied. */
      readonly expiresAt: number
    }
  | {
      readonly type: 'approval-decided'
      readonly round: number
      readonly callId: string
      readonly id: string
      readonly tool: string
      readonly verdict: 'approved' | 'denied' | 'expired'
    }
  | {
      readonly type: 'model-retry'
      readonly attempt: number
      readonly delayMs: number
      readonly code: string
      /** The model that steps in; absent when the same one is asked again. */
      readonly model?: string
    }
  | { readonly type: 'round-end'; readonly round: number; readonly entryId: EntryId; readonly usage: Usage }
  | {
      readonly type: 'compaction-end'
      readonly tokensBefore: number
      readonly tokensAfter: number
      readonly estimated: boolean
    }
  | StepCleanupCompleted
  | StepCompleted
  | { readonly type: 'turn-end'; readonly outcome: Outcome }

export interface StepCompleted {
  readonly type: 'step-completed'
  readonly stepId: string
  readonly rounds: number
  /** The first line of the instruction; absent when the instruction lies before what was read. */
  readonly title?: string
  /** Unix ms. */
  readonly startTime?: number
  readonly endTime?: number
}

/** What a cleanup did, in messages and tokens. */
export interface CleanupNumbers {
  readonly cleanedMessages: number
  /** What the model would be sent, without the system prompt. */
  readonly remainingMessages: number
  readonly tokensBefore: number
  readonly tokensSaved: number
  readonly tokensRemaining: number
  /** True when the numbers come from an estimate instead of the model's own tokenizer. */
  readonly estimated: boolean
  /**
   * Over the next `netRequests` requests, less what writing the invalidated part of the prompt cache again costs; in
   * tokens at the price of fresh input.
   */
  readonly netTokensSaved: number
  readonly netRequests: number
}

export interface StepCleanupCompleted extends CleanupNumbers {
  readonly type: 'step-cleanup-completed'
  readonly stepId: string
  readonly netBasis: 'measured' | 'estimated'
  /** All that were cleaned at once, when there were several; the finished one is the last. */
  readonly steps?: readonly string[]
  /** Why nothing, or less than usual, was hidden. */
  readonly reason?: string
}

/** Stamped once, by the session. */
export interface SessionEvent {
  readonly session: SessionKey
  readonly sessionId: SessionId
  readonly run: RunId
  readonly at: number
  readonly event: TurnEvent
}

export type EmitTurnEvent = (event: TurnEvent) => Promise<void>
