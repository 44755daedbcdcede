import { createHash } from 'node:crypto'
import { isOneOf, isRecord, type JsonObject } from '../base/json.ts'
import type { Entry } from '../core/entry.ts'
import type { ToolCallBlock } from '../core/message.ts'
import type { NamedToolCall } from '../tool/run-tool.ts'
import type { Round } from './call-model.ts'
import type { TurnDeps } from './deps.ts'

/** A call that waits for a person, and how it went; each step is durable before it is shown. */
export const APPROVAL_ENTRY_TYPE = 'clew.approval'

export type Verdict = 'approved' | 'denied' | 'expired'

/** What a person is asked. */
export interface ApprovalRequest {
  /** The same after a restart, so that a question that was shown can still be answered. */
  readonly id: string
  readonly tool: string
  readonly arguments: JsonObject
  /** Unix times. */
  readonly askedAt: number
  readonly expiresAt: number
  /** Makes the verdict durable; the person who decided gets the answer afterwards. */
  store(verdict: Verdict): Promise<void>
  /** Shows the question, also once more when its reader comes back. */
  show(): Promise<void>
}

interface ApprovalRecord {
  readonly id: string
  readonly state: 'asked' | Verdict
  readonly at: number
}

/** Asks and waits, unless the transcript holds the answer already. Throws the signal's reason when the turn is stopped. */
export async function askApproval(
  call: NamedToolCall,
  round: Round,
  deps: TurnDeps,
  signal: AbortSignal,
): Promise<Verdict> {
  const id = approvalId(call.id, round)
  const known = latestRecord((await deps.transcript.context()).entries, id)
  if (known !== undefined && known.state !== 'asked') return known.state
  const append = async (state: ApprovalRecord['state'], at: number): Promise<void> => {
    const data: ApprovalRecord & JsonObject = { id, state, at, tool: call.name, callId: call.id }
    await deps.transcript.append([{ type: 'custom', customType: APPROVAL_ENTRY_TYPE, data }])
  }
  const askedAt = known?.at ?? deps.clock.now()
  if (known === undefined) await append('asked', askedAt)
  const expiresAt = askedAt + deps.settings.approveTimeoutMs
  const about = { id, tool: call.name, arguments: call.arguments }
  const verdict = await deps.approve(
    {
      ...about,
      askedAt,
      expiresAt,
      store: (decided) => append(decided, deps.clock.now()),
      show: () => deps.emit({ type: 'approval-requested', round: round.round, callId: call.id, ...about, expiresAt }),
    },
    signal,
  )
  await deps.emit({ type: 'approval-decided', round: round.round, callId: call.id, id, tool: call.name, verdict })
  return verdict
}

/** A call that a crash found waiting has not begun: it is asked for again instead of being called interrupted. */
export function isUndecided(call: ToolCallBlock, round: Round, entries: readonly Entry[]): boolean {
  return latestRecord(entries, approvalId(call.id, round))?.state !== 'approved'
}

function approvalId(callId: string, { run, round }: Round): string {
  return createHash('sha256').update(`${run}\n${round}\n${callId}`).digest('hex').slice(0, 8)
}

function latestRecord(entries: readonly Entry[], id: string): ApprovalRecord | undefined {
  for (let at = entries.length - 1; at >= 0; at--) {
    const entry = entries[at]
    if (entry?.type !== 'custom' || entry.customType !== APPROVAL_ENTRY_TYPE) continue
    if (isRecordOf(entry.data) && entry.data.id === id) return entry.data
  }
  return undefined
}

function isRecordOf(data: unknown): data is ApprovalRecord {
  return (
    isRecord(data) &&
    typeof data['id'] === 'string' &&
    typeof data['at'] === 'number' &&
    isOneOf(data['state'], ['asked', 'approved', 'denied', 'expired'])
  )
}
