import type { EntryId, RunId, SessionId, SessionKey } from '../../core/ids.ts'
import type { Caller, ReplyContent } from '../../core/inbound.ts'
import type { SentMessage } from './sent-message.ts'

/** Where a resent history ends in a transcript. */
export interface FoundPlace {
  readonly key: SessionKey
  /** How many of the messages are there. */
  readonly matched: number
  /** The entry to go on from: with everything that belongs to the last message that is there. */
  readonly at: EntryId
}

/** One answer, by what its id says. */
export interface AnswerAddress {
  readonly run: RunId
  readonly sessionId: SessionId
}

/** Finds conversations by what was said in them. What a caller may not see is not found. */
export interface ConversationFinder {
  /** The conversation that holds most of these messages; undefined when none holds enough to be the same one. */
  byHistory(
    messages: readonly SentMessage[],
    chain: readonly string[],
    caller: Caller,
    signal: AbortSignal,
  ): Promise<FoundPlace | undefined>
  /** Behind an answer, and behind as many of the messages as already follow it. */
  byAnswer(
    address: AnswerAddress,
    messages: readonly SentMessage[],
    caller: Caller,
    signal: AbortSignal,
  ): Promise<FoundPlace | undefined>
  /** An answer as the transcript keeps it. */
  answerAt(
    address: AnswerAddress,
    caller: Caller,
    signal: AbortSignal,
  ): Promise<{ readonly key: SessionKey; readonly content: ReplyContent; readonly at: number } | undefined>
  /** Whether there is such a conversation for this caller. */
  exists(key: string, caller: Caller): Promise<boolean>
  sessionIdOf(key: SessionKey): Promise<SessionId | undefined>
}
