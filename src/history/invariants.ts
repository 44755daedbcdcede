import { NO_USAGE, toolCallsOf, type PreparedMessage } from '../core/message.ts'
import type { Item, StepContext } from './item.ts'
import type { BrokenInvariant } from './reasons.ts'
import { PLACEHOLDERS } from './texts.ts'

/**
 * What every prepared history promises, checked last. The name of the first broken promise, or undefined. The checkers
 * of `clew/testing` say the same from the providers' side and share nothing with this.
 */
export function brokenInvariant(
  messages: readonly PreparedMessage[],
  { policy }: Pick<StepContext, 'policy'>,
): BrokenInvariant | undefined {
  const first = messages.at(0)
  if (first === undefined) return 'empty history'
  if (policy.startWithUser && first.role !== 'user') return 'does not begin with a user message'
  if (messages.at(-1)?.role === 'assistant') return 'ends with an answer'
  const alternate = policy.validateTurns !== 'none'
  for (const [at, message] of messages.entries()) {
    const previous = messages[at - 1]
    if (alternate && message.role !== 'toolResult' && message.role === previous?.role) return 'two messages of one role'
    if (policy.bridgeToolResults && message.role === 'user' && previous?.role === 'toolResult')
      return 'user message behind a result'
    if (hasEmptyContent(message)) return 'empty content'
    if (message.role === 'assistant' && toolCallsOf(message).length > CALLS_PER_ANSWER[policy.toolCalls])
      return 'more calls in one answer than allowed'
  }
  return brokenPairing(messages)
}

const CALLS_PER_ANSWER = { parallel: Infinity, 'one-per-answer': 1, 'as-text': 0 } as const

function hasEmptyContent({ content }: PreparedMessage): boolean {
  if (typeof content === 'string') return content.trim() === ''
  return content.length === 0 || content.some((block) => block.type === 'text' && block.text.trim() === '')
}

function brokenPairing(messages: readonly PreparedMessage[]): BrokenInvariant | undefined {
  let open: string[] = []
  for (const message of messages) {
    if (message.role === 'toolResult') {
      if (open.shift() !== message.toolCallId) return 'result without its call'
      continue
    }
    if (open.length > 0) return 'call without its result'
    if (message.role === 'assistant') open = toolCallsOf(message).map((call) => call.id)
  }
  return open.length > 0 ? 'call without its result' : undefined
}

/**
 * The conversation as plain text, which every provider accepts: what is sent if an invariant should ever break. Nothing
 * in the tests reaches it; a session must not die of a mistake of ours.
 */
export function flatten(items: readonly Item[]): readonly Item[] {
  const flat: Item[] = []
  for (const item of items) {
    const text = textIn(item.message)
    if (text === '') continue
    const role = item.message.role === 'assistant' ? 'assistant' : 'user'
    const previous = flat.at(-1)
    if (previous === undefined && role === 'assistant') flat.push(flatItem('user', PLACEHOLDERS.sessionBootstrap, item))
    if (previous?.message.role === role)
      flat[flat.length - 1] = flatItem(role, `${textIn(previous.message)}\n\n${text}`, previous)
    else flat.push(flatItem(role, text, item))
  }
  if (flat.at(-1)?.message.role !== 'user') flat.push(flatItem('user', PLACEHOLDERS.emptyHistory, undefined))
  return flat
}

function textIn({ content }: PreparedMessage): string {
  if (typeof content === 'string') return content.trim()
  return content
    .flatMap((block) => (block.type === 'text' ? [block.text] : []))
    .join('\n')
    .trim()
}

function flatItem(role: 'user' | 'assistant', text: string, from: Item | undefined): Item {
  const timestamp = from?.message.timestamp ?? 0
  const content = [{ type: 'text', text }] as const
  const sources = from?.sources ?? []
  if (role === 'user') return { kind: 'user', sources, message: { role, content, timestamp } }
  const origin = { api: '', provider: '', model: '', usage: NO_USAGE, stopReason: 'stop' } as const
  return { kind: 'assistant', sources, message: { role, content, ...origin, timestamp } }
}
