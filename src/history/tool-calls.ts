import type { AssistantBlock, AssistantMessage, ToolCallBlock } from '../core/message.ts'
import { change, unchanged, type Change, type Item, type StepContext, type StepResult } from './item.ts'
import { toldCallText, toldResultText } from './texts.ts'

/**
 * Calls and results as plain text, where the policy wants it: an answer says what it called, and a user message what
 * came back. Runs behind pairing, so every call still stands in front of its result.
 */
export function tellToolCalls(items: readonly Item[], { policy }: Pick<StepContext, 'policy'>): StepResult {
  if (policy.toolCalls !== 'as-text') return unchanged(items)
  const changes: Change[] = []
  const rewritten = items.map((item): Item => {
    const { message } = item
    if (message.role === 'toolResult') {
      changes.push(change('tool-calls', 'rewritten', 'result told as text', item))
      const head = { type: 'text', text: toldResultText(message.toolName, message.isError) } as const
      const content = [head, ...message.content]
      return {
        kind: 'context',
        sources: item.sources,
        message: { role: 'user', content, timestamp: message.timestamp },
      }
    }
    if (message.role !== 'assistant' || !message.content.some(isCall)) return item
    changes.push(change('tool-calls', 'rewritten', 'calls told as text', item, message.content.filter(isCall).length))
    return { ...item, message: { ...message, content: message.content.map(toldBlock) } }
  })
  return changes.length === 0 ? unchanged(items) : { items: rewritten, changes }
}

function toldBlock(block: AssistantBlock): AssistantBlock {
  return isCall(block) ? { type: 'text', text: toldCallText(block.name, block.arguments) } : block
}

/**
 * Calls that were made together become rounds, each of one call and its result, where the policy wants it: templates of
 * local models refuse a second call in one answer. Runs last, on paired items, so the results stand in call order.
 */
export function splitParallelCalls(items: readonly Item[], { policy }: Pick<StepContext, 'policy'>): StepResult {
  if (policy.toolCalls !== 'one-per-answer') return unchanged(items)
  const changes: Change[] = []
  const split: Item[] = []
  for (let at = 0; at < items.length; at++) {
    const item = items[at]
    if (item === undefined) continue
    const rounds = item.message.role === 'assistant' ? roundsOf(item.message) : []
    if (rounds.length < 2) {
      split.push(item)
      continue
    }
    changes.push(change('tool-calls', 'rewritten', 'one call per answer', item, rounds.length))
    for (const [round, message] of rounds.entries()) {
      // Of messages that were joined, only the last holds calls.
      split.push({ ...item, sources: round === 0 ? item.sources : item.sources.slice(-1), message })
      const result = items[++at]
      if (result !== undefined) split.push(result)
    }
  }
  return changes.length === 0 ? unchanged(items) : { items: split, changes }
}

/** The blocks up to and with each call; what stands behind the last call stays with it. */
function roundsOf(message: AssistantMessage): readonly AssistantMessage[] {
  const rounds: AssistantBlock[][] = []
  let open: AssistantBlock[] = []
  for (const block of message.content) {
    open.push(block)
    if (!isCall(block)) continue
    rounds.push(open)
    open = []
  }
  rounds.at(-1)?.push(...open)
  return rounds.map((content) => ({ ...message, content }))
}

const isCall = (block: AssistantBlock): block is ToolCallBlock => block.type === 'toolCall'
