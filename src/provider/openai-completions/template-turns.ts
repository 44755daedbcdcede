import { mergeTurns, type ChatMessage } from './merge-turns.ts'

/**
 * Messages in turns that every chat template renders: neighbours of one speaker merged, an answer between a tool result
 * and what the user says or shows next. `plain` also takes away the system role, which some templates do not know.
 */
export function toTemplateTurns(messages: readonly ChatMessage[], plain: boolean): readonly ChatMessage[] {
  return bridgeResults(mergeTurns(plain ? messages.map(asUserTurn) : messages))
}

const asUserTurn = (message: ChatMessage): ChatMessage =>
  message.role === 'system' ? { ...message, role: 'user' } : message

/** "Unexpected role 'user' after role 'tool'": a tool loop that was stopped gets the answer it never had. */
export function bridgeResults(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  return messages.flatMap((message, at) =>
    message.role === 'user' && messages[at - 1]?.role === 'tool' ? [BRIDGE, message] : [message],
  )
}

const BRIDGE: ChatMessage = { role: 'assistant', content: 'The tool results are in; the answer was interrupted.' }
