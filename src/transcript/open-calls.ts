import type { Entry, EntryDraft } from '../core/entry.ts'
import { toolCallsOf, type ToolResultMessage } from '../core/message.ts'

/** Calls of the last assistant message that have no result yet, in the order they were made. */
export type OpenCalls = ReadonlyMap<string, OpenCall>

export interface OpenCall {
  readonly toolName: string
  readonly stepId?: string
  readonly round?: number
}

export function openCallsOf(path: readonly Entry[]): OpenCalls {
  const open = new Map<string, OpenCall>()
  // Any message but a result decides alone what is open after it.
  const from = path.findLastIndex((entry) => entry.type === 'message' && entry.message.role !== 'toolResult')
  for (const entry of path.slice(Math.max(0, from))) passEntry(open, entry)
  return open
}

/**
 * Changes `open` to what is open after the entry. A turn that ended in error or abort opens no calls: an invented result
 * for it would have no place a provider accepts. Any other message but a result closes the frame; what was open before
 * it stays open for good, for the view to close.
 */
export function passEntry(open: Map<string, OpenCall>, entry: Entry | EntryDraft): void {
  if (entry.type !== 'message') return
  const { message, stepId, round } = entry
  if (message.role === 'toolResult') {
    open.delete(message.toolCallId)
    return
  }
  open.clear()
  if (message.role !== 'assistant' || message.stopReason === 'error' || message.stopReason === 'aborted') return
  for (const { id, name } of toolCallsOf(message))
    open.set(id, {
      toolName: name,
      ...(stepId === undefined ? {} : { stepId }),
      ...(round === undefined ? {} : { round }),
    })
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
