import type { ToolResultMessage } from '../core/message.ts'
import { change, editItems, type Change, type Item, type StepResult } from './item.ts'

/** The original's `stripToolResultDetails`: details are for people and programs, and may hold unchecked data. */
export function stripToolResultDetails(items: readonly Item[]): StepResult {
  const changes: Change[] = []
  const stripped = editItems(items, (item) => {
    if (item.message.role !== 'toolResult' || !('details' in item.message)) return item
    changes.push(change('strip-details', 'rewritten', 'details', item))
    return { ...item, message: withoutDetails(item.message) }
  })
  return { items: stripped, changes }
}

const known = new WeakMap<ToolResultMessage, ToolResultMessage>()

/** Remembered, because almost every result has details and the history is prepared before every request. */
function withoutDetails(message: ToolResultMessage): ToolResultMessage {
  const before = known.get(message)
  if (before !== undefined) return before
  const { details: _, ...rest } = message
  known.set(message, rest)
  return rest
}
