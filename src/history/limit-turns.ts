import { change, type Change, type Item, type StepContext, type StepResult } from './item.ts'

/**
 * The original's `limitHistoryTurns`: exactly the last N user messages with what followed them, and every summary, which
 * is the memory of what was cut before. Nothing but the limit decides; a call and its results belong to one turn.
 */
export function limitHistoryTurns(items: readonly Item[], context: Pick<StepContext, 'historyLimit'>): StepResult {
  const start = startOfLastTurns(items, context.historyLimit)
  if (start <= 0) return { items, changes: [] }
  const changes: Change[] = []
  const kept = items.filter((item, at) => {
    if (at >= start || item.kind === 'summary') return true
    changes.push(change('limit-turns', 'dropped', 'history limit', item))
    return false
  })
  return kept.length === items.length ? { items, changes: [] } : { items: kept, changes }
}

function startOfLastTurns(items: readonly Item[], limit: number): number {
  if (!(limit > 0)) return 0
  let turns = 0
  for (let at = items.length - 1; at >= 0; at--) {
    if (items[at]?.kind !== 'user') continue
    turns++
    if (turns >= limit) return at
  }
  return 0
}
