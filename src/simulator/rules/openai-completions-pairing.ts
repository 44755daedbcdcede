import { isRecord } from '../../base/json.ts'
import type { ChatFindings, ChatMessage } from './openai-completions.ts'
import { asText } from './wire-text.ts'

/** A message with calls, the tool messages directly behind it, and nothing in between. */
export function checkChatPairing(findings: ChatFindings, messages: readonly ChatMessage[]): void {
  let frame: Frame | undefined
  for (const message of messages) {
    if (message.role === 'tool') {
      checkTool(findings, message, frame)
      continue
    }
    closeFrame(findings, frame)
    frame = message.role === 'assistant' ? openFrame(message) : undefined
  }
  closeFrame(findings, frame)
}

interface Frame {
  readonly message: ChatMessage
  readonly calls: ReadonlySet<string>
  /** Where each call was answered. */
  readonly answered: Map<string, number>
}

function openFrame(message: ChatMessage): Frame | undefined {
  if (!Array.isArray(message.tool_calls) || message.tool_calls.length === 0) return undefined
  const calls = new Set(message.tool_calls.flatMap((call) => (isRecord(call) ? [asText(call.id)] : [])))
  return { message, calls, answered: new Map() }
}

function checkTool(findings: ChatFindings, message: ChatMessage, frame: Frame | undefined): void {
  const path = `messages.[${message.index}]`
  const id = asText(message.tool_call_id)
  if (frame === undefined) {
    const text =
      "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
    findings.add('tool-expected', `${path}.role`, text)
  } else if (!frame.calls.has(id)) {
    const text = `Invalid parameter: 'tool_call_id' of '${id}' not found in 'tool_calls' of previous message.`
    findings.add('tool-id-known', `${path}.tool_call_id`, text)
  } else if (frame.answered.has(id)) {
    const where = `messages[${frame.answered.get(id)}] and messages[${message.index}]`
    const text = `Invalid parameter: Duplicate value for 'tool_call_id' of '${id}', in ${where}.`
    findings.add('tool-answered-once', `${path}.tool_call_id`, text)
  }
  frame?.answered.set(id, message.index)
}

function closeFrame(findings: ChatFindings, frame: Frame | undefined): void {
  if (frame === undefined) return
  const open = [...frame.calls].filter((id) => !frame.answered.has(id))
  if (open.length === 0) return
  const text =
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. " +
    `The following tool_call_ids did not have response messages: ${open.join(', ')}`
  findings.add('calls-answered', `messages.[${frame.message.index}].role`, text)
}
