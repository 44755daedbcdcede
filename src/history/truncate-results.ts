import { estimateMessageTokens, IMAGE_TOKENS, maxTokensOfChars, MESSAGE_OVERHEAD_TOKENS } from '../core/tokens.ts'
import type { ToolResultMessage } from '../core/message.ts'
import { maxCharsPerResult, maxTokensPerResult, type HistoryBudget } from './budget.ts'
import type { StickyDecision } from './view-records.ts'
import { change, editItems, type Change, type Item, type StepContext, type StepResult } from './item.ts'
import {
  clearResult,
  startOfLatestBatch,
  textLength,
  textTokens,
  trimResult,
  truncateResult,
  withMessage,
} from './result-text.ts'

/**
 * The original's `truncateOversizedToolResultsInMessages`, in the view only: no result above its share of the window,
 * and all results together within theirs, oldest first; the results the model has not answered yet come last.
 */
export function truncateOversizedToolResults(items: readonly Item[], context: StepContext): StepResult {
  const single = truncateEach(items, context)
  const together = truncateTogether(single.items, context)
  return {
    items: together.items,
    changes: [...single.changes, ...together.changes],
    decisions: [...(single.decisions ?? []), ...(together.decisions ?? [])],
  }
}

/** The original's `sessionLikelyHasOversizedToolResults`: would truncation help after the provider reported an overflow? */
export function hasOversizedToolResults(
  items: readonly { readonly message: Item['message'] }[],
  budget: HistoryBudget,
): boolean {
  return items.some(({ message }) => message.role === 'toolResult' && isOversized(message, budget))
}

function isOversized(message: ToolResultMessage, budget: HistoryBudget): boolean {
  const chars = textLength(message)
  if (chars > maxCharsPerResult(budget)) return true
  // Short ones need not be counted.
  return (
    maxTokensOfChars(chars) * budget.calibration > maxTokensPerResult(budget) &&
    textTokens(message) * budget.calibration > maxTokensPerResult(budget)
  )
}

function truncateEach(items: readonly Item[], { budget }: StepContext): StepResult {
  const changes: Change[] = []
  const decisions: StickyDecision[] = []
  const truncated = editItems(items, (item) => {
    const { message } = item
    if (message.role !== 'toolResult' || !isOversized(message, budget)) return item
    const chars = charsThatFit(message, budget)
    const shorter = truncateResult(message, chars)
    changes.push(
      change(
        'truncate-results',
        'rewritten',
        'result larger than its share of the window',
        item,
        textLength(message) - textLength(shorter),
      ),
    )
    if (item.sources[0] !== undefined) decisions.push({ entry: item.sources[0], action: 'truncate', chars })
    return withMessage(item, shorter)
  })
  return { items: truncated, changes, decisions }
}

/** Characters within both limits: fewer for scripts with more tokens per character. */
function charsThatFit(message: ToolResultMessage, budget: HistoryBudget): number {
  const maxTokens = maxTokensPerResult(budget) / budget.calibration
  let chars = Math.min(maxCharsPerResult(budget), textLength(message))
  for (let tokens = textTokens(truncateResult(message, chars)); tokens > maxTokens && chars > 1;) {
    chars = Math.max(1, Math.floor(Math.min(chars * 0.95, (chars * maxTokens) / tokens)))
    tokens = textTokens(truncateResult(message, chars))
  }
  return chars
}

function truncateTogether(items: readonly Item[], { budget }: StepContext): StepResult {
  const limit = (budget.contextWindow * budget.maxAllToolResultsShare) / budget.calibration
  const results = items.flatMap((item, at) => (item.message.role === 'toolResult' ? [at] : []))
  if (results.reduce((sum, at) => sum + maxSizeAt(items, at), 0) <= limit) return { items, changes: [] }
  let tokens = results.reduce((sum, at) => sum + sizeAt(items, at), 0)
  if (tokens <= limit) return { items, changes: [] }
  const latest = startOfLatestBatch(items)
  const edited = [...items]
  const changes: Change[] = []
  const decisions: StickyDecision[] = []
  const shorten = (action: 'trim' | 'clear'): void => {
    for (const at of results) {
      const item = edited[at]
      if (tokens <= limit || at >= latest || item?.message.role !== 'toolResult') continue
      const { softTrim, hardClear } = budget.pruning
      const message =
        action === 'trim' ? trimResult(item.message, softTrim) : clearResult(item.message, hardClear.placeholder)
      if (message === undefined) continue
      tokens += estimateMessageTokens(message) - estimateMessageTokens(item.message)
      edited[at] = withMessage(item, message)
      changes.push(
        change('truncate-results', 'rewritten', 'results together larger than their share of the window', item),
      )
      if (item.sources[0] !== undefined) decisions.push({ entry: item.sources[0], action })
    }
  }
  shorten('trim')
  shorten('clear')
  return { items: edited, changes, decisions }
}

/** Almost always enough to know that there is room, without counting. */
function maxSizeAt(items: readonly Item[], at: number): number {
  const message = items[at]?.message
  if (message?.role !== 'toolResult') return 0
  let chars = 0
  let images = 0
  for (const block of message.content) {
    if (block.type === 'text') chars += block.text.length
    else images++
  }
  // Each block is rounded up on its own.
  return MESSAGE_OVERHEAD_TOKENS + message.content.length + maxTokensOfChars(chars) + images * IMAGE_TOKENS
}

const sizeAt = (items: readonly Item[], at: number): number => {
  const message = items[at]?.message
  return message === undefined ? 0 : estimateMessageTokens(message)
}
