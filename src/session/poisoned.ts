import type { Clock } from '../base/clock.ts'
import { NEVER } from '../base/async.ts'
import type { Owner } from '../core/change.ts'
import type { AcceptedMessage } from '../core/inbound.ts'
import { NO_USAGE, type AssistantMessage } from '../core/message.ts'
import { stepState } from '../turn/step-state.ts'
import type { Storage } from '../storage/storage.ts'

export interface PoisonedDeps {
  readonly clock: Clock
  readonly storage: Pick<Storage, 'sessions' | 'transcripts'>
}

/**
 * A message that is not tried again stays in its conversation, with an answer that says so. Only its text: whatever else
 * belongs to it may be what the gateway ended over.
 */
export async function recordPoisoned(
  message: AcceptedMessage,
  reason: string,
  owner: Owner,
  deps: PoisonedDeps,
): Promise<void> {
  const { sessions, transcripts } = deps.storage
  const record = await sessions.get(message.key)
  if (record === undefined) return
  const transcript = await transcripts.open(record.sessionId, NEVER)
  try {
    const { entries } = await transcript.context()
    const { run } = message
    const timestamp = deps.clock.now()
    const said = { role: 'user', content: message.text, timestamp, provenance: { kind: 'external_user' } } as const
    const answer: AssistantMessage = {
      role: 'assistant',
      content: [],
      api: 'clew',
      provider: 'clew',
      model: 'none',
      usage: NO_USAGE,
      stopReason: 'error',
      errorMessage: reason,
      timestamp,
    }
    await transcript.append(
      [
        ...(stepState(entries, run).kind === 'new' ? [{ type: 'message', message: said, stepId: run } as const] : []),
        { type: 'message', message: answer, stepId: run, round: 0 },
      ],
      { owner },
    )
  } finally {
    await transcript.close()
  }
}
