import type { JsonObject } from '../../base/json.ts'
import { thinkingLevelOf, type ReasoningStyle, type ThinkingLevel } from '../encoding.ts'
import type { ModelRequest } from '../provider.ts'

export interface AnthropicMessage {
  readonly role: 'user' | 'assistant'
  readonly content: readonly JsonObject[]
}

const MIN_BUDGET = 1024
const BUDGETS: Readonly<Record<ThinkingLevel, number>> = {
  off: 0,
  minimal: MIN_BUDGET,
  low: 2048,
  medium: 8192,
  high: 16_384,
  xhigh: 32_768,
}

/** The fields that ask for thinking, or none when the model, the level or the history does not allow it. */
export function anthropicThinking(
  request: ModelRequest,
  messages: readonly AnthropicMessage[],
  configured: ReasoningStyle | undefined,
): JsonObject {
  const level = thinkingLevelOf(request)
  if (level === 'off') return {}
  const style = configured ?? anthropicReasoningStyle(request.model)
  if (style === 'adaptive') {
    return {
      thinking: { type: 'adaptive', display: 'summarized' },
      output_config: { effort: effortOf(request.model, level) },
    }
  }
  // Thinking counts against max_tokens, and something has to be left for the answer.
  const budget = Math.min(BUDGETS[level], request.maxOutputTokens - MIN_BUDGET)
  if (style !== 'budget' || budget < MIN_BUDGET || continuesUnsignedLoop(messages)) return {}
  return { thinking: { type: 'enabled', budget_tokens: budget } }
}

/** Since Opus and Sonnet 4.6 the model decides how much it thinks; before 3.7 none could. */
export function anthropicReasoningStyle(model: string): ReasoningStyle {
  const id = model.toLowerCase()
  if (!id.includes('claude')) return 'budget'
  if (/claude-(?:instant|2|3-(?!7)|3$)/.test(id)) return 'none'
  if (/claude-3-7|claude-(?:opus|sonnet|haiku)-4(?:-[0-5](?!\d)|-\d{6,}|$)/.test(id)) return 'budget'
  return 'adaptive'
}

/** From Opus 4.7 on thinking comes without its text unless a summary is asked for; the signature is what counts. */
export function omitsThinkingText(model: string): boolean {
  return anthropicReasoningStyle(model) === 'adaptive' && !/-4-6/.test(model)
}

/**
 * In budget mode an answer that ends in tool calls has to start with thinking. One written by another model, or before
 * thinking was switched on, does not; the request goes without until the loop is over.
 */
function continuesUnsignedLoop(messages: readonly AnthropicMessage[]): boolean {
  const prompt = messages.findLastIndex(({ role, content }) => role === 'user' && !content.every(isResult))
  const answers = messages.slice(prompt + 1).filter(({ role }) => role === 'assistant')
  return answers.some(({ content }) => {
    const first = content[0]?.['type']
    return first !== 'thinking' && first !== 'redacted_thinking'
  })
}

function isResult(block: JsonObject): boolean {
  return block['type'] === 'tool_result'
}

function effortOf(model: string, level: ThinkingLevel): string {
  if (level === 'minimal') return 'low'
  return level === 'xhigh' && /-4-6/.test(model) ? 'high' : level
}
