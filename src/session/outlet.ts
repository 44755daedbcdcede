import type { Change, Owner } from '../core/change.ts'
import type { EntryDraft } from '../core/entry.ts'
import type { SessionEvent } from '../core/event.ts'
import type { RunId, SessionId } from '../core/ids.ts'
import type { AcceptedMessage, ReplyContent } from '../core/inbound.ts'

/** The one terminal answer of a message. */
export interface Answer {
  readonly run: RunId
  readonly content: ReplyContent
}

/** What becomes durable in the same transaction as answers. */
export interface Together {
  readonly changes?: readonly Change[]
  /** Entries of a transcript; only with an owner, whose messages are among those that are answered. */
  readonly entries?: { readonly sessionId: SessionId; readonly drafts: readonly EntryDraft[] } | undefined
  /** The transaction fails with `OWNERSHIP_LOST` once this one is void. */
  readonly owner?: Owner | undefined
}

/** The one way from sessions to the channels of their messages. */
export interface Outlet {
  /** What happens in a turn, in order. A preview that may be dropped; must neither throw nor block. */
  show(event: SessionEvent, message: AcceptedMessage): void
  /** Makes answers durable, then hands each to its channel. A message that has an answer keeps it. */
  answer(answers: readonly Answer[], together?: Together): Promise<void>
}
