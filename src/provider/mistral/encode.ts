import type { JsonObject } from '../../base/json.ts'
import type { AssistantMessage, ToolResultMessage, UserMessage } from '../../core/message.ts'
import { mapToolIds, type WireIds } from '../../core/wire-ids.ts'
import {
  callNames,
  dataUrl,
  imageBlocks,
  isOwnAnswer,
  thinkingLevelOf,
  toolResultText,
  userBlocks,
  type EncodeOptions,
} from '../encoding.ts'
import { toCall, toTool } from '../openai-completions/encode.ts'
import { mergeTurns, type ChatMessage } from '../openai-completions/merge-turns.ts'
import { bridgeResults } from '../openai-completions/template-turns.ts'
import type { EncodedRequest, ModelRequest } from '../provider.ts'
import { chatSampling } from '../sampling.ts'
import { isBlank, wellFormed, wireToolName } from '../wire-text.ts'

/** The chat dialect of Mistral: nine-character ids, no field it does not know, no user turn right behind a result. */
export function encodeMistral(request: ModelRequest, options: EncodeOptions): EncodedRequest {
  const body = {
    model: request.model,
    ...(request.tools.length === 0 ? {} : { tools: request.tools.map(toTool) }),
    max_tokens: request.maxOutputTokens,
    ...reasoningFields(request, options),
    ...chatSampling(request, 'any'),
    stream: true,
    messages: bridgeResults(mergeTurns(toMessages(request, options))),
  }
  return { model: request.model, body: JSON.stringify(body) }
}

function reasoningFields(request: ModelRequest, options: EncodeOptions): JsonObject {
  if (thinkingLevelOf(request) === 'off') return {}
  if (options.reasoning === 'effort') return { reasoning_effort: 'high' }
  if (options.reasoning !== undefined) return {}
  if (/magistral/i.test(request.model)) return { prompt_mode: 'reasoning' }
  // One effort exists besides `none`.
  return /mistral-(?:small-(?:2603|latest)|medium-3\.5)/i.test(request.model) ? { reasoning_effort: 'high' } : {}
}

function toMessages(request: ModelRequest, options: EncodeOptions): readonly ChatMessage[] {
  const ids = mapToolIds(request.messages, 'strict9')
  const names = callNames(request, ids)
  const system: readonly ChatMessage[] = isBlank(request.system)
    ? []
    : [{ role: 'system', content: wellFormed(request.system) }]
  const messages: ChatMessage[] = []
  // Hosts of the open models take only text in a tool message; its images follow the last result as the user's.
  let loose: JsonObject[] = []
  const showLoose = (): void => {
    if (loose.length > 0) messages.push({ role: 'user', content: loose })
    loose = []
  }
  request.messages.forEach((message, at) => {
    if (message.role === 'toolResult') {
      const id = ids.idOfResult(at)
      messages.push(toToolMessage(message, id, names.get(id) ?? wireToolName(message.toolName)))
      for (const image of imageBlocks(message.content)) loose.push(toChunk(image))
      return
    }
    showLoose()
    if (message.role === 'user') messages.push(...toUser(message))
    else messages.push(...toAssistant(message, at, ids, request.model, options))
  })
  showLoose()
  return [...system, ...messages]
}

function toUser(message: UserMessage): readonly ChatMessage[] {
  const blocks = userBlocks(message.content)
  if (blocks.length === 0) return []
  if (blocks.every((block) => block.type === 'text')) {
    return [{ role: 'user', content: blocks.map((block) => block.text).join('\n') }]
  }
  return [{ role: 'user', content: blocks.map(toChunk) }]
}

function toChunk(block: ReturnType<typeof userBlocks>[number]): JsonObject {
  return block.type === 'text' ? { type: 'text', text: block.text } : { type: 'image_url', image_url: dataUrl(block) }
}

function toToolMessage(message: ToolResultMessage, id: string, name: string): ChatMessage {
  return { role: 'tool', tool_call_id: id, name, content: toolResultText(message.content, message.isError) }
}

function toAssistant(
  message: AssistantMessage,
  at: number,
  ids: WireIds,
  model: string,
  options: EncodeOptions,
): readonly ChatMessage[] {
  const own = isOwnAnswer(message, 'mistral-conversations', options.provider, model)
  const chunks: JsonObject[] = []
  const calls: JsonObject[] = []
  message.content.forEach((block, position) => {
    if (block.type === 'toolCall') calls.push(toCall(block, ids.idOfCall(at, position), false))
    else if (block.type === 'text' && !isBlank(block.text)) chunks.push({ type: 'text', text: wellFormed(block.text) })
    else if (block.type === 'thinking' && own && !isBlank(block.thinking))
      chunks.push({ type: 'thinking', thinking: [{ type: 'text', text: wellFormed(block.thinking) }] })
  })
  if (calls.length === 0 && !chunks.some((chunk) => chunk['type'] === 'text')) return []
  const content = chunks.some((chunk) => chunk['type'] === 'thinking') ? chunks : plainText(message)
  return [{ role: 'assistant', content, ...(calls.length === 0 ? {} : { tool_calls: calls }) }]
}

function plainText(message: AssistantMessage): string {
  const texts = message.content.flatMap((block) => (block.type === 'text' && !isBlank(block.text) ? [block.text] : []))
  return wellFormed(texts.join('\n'))
}
