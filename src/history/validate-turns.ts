import type { ModelIdentity } from '../core/history-rules.ts'
import type { AssistantMessage, UserMessage } from '../core/message.ts'
import { userBlocksOf } from './blocks.ts'
import { change, type Change, type Item, type StepContext, type StepResult } from './item.ts'
import { PLACEHOLDERS } from './texts.ts'
import { isOwnAnswer } from './thinking.ts'

/**
 * The original's `validateGeminiTurns` and `validateAnthropicTurns`: neighbours of one role become one message, nothing
 * of either is lost. Anthropic wants signed reasoning at the start of its message, so there a short user message goes
 * between.
 */
export function validateTurns(items: readonly Item[], context: StepContext): StepResult {
  if (context.policy.validateTurns === 'none') return { items, changes: [] }
  const changes: Change[] = []
  const validated: Item[] = []
  for (const item of items) {
    const previous = validated.at(-1)
    const joined = previous === undefined ? undefined : join(previous, item, context)
    if (joined === undefined) {
      validated.push(item)
    } else if (joined === 'separate') {
      validated.push(separator(item), item)
      changes.push(change('validate-turns', 'added', 'signed reasoning stands at the start of its message'))
    } else {
      validated[validated.length - 1] = joined
      changes.push(change('validate-turns', 'merged', 'two messages of one role in a row', item))
    }
  }
  return changes.length === 0 ? { items, changes } : { items: validated, changes }
}

function join(first: Item, second: Item, { policy, target }: StepContext): Item | 'separate' | undefined {
  if (first.message.role === 'user' && second.message.role === 'user') {
    return { ...joinedKind(first, second), message: joinUsers(first.message, second.message) }
  }
  if (first.message.role === 'assistant' && second.message.role === 'assistant') {
    const hasReasoning = second.message.content.some((block) => block.type === 'thinking')
    if (hasReasoning && policy.validateTurns === 'anthropic') return 'separate'
    return { ...joinedKind(first, second), message: joinAssistants(first.message, second.message, target) }
  }
  return undefined
}

function joinedKind(first: Item, second: Item): Pick<Item, 'kind' | 'sources'> {
  const kind = first.kind === 'user' || second.kind === 'user' ? 'user' : first.kind
  return { kind, sources: [...first.sources, ...second.sources] }
}

/** Fields of the later one; texts that are strings become blocks, so that none counts as empty. */
function joinUsers(first: UserMessage, second: UserMessage): UserMessage {
  return { ...second, content: [...userBlocksOf(first), ...userBlocksOf(second)] }
}

/**
 * Fields of the earlier one, outcome of the later one; if that was cut off, its rest makes the whole no less whole. When
 * either is the target's own answer the whole is: only own answers still carry signatures, and only those go out.
 */
function joinAssistants(first: AssistantMessage, second: AssistantMessage, target: ModelIdentity): AssistantMessage {
  const { api, provider, model } = isOwnAnswer(second, target) ? second : first
  const joined = { ...first, api, provider, model, content: [...first.content, ...second.content] }
  if (second.stopReason === 'error' || second.stopReason === 'aborted') return joined
  const { usage, stopReason, errorMessage } = second
  return { ...joined, usage, stopReason, ...(errorMessage === undefined ? {} : { errorMessage }) }
}

function separator(next: Item): Item {
  const content = [{ type: 'text', text: PLACEHOLDERS.blankUser }] as const
  return { kind: 'filler', sources: [], message: { role: 'user', content, timestamp: next.message.timestamp } }
}
