import { change, editItems, type Change, type Item, type StepContext, type StepResult } from './item.ts'

/**
 * The original's `downgradeOpenAIReasoningBlocks`. OpenAI Responses refuses a reasoning item that is not directly
 * followed by the message or call it led to, so one that stands alone or in front of another goes. Reasoning of
 * another model has gone already.
 */
export function downgradeOpenAIReasoningBlocks(items: readonly Item[], context: StepContext): StepResult {
  if (context.policy.replayThinking !== 'reasoning-items') return { items, changes: [] }
  const changes: Change[] = []
  const downgraded = editItems(items, (item) => {
    if (item.message.role !== 'assistant') return item
    const blocks = item.message.content
    const content = blocks.filter((block, at) => {
      const next = blocks[at + 1]
      return block.type !== 'thinking' || (next !== undefined && next.type !== 'thinking')
    })
    if (content.length === blocks.length) return item
    changes.push(
      change('openai-reasoning', 'dropped', 'reasoning without what it led to', item, blocks.length - content.length),
    )
    return content.length === 0 ? undefined : { ...item, message: { ...item.message, content } }
  })
  return { items: downgraded, changes }
}
