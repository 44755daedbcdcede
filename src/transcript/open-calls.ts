import type { Entry, EntryDraft } from '../core/entry.ts'
import { toolCallsOf, type AssistantMessage, type ToolResultMessage } from '../core/message.ts'

/** Calls of the last assistant message that have no result yet, in the order they were made. */
export type OpenCalls = ReadonlyMap<string, OpenCall>

export interface OpenCall {
  readonly toolName: string
  readonly stepId?: string
  readonly round?: number
}

export function openCallsOf(path: readonly Entry[]): OpenCalls {
  let open: OpenCalls = new Map()
  // Any message but a result decides alone what is open after it.
  const from = path.findLastIndex((entry) => entry.type === 'message' && entry.message.role !== 'toolResult')
  for (const entry of path.slice(Math.max(0, from))) open = afterEntry(open, entry)
  return open
}

/**
 * A turn that ended in error or abort opens no calls: an invented result for it would have no place a provider accepts.
 * Any other message but a result closes the frame; what was open before it stays open for good, for the view to close.
 */
export function afterEntry(open: OpenCalls, entry: Entry | EntryDraft): OpenCalls {
  if (entry.type !== 'message') return open
  const { message } = entry
  if (message.role === 'toolResult') {
    if (!open.has(message.toolCallId)) return open
    const rest = new Map(open)
    rest.delete(message.toolCallId)
    return rest
  }
  if (message.role !== 'assistant') return open.size === 0 ? open : new Map()
  return callsOpenedBy(message, entry)
}

function callsOpenedBy(
  message: AssistantMessage,
  place: { readonly stepId?: string; readonly round?: number },
): OpenCalls {
  if (message.stopReason === 'error' || message.stopReason === 'aborted') return new Map()
  return new Map(
    toolCallsOf(message).map((call) => [
      call.id,
      {
        toolName: call.name,
        ...(place.stepId === undefined ? {} : { stepId: place.stepId }),
        ...(place.round === undefined ? {} : { round: place.round }),
      },
    ]),
  )
}

/** In `details.reason`; OpenClaw's later versions use the same word. */
export const MISSING_RESULT = 'missing_tool_result'

/** Marked so that a late real result can replace it in the view. */
export function syntheticResult(callId: string, call: OpenCall, at: number): EntryDraft {
  const message: ToolResultMessage = {
    role: 'toolResult',
    toolCallId: callId,
    toolName: call.toolName,
    content: [
      { type: 'text', text: '[clew] missing tool result: the call was interrupted before its result was stored.' },
    ],
    details: { reason: MISSING_RESULT, synthetic: true },
    isError: true,
    timestamp: at,
  }
  const { stepId, round } = call
  return {
    type: 'message',
    message,
    ...(stepId === undefined ? {} : { stepId }),
    ...(round === undefined ? {} : { round }),
  }
}
