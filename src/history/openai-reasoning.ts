import type { ThinkingBlock } from '../core/message.ts'
import { change, editItems, type Change, type Item, type StepContext, type StepResult } from './item.ts'
import { openAiReasoningId } from './thinking.ts'

/**
 * The original's `downgradeOpenAIReasoningBlocks`. OpenAI Responses refuses a reasoning item that is not directly
 * followed by the message or call it led to, so one that stands alone or in front of another goes. Reasoning of
 * another model has gone already.
 */
export function downgradeOpenAIReasoningBlocks(items: readonly Item[], context: StepContext): StepResult {
  if (context.policy.replayThinking !== 'reasoning-items') return { items, changes: [] }
  const changes: Change[] = []
  const seen = new Set<string>()
  const downgraded = editItems(items, (item) => {
    if (item.message.role !== 'assistant') return item
    const blocks = item.message.content
    const content = blocks.filter((block, at) => {
      const next = blocks[at + 1]
      if (block.type !== 'thinking') return true
      return next !== undefined && next.type !== 'thinking' && isFirst(block, seen)
    })
    if (content.length === blocks.length) return item
    changes.push(
      change('openai-reasoning', 'dropped', 'reasoning without what it led to', item, blocks.length - content.length),
    )
    return content.length === 0 ? undefined : { ...item, message: { ...item.message, content } }
  })
  return { items: downgraded, changes }
}

/** An item's id may stand in a request once, also when a file holds the answer twice. */
function isFirst({ thinkingSignature = '' }: ThinkingBlock, seen: Set<string>): boolean {
  const id = openAiReasoningId(thinkingSignature)
  if (id === undefined || seen.has(id)) return false
  seen.add(id)
  return true
}
