import { createHash } from 'node:crypto'
import { isRecord, type JsonObject } from '../base/json.ts'
import type { Entry } from '../core/entry.ts'
import type { PreparedMessage } from '../core/message.ts'

/** The custom entry with what goes with a history into a request; appended when it changes, not with every request. */
export const PROMPT_ENTRY_TYPE = 'clew.prompt'

/** Everything in a request that is not history, as the provider's encoder takes it. */
export interface PromptParts {
  readonly system: string
  readonly tools: readonly { readonly name: string; readonly description: string; readonly parameters: JsonObject }[]
  readonly maxOutputTokens: number
  readonly thinkingLevel: string
  readonly cacheKey?: string
}

/** Data of a `clew.prompt` entry. Equal parts have equal refs. */
export interface PromptRecord extends PromptParts {
  readonly ref: string
}

export interface RebuiltRequest extends PromptParts {
  readonly model: string
  readonly messages: readonly PreparedMessage[]
}

export function createPromptRecord(parts: PromptParts): PromptRecord {
  const { system, tools, maxOutputTokens, thinkingLevel, cacheKey } = parts
  const text = JSON.stringify([system, tools, maxOutputTokens, thinkingLevel, cacheKey ?? null])
  return { ...parts, ref: createHash('sha256').update(text).digest('hex').slice(0, 16) }
}

export function findPrompt(entries: readonly Entry[], ref: string): PromptRecord | undefined {
  for (const entry of entries) {
    if (entry.type !== 'custom' || entry.customType !== PROMPT_ENTRY_TYPE) continue
    if (isPromptRecord(entry.data) && entry.data.ref === ref) return entry.data
  }
  return undefined
}

function isPromptRecord(data: unknown): data is PromptRecord {
  if (!isRecord(data)) return false
  const { ref, system, tools, maxOutputTokens, thinkingLevel } = data
  const isText = [ref, system, thinkingLevel].every((field) => typeof field === 'string')
  return isText && Array.isArray(tools) && typeof maxOutputTokens === 'number'
}
