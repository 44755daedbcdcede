import { assertNever } from '../base/assert-never.ts'
import { matchesGlob } from '../base/text.ts'
import { estimateMessageTokens } from '../core/tokens.ts'
import type { ToolResultMessage } from '../core/message.ts'
import type { PruningSettings } from './budget.ts'
import type { StickyDecision } from './view-records.ts'
import { change, editItems, unchanged, type Change, type Item, type StepContext, type StepResult } from './item.ts'
import { clearResult, textLength, trimResult, truncateResult, withMessage } from './result-text.ts'

/**
 * What earlier requests decided about results, then `contextPruning.mode: "cache-ttl"`: once the provider's cache is
 * cold anyway, old tool results are trimmed and, if that is not enough, cleared. Users' and assistants' words never
 * change, and the last assistant turns are safe.
 */
export function pruneContext(items: readonly Item[], context: StepContext): StepResult {
  const repeated = repeatDecisions(items, context)
  if (!isCold(items, context)) return repeated
  const pruned = prune(repeated.items, context)
  return { ...pruned, changes: [...repeated.changes, ...pruned.changes] }
}

function repeatDecisions(items: readonly Item[], { sticky, budget }: StepContext): StepResult {
  if (sticky.size === 0) return unchanged(items)
  const changes: Change[] = []
  const repeated = editItems(items, (item) => {
    const decisions = item.sources[0] === undefined ? undefined : sticky.get(item.sources[0])
    if (decisions === undefined || item.message.role !== 'toolResult') return item
    let { message } = item
    for (const decision of decisions) message = decided(message, decision, budget.pruning) ?? message
    if (message === item.message) return item
    const last = decisions.map(({ action }) => action).findLast((action) => action !== 'leave-out')
    if (last === undefined) return item
    changes.push(change('prune', 'rewritten', `${last}, as in an earlier request`, item))
    return withMessage(item, message)
  })
  return { items: repeated, changes }
}

function decided(
  message: ToolResultMessage,
  decision: StickyDecision,
  pruning: PruningSettings,
): ToolResultMessage | undefined {
  switch (decision.action) {
    case 'trim':
      return trimResult(message, pruning.softTrim)
    case 'clear':
      return clearResult(message, pruning.hardClear.placeholder)
    case 'truncate':
      return textLength(message) > (decision.chars ?? Infinity)
        ? truncateResult(message, decision.chars ?? Infinity)
        : undefined
    case 'leave-out':
      return undefined
    default:
      return assertNever(decision.action)
  }
}

export function isCold(items: readonly Item[], { budget, now }: StepContext): boolean {
  if (budget.pruning.mode !== 'cache-ttl') return false
  const lastAnswer = items.findLast((item) => item.message.role === 'assistant')?.message.timestamp ?? 0
  return lastAnswer > 0 && now - lastAnswer > budget.pruning.ttlMs
}

function prune(items: readonly Item[], context: StepContext): StepResult {
  const { pruning } = context.budget
  const eligible = eligibleResults(items, pruning)
  const size = createSize(items, context)
  if (eligible.length === 0 || size.ratio() < pruning.softTrimRatio) return unchanged(items)
  const edited = [...items]
  const changes: Change[] = []
  const decisions: StickyDecision[] = []
  const replace = (at: number, message: ToolResultMessage, action: 'trim' | 'clear'): void => {
    const item = edited[at]
    if (item === undefined) return
    size.replace(item.message, message)
    edited[at] = withMessage(item, message)
    changes.push(change('prune', 'rewritten', action === 'trim' ? 'old result trimmed' : 'old result cleared', item))
    if (item.sources[0] !== undefined) decisions.push({ entry: item.sources[0], action })
  }
  for (const at of eligible) {
    const trimmed = trimResult(resultAt(edited, at), pruning.softTrim)
    if (trimmed !== undefined) replace(at, trimmed, 'trim')
  }
  const prunable = eligible.reduce((sum, at) => sum + textLength(resultAt(edited, at)), 0)
  if (pruning.hardClear.enabled && prunable >= pruning.minPrunableToolChars) {
    for (const at of eligible) {
      if (size.ratio() < pruning.hardClearRatio) break
      const cleared = clearResult(resultAt(edited, at), pruning.hardClear.placeholder)
      if (cleared !== undefined) replace(at, cleared, 'clear')
    }
  }
  return decisions.length === 0 && changes.length === 0 ? unchanged(items) : { items: edited, changes, decisions }
}

function createSize(items: readonly Item[], { budget }: StepContext) {
  let tokens = items.reduce((sum, item) => sum + estimateMessageTokens(item.message), 0)
  return {
    ratio: () => (tokens * budget.calibration) / budget.contextWindow,
    replace: (before: Item['message'], after: Item['message']) => {
      tokens += estimateMessageTokens(after) - estimateMessageTokens(before)
    },
  }
}

function resultAt(items: readonly Item[], at: number): ToolResultMessage {
  const message = items[at]?.message
  if (message?.role !== 'toolResult') throw new TypeError('only results are eligible')
  return message
}

/** Behind the first user message and before the last assistant turns, of a tool that may be pruned, without images. */
function eligibleResults(items: readonly Item[], pruning: PruningSettings): readonly number[] {
  const start = items.findIndex((item) => item.message.role === 'user')
  const end = startOfLastAssistants(items, pruning.keepLastAssistants)
  if (start < 0) return []
  return items.flatMap((item, at) => {
    if (at < start || at >= end || item.message.role !== 'toolResult') return []
    if (item.message.content.some((block) => block.type === 'image')) return []
    return mayPrune(item.message.toolName, pruning) ? [at] : []
  })
}

function startOfLastAssistants(items: readonly Item[], count: number): number {
  if (count === 0) return items.length
  let seen = 0
  for (let at = items.length - 1; at >= 0; at--) {
    if (items[at]?.message.role === 'assistant' && ++seen === count) return at
  }
  return 0
}

function mayPrune(tool: string, { allowTools, denyTools }: PruningSettings): boolean {
  if (denyTools.some((glob) => matchesGlob(glob, tool))) return false
  return allowTools.length === 0 || allowTools.some((glob) => matchesGlob(glob, tool))
}
