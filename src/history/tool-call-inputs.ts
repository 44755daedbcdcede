import type { AssistantBlock, ToolCallBlock } from '../core/message.ts'
import { change, editItems, type Change, type Item, type StepResult } from './item.ts'
import type { Reason } from './reasons.ts'

/**
 * The original's `sanitizeToolCallInputs`: a call that cannot be sent (no id, no name, no readable input, cut off in the
 * middle of its JSON) leaves the view. Its result, if there is one, becomes context when results are paired.
 */
export function sanitizeToolCallInputs(items: readonly Item[]): StepResult {
  const changes: Change[] = []
  const sanitized = editItems(items, (item) => {
    if (item.message.role !== 'assistant') return item
    const bad = new Map<AssistantBlock, Reason>()
    for (const block of item.message.content) {
      const problem = block.type === 'toolCall' ? problemOf(block) : undefined
      if (problem !== undefined) bad.set(block, problem)
    }
    if (bad.size === 0) return item
    for (const problem of bad.values()) changes.push(change('tool-call-inputs', 'dropped', problem, item))
    const content = item.message.content.filter((block) => !bad.has(block))
    if (content.length === 0) return undefined
    return { ...item, message: { ...item.message, content } }
  })
  return { items: sanitized, changes }
}

function problemOf(call: ToolCallBlock & { readonly partialJson?: unknown }): Reason | undefined {
  if (call.id === '') return 'tool call without an id'
  if (call.name === '') return 'tool call without a name'
  if (call.partialJson !== undefined) return 'tool call that was never finished'
  if (call.invalidArguments === '') return 'tool call without input'
  return undefined
}
