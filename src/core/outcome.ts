import type { JsonObject } from '../base/json.ts'
import type { ClientCall } from './client-turn.ts'
import type { ErrorCode } from './errors.ts'
import type { TurnUsage } from './spent.ts'

/** How a step ended. Values, not exceptions: each is a normal way for a conversation to go on. */
export type Outcome =
  | ({ readonly kind: 'completed'; readonly text: string } & AnsweredBy)
  | { readonly kind: 'failed'; readonly code: ErrorCode; readonly message: string; readonly partialText: string }
  | { readonly kind: 'cancelled'; readonly by: CancelCause }
  | ({ readonly kind: 'round-limit'; readonly rounds: number; readonly text: string } & AnsweredBy)
  /** The process ended in the middle; the step is resumed or closed at the next start. */
  | { readonly kind: 'interrupted' }

/** Which model gave the last answer, and what the whole turn cost. */
/** A file that goes with an answer, kept with the media. */
export interface AnswerFile extends JsonObject {
  readonly id: string
  readonly name: string
  readonly mimeType: string
  readonly bytes: number
}

export interface AnsweredBy {
  /** What tools of this turn sent along. */
  readonly files?: readonly AnswerFile[]
  /** `provider/model`. */
  readonly model?: string
  readonly usage?: TurnUsage
  /** The client's tools that the model called: the client runs them and sends the results. */
  readonly calls?: readonly ClientCall[]
  /** The output limit cut the answer short; its text says so to people. */
  readonly isCut?: boolean
}

export type CancelCause = 'user' | 'reset' | 'delete' | 'newer-message' | 'shutdown'

/** Why a turn was stopped; the reason of its abort signal. */
export class TurnStopped extends Error {
  readonly by: CancelCause
  constructor(by: CancelCause) {
    super(`the turn was stopped: ${by}`)
    this.name = 'TurnStopped'
    this.by = by
  }
}

export function causeOf(signal: AbortSignal): CancelCause {
  return signal.reason instanceof TurnStopped ? signal.reason.by : 'user'
}
