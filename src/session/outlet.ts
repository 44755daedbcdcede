import type { Change, Owner } from '../core/change.ts'
import type { SessionEvent } from '../core/event.ts'
import type { RunId } from '../core/ids.ts'
import type { AcceptedMessage, ReplyContent } from '../core/inbound.ts'

/** The one terminal answer of a message. */
export interface Answer {
  readonly run: RunId
  readonly content: ReplyContent
}

/** The one way from sessions to the channels of their messages. */
export interface Outlet {
  /** What happens in a turn, in order. A preview that may be dropped; must neither throw nor block. */
  show(event: SessionEvent, message: AcceptedMessage): void
  /**
   * Makes answers durable, all of them in one transaction with `changes`, then hands each to its channel. A message that
   * has an answer keeps it. With an owner it fails with `OWNERSHIP_LOST` once that one is void.
   */
  answer(answers: readonly Answer[], changes?: readonly Change[], owner?: Owner): Promise<void>
}
