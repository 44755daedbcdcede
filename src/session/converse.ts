import { GatewayError } from '../core/errors.ts'
import type { SessionEvent, TurnEvent } from '../core/event.ts'
import type { AcceptedMessage, ReplyContent, SessionRecord } from '../core/inbound.ts'
import type { Outcome } from '../core/outcome.ts'
import type { Clock } from '../base/clock.ts'
import type { TranscriptStore } from '../transcript/store.ts'
import { runTurn } from '../turn/turn.ts'
import type { Instruction, TurnParts } from '../turn/parts.ts'
import { parseSlash } from './commands.ts'
import type { SessionDirectory } from './directory.ts'

export interface ConverseParts {
  readonly clock: Clock
  readonly directory: SessionDirectory
  readonly transcripts: TranscriptStore
  /** Everything a turn needs that depends on the session: its model, its limits, its tools. */
  partsFor(
    message: AcceptedMessage,
    record: SessionRecord,
  ): Omit<TurnParts, 'session' | 'sessionId' | 'transcript' | 'clock' | 'emit' | 'takeSteering'>
}

export interface Conversation {
  readonly signal: AbortSignal
  emit(event: SessionEvent): Promise<void>
  takeQueued(): readonly AcceptedMessage[]
}

/** Answers one accepted message. Undefined when a shutdown interrupted it: it is resumed at the next start. */
export async function converse(
  message: AcceptedMessage,
  conversation: Conversation,
  parts: ConverseParts,
): Promise<ReplyContent | undefined> {
  const record = parts.directory.get(message.key)
  if (record === undefined)
    throw new GatewayError('SESSION_NOT_FOUND', 'the session was deleted before this message was answered')
  const { sessionId } = record
  const transcript = await parts.transcripts.open(sessionId, conversation.signal)
  try {
    const outcome = await runTurn(
      toInstruction(message),
      {
        ...parts.partsFor(message, record),
        session: message.key,
        sessionId,
        transcript,
        clock: parts.clock,
        emit: (event: TurnEvent) =>
          conversation.emit({ session: message.key, sessionId, run: message.run, at: parts.clock.now(), event }),
        takeSteering: () => conversation.takeQueued().map(toInstruction),
      },
      conversation.signal,
    )
    return toReply(outcome)
  } finally {
    await transcript.close()
  }
}

function toInstruction(message: AcceptedMessage): Instruction {
  const slash = parseSlash(message.text)
  return { run: message.run, content: slash.kind === 'message' ? slash.text : message.text }
}

function toReply(outcome: Outcome): ReplyContent | undefined {
  switch (outcome.kind) {
    case 'completed':
    case 'round-limit':
      return { kind: 'complete', text: outcome.text }
    case 'failed':
      return { kind: 'error', code: outcome.code, message: outcome.message, partialText: outcome.partialText }
    case 'cancelled':
      return { kind: 'cancelled', by: outcome.by }
    case 'interrupted':
      return undefined
  }
}
