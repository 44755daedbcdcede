import { isRecord, type JsonObject } from '../base/json.ts'
import type { AssistantMessage, ImageBlock, UserBlock } from '../core/message.ts'
import { textOf } from '../core/message.ts'
import type { WireIds } from '../core/wire-ids.ts'
import type { ModelApi, ModelRequest } from './provider.ts'
import { isBlank, wellFormed, wellFormedJson, wireToolName } from './wire-text.ts'

/** What an encoder knows besides the request: who is being spoken to, and in which dialect. */
export interface EncodeOptions {
  readonly provider: string
  /** How the endpoint takes a thinking level; by default the model's id decides. */
  readonly reasoning?: ReasoningStyle
}

/**
 * `none`: never sent · `effort`: OpenAI's `reasoning_effort` · `thinking`: DeepSeek's and Kimi's `thinking.type` ·
 * `enable-thinking`: Qwen's · `nested`: OpenRouter's `reasoning.effort` · `budget`, `adaptive`: Anthropic's ·
 * `level`: Gemini 3.
 */
export type ReasoningStyle =
  | 'none'
  | 'effort'
  | 'thinking'
  | 'enable-thinking'
  | 'nested'
  | 'budget'
  | 'adaptive'
  | 'level'

export type ThinkingLevel = 'off' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh'

const LEVELS: readonly ThinkingLevel[] = ['off', 'minimal', 'low', 'medium', 'high', 'xhigh']

export function thinkingLevelOf(request: ModelRequest): ThinkingLevel {
  return LEVELS.find((level) => level === request.thinkingLevel) ?? 'off'
}

/** Opaque blocks are worth something only to the model that made them. */
export function isOwnAnswer(message: AssistantMessage, api: ModelApi, provider: string, model: string): boolean {
  return message.api === api && message.provider === provider && message.model === model
}

/** What stands in for a tool result without text: no API takes an empty one from every model. */
const NO_OUTPUT = '(no output)'
const SEE_IMAGE = '(see the attached image)'

/** A tool result as one text, for APIs that have no flag for errors. */
export function toolResultText(content: readonly UserBlock[], isError: boolean): string {
  const text = wellFormed(textOf(content))
  if (isBlank(text)) return content.some((block) => block.type === 'image') ? SEE_IMAGE : NO_OUTPUT
  return isError && !/^\W*error/i.test(text) ? `Error: ${text}` : text
}

/** User content as blocks without blank text. */
export function userBlocks(content: string | readonly UserBlock[]): readonly UserBlock[] {
  const blocks: readonly UserBlock[] = typeof content === 'string' ? [{ type: 'text', text: content }] : content
  const kept: UserBlock[] = []
  for (const block of blocks) {
    if (block.type === 'image') {
      if (block.data !== '') kept.push(block)
    } else if (!isBlank(block.text)) {
      kept.push({ type: 'text', text: wellFormed(block.text) })
    }
  }
  return kept
}

/** The images among them; most content has none. */
export function imageBlocks(content: readonly UserBlock[]): readonly ImageBlock[] {
  return content.filter((block): block is ImageBlock => block.type === 'image' && block.data !== '')
}

/** Parameters as every API takes them: an object, without alternatives at the top level (MCP servers offer both). */
export function objectSchema(parameters: JsonObject): JsonObject {
  const before = knownSchemas.get(parameters)
  if (before !== undefined) return before
  const { oneOf: _one, anyOf: _any, allOf: _all, ...rest } = wellFormedJson(parameters)
  const schema = { ...rest, type: 'object', properties: isRecord(rest['properties']) ? rest['properties'] : {} }
  knownSchemas.set(parameters, schema)
  return schema
}

/** A tool is declared in every request of its session, and what it takes can be long. */
const knownSchemas = new WeakMap<JsonObject, JsonObject>()

export function dataUrl(image: { readonly mimeType: string; readonly data: string }): string {
  return `data:${image.mimeType};base64,${image.data}`
}

/** The name each call is made under, by wire id: a result has to carry its call's, whatever it was stored with. */
export function callNames(request: ModelRequest, ids: WireIds): ReadonlyMap<string, string> {
  const names = new Map<string, string>()
  request.messages.forEach((message, at) => {
    if (message.role !== 'assistant') return
    message.content.forEach((block, position) => {
      if (block.type === 'toolCall') names.set(ids.idOfCall(at, position), wireToolName(block.name))
    })
  })
  return names
}
