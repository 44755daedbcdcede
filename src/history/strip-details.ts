import { change, editItems, type Change, type Item, type StepResult } from './item.ts'

/** The original's `stripToolResultDetails`: details are for people and programs, and may hold what nobody vouches for. */
export function stripToolResultDetails(items: readonly Item[]): StepResult {
  const changes: Change[] = []
  const stripped = editItems(items, (item) => {
    if (item.message.role !== 'toolResult' || !('details' in item.message)) return item
    const { details: _, ...message } = item.message
    changes.push(change('strip-details', 'rewritten', 'details', item))
    return { ...item, message }
  })
  return { items: stripped, changes }
}
