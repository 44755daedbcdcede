import { NO_USAGE } from '../core/message.ts'
import { change, type Change, type Item, type StepContext, type StepResult } from './item.ts'
import { PLACEHOLDERS } from './texts.ts'

/**
 * The original's `applyGoogleTurnOrderingFix`, and what other providers demand of the order: a user message first, a
 * user message or tool result last, for some an assistant message between a result and the next user message.
 */
export function applyTurnOrder(items: readonly Item[], { policy, target }: StepContext): StepResult {
  const changes: Change[] = []
  const ordered: Item[] = []
  const first = items.at(0)
  if (
    first?.message.role !== 'user' &&
    (policy.startWithUser || policy.applyGoogleTurnOrdering || first === undefined)
  ) {
    ordered.push(userFiller(first === undefined ? PLACEHOLDERS.emptyHistory : PLACEHOLDERS.sessionBootstrap, first))
    changes.push(change('turn-order', 'added', 'a history begins with a user message'))
  }
  for (const item of items) {
    const previous = ordered.at(-1)
    if (policy.bridgeToolResults && item.message.role === 'user' && previous?.message.role === 'toolResult') {
      ordered.push(bridge(previous, target))
      changes.push(change('turn-order', 'added', 'an answer stands between a result and the next message'))
    }
    ordered.push(item)
  }
  if (ordered.at(-1)?.message.role === 'assistant') {
    ordered.push(userFiller(PLACEHOLDERS.blankUser, items.at(-1)))
    changes.push(change('turn-order', 'added', 'a request ends with a user message'))
  }
  return changes.length === 0 ? { items, changes } : { items: ordered, changes }
}

function userFiller(text: string, near: Item | undefined): Item {
  const timestamp = near?.message.timestamp ?? 0
  return { kind: 'filler', sources: [], message: { role: 'user', content: [{ type: 'text', text }], timestamp } }
}

function bridge(result: Item, target: StepContext['target']): Item {
  return {
    kind: 'filler',
    sources: [],
    message: {
      role: 'assistant',
      content: [{ type: 'text', text: PLACEHOLDERS.toolResultsNoted }],
      api: target.api,
      provider: target.provider,
      model: target.model,
      usage: NO_USAGE,
      stopReason: 'stop',
      timestamp: result.message.timestamp,
    },
  }
}
