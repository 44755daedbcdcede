import { isRecord } from '../../base/json.ts'
import type { MistralFindings, MistralMessage } from './mistral.ts'
import { asText } from './wire-text.ts'

const FOLLOWERS: ReadonlyMap<string, readonly string[]> = new Map([
  ['system', ['user', 'assistant', 'system']],
  ['user', ['assistant', 'system', 'user']],
  ['assistant', ['assistant', 'user', 'tool']],
  ['tool', ['assistant', 'tool']],
])

/** Who may speak after whom, and calls with their tool messages. */
export function checkMistralOrder(findings: MistralFindings, messages: readonly MistralMessage[]): void {
  const first = messages[0]
  if (first !== undefined && first.role !== 'system' && first.role !== 'user') {
    findings.add('first-role', 'messages.0', 'Conversation must start with a user message or system message')
  }
  messages.forEach((message, place) => {
    const before = messages[place - 1]
    const allowed = before === undefined ? ['system', 'user', 'assistant'] : FOLLOWERS.get(before.role)
    if (allowed !== undefined && !allowed.includes(message.role)) {
      const text =
        before === undefined
          ? `Unexpected role '${message.role}'`
          : `Unexpected role '${message.role}' after role '${before.role}'`
      findings.add('role-order', `messages.${message.index}`, text)
    }
    if (before?.role === message.role && (message.role === 'user' || message.role === 'assistant')) {
      const text = 'After the optional system message, conversation roles must alternate user and assistant roles.'
      findings.add('alternation', `messages.${message.index}`, text)
    }
    if (message.prefix === true && message !== messages.at(-1)) {
      const text = 'Assistant message with prefix True must be last message'
      findings.add('prefix-last', `messages.${message.index}`, text)
    }
  })
  checkLast(findings, messages.at(-1))
  checkCalls(findings, messages)
}

function checkLast(findings: MistralFindings, last: MistralMessage | undefined): void {
  if (last === undefined || last.role === 'user' || last.role === 'tool') return
  if (last.role === 'assistant' && last.prefix === true) return
  const text = `Expected last role User or Tool (or Assistant with prefix True) for serving but got ${last.role}`
  findings.add('last-role', `messages.${last.index}`, text)
}

function checkCalls(findings: MistralFindings, messages: readonly MistralMessage[]): void {
  let expected = new Set<string>()
  let observed = new Set<string>()
  let callerIndex = 0
  const close = (): void => {
    if (expected.size === observed.size) return
    findings.add('call-count', `messages.${callerIndex}`, 'Not the same number of function calls and responses')
  }
  for (const message of messages) {
    if (message.role === 'tool') {
      const id = asText(message.tool_call_id)
      const path = `messages.${message.index}.tool_call_id`
      if (observed.has(id)) findings.add('tool-answered-once', path, `Duplicate tool call id ${id} in tool results`)
      else if (!expected.has(id)) findings.add('tool-id-known', path, `Unexpected tool call id ${id} in tool results`)
      else observed.add(id)
    } else if (message.role === 'assistant') {
      close()
      callerIndex = message.index
      expected = callIds(findings, message)
      observed = new Set()
    }
  }
  close()
}

function callIds(findings: MistralFindings, message: MistralMessage): Set<string> {
  const ids = new Set<string>()
  const calls = Array.isArray(message.tool_calls) ? message.tool_calls : []
  for (const call of calls) {
    if (!isRecord(call)) continue
    const id = asText(call.id)
    if (ids.has(id)) {
      findings.add(
        'call-id-unique',
        `messages.${message.index}.tool_calls`,
        `Duplicate tool call id ${id} in assistant message`,
      )
    }
    ids.add(id)
  }
  return ids
}
