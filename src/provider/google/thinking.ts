import type { JsonObject } from '../../base/json.ts'
import { thinkingLevelOf, type ReasoningStyle, type ThinkingLevel } from '../encoding.ts'
import type { ModelRequest } from '../provider.ts'

/** 2.5 for `gemini-2.5-pro`; 0 for what is not a Gemini; a name without a number is the newest. */
export function geminiGeneration(model: string): number {
  const id = model.toLowerCase()
  if (!id.includes('gemini')) return 0
  const version = /gemini-(?:[a-z]+-)?(\d+(?:\.\d+)?)/.exec(id)?.[1]
  return version === undefined ? 3 : Number(version)
}

const BUDGETS: Readonly<Record<ThinkingLevel, number>> = {
  off: 0,
  minimal: 512,
  low: 2048,
  medium: 8192,
  high: 24_576,
  xhigh: 24_576,
}

export function googleThinking(request: ModelRequest, configured: ReasoningStyle | undefined): JsonObject {
  const level = thinkingLevelOf(request)
  const style = configured ?? googleReasoningStyle(request.model)
  if (style === 'level') {
    return level === 'off'
      ? {}
      : { thinkingConfig: { includeThoughts: true, thinkingLevel: levelOf(request.model, level) } }
  }
  if (style !== 'budget') return {}
  // 2.5 Pro cannot stop thinking; the others think by default.
  if (level === 'off') return /pro/i.test(request.model) ? {} : { thinkingConfig: { thinkingBudget: 0 } }
  return { thinkingConfig: { includeThoughts: true, thinkingBudget: BUDGETS[level] } }
}

export function googleReasoningStyle(model: string): ReasoningStyle {
  const generation = geminiGeneration(model)
  if (generation >= 3) return 'level'
  return generation >= 2.5 ? 'budget' : 'none'
}

/** Pro knows two levels in every version. */
function levelOf(model: string, level: ThinkingLevel): string {
  if (/pro/i.test(model)) return level === 'minimal' || level === 'low' ? 'LOW' : 'HIGH'
  return level === 'xhigh' ? 'HIGH' : level.toUpperCase()
}
