import type { JsonObject } from '../../base/json.ts'
import type { AssistantMessage, ToolCallBlock, UserMessage } from '../../core/message.ts'
import { mapToolIds, type WireIds } from '../../core/wire-ids.ts'
import {
  dataUrl,
  imageBlocks,
  isOwnAnswer,
  objectSchema,
  thinkingLevelOf,
  toolResultText,
  userBlocks,
  type EncodeOptions,
} from '../encoding.ts'
import { isOpenAiReasoningModel, openAiEffort } from '../openai-effort.ts'
import type { EncodedRequest, ModelRequest } from '../provider.ts'
import { chatSampling } from '../sampling.ts'
import { isBlank, wellFormed, wellFormedJson, wireToolName } from '../wire-text.ts'
import { isJsonObject, parseJsonObject } from '../json-object.ts'
import { isReasoningField } from './reasoning-field.ts'
import { toTemplateTurns } from './template-turns.ts'
import type { ChatMessage } from './merge-turns.ts'

export interface CompletionsOptions extends EncodeOptions {
  /** `compatible`: the older fields every server knows, in turns that every chat template renders. */
  readonly dialect: 'openai' | 'compatible'
}

export function encodeOpenAiCompletions(request: ModelRequest, options: CompletionsOptions): EncodedRequest {
  const compatible = options.dialect === 'compatible'
  const messages = toMessages(request, options)
  const limit = compatible ? 'max_tokens' : 'max_completion_tokens'
  const body = {
    model: request.model,
    ...(request.tools.length === 0 ? {} : { tools: request.tools.map(toTool) }),
    [limit]: request.maxOutputTokens,
    ...reasoningFields(request, options),
    ...chatSampling(request, 'required'),
    ...(request.cacheKey === undefined || compatible ? {} : { prompt_cache_key: request.cacheKey.slice(0, 64) }),
    stream: true,
    stream_options: { include_usage: true },
    messages: compatible ? toTemplateTurns(messages, request.plainTurns === true) : messages,
  }
  return { model: request.model, body: JSON.stringify(body) }
}

export function toTool(tool: ModelRequest['tools'][number]): JsonObject {
  const { name, description, parameters } = tool
  return { type: 'function', function: { name, description, parameters: objectSchema(parameters) } }
}

function reasoningFields(request: ModelRequest, options: CompletionsOptions): JsonObject {
  const level = thinkingLevelOf(request)
  const automatic = options.dialect === 'openai' && isOpenAiReasoningModel(request.model) ? 'effort' : 'none'
  const style = options.reasoning ?? automatic
  if (style === 'thinking') return { thinking: { type: level === 'off' ? 'disabled' : 'enabled' } }
  if (style === 'enable-thinking') return { enable_thinking: level !== 'off' }
  if (level === 'off') return {}
  if (style === 'nested') return { reasoning: { effort: level } }
  if (style !== 'effort') return {}
  const effort = openAiEffort(request.model, level)
  return effort === undefined ? {} : { reasoning_effort: effort }
}

function toMessages(request: ModelRequest, options: CompletionsOptions): readonly ChatMessage[] {
  // The templates of Mistral's open models raise an error on any other form.
  const ids = mapToolIds(request.messages, options.dialect === 'compatible' ? 'strict9' : 'strict')
  const messages: ChatMessage[] = []
  if (!isBlank(request.system)) messages.push({ role: 'system', content: wellFormed(request.system) })
  // A tool message holds text only; images follow as a user message behind the last result of the group.
  let images: JsonObject[] = []
  const flush = (): void => {
    if (images.length > 0) messages.push({ role: 'user', content: [IMAGES_OF_RESULTS, ...images] })
    images = []
  }
  request.messages.forEach((message, at) => {
    if (message.role !== 'toolResult') flush()
    if (message.role === 'user') messages.push(...toUser(message))
    if (message.role === 'assistant') messages.push(...toAssistant(message, at, ids, request.model, options))
    if (message.role === 'toolResult') {
      const content = toolResultText(message.content, message.isError)
      messages.push({ role: 'tool', tool_call_id: ids.idOfResult(at), content })
      for (const image of imageBlocks(message.content)) images.push(toPart(image))
    }
  })
  flush()
  return messages
}

const IMAGES_OF_RESULTS: JsonObject = { type: 'text', text: 'Images from the tool results above:' }

function toUser(message: UserMessage): readonly ChatMessage[] {
  const blocks = userBlocks(message.content)
  if (blocks.length === 0) return []
  // Plain text as a string: many local templates know nothing else.
  if (blocks.every((block) => block.type === 'text')) {
    return [{ role: 'user', content: blocks.map((block) => block.text).join('\n') }]
  }
  return [{ role: 'user', content: blocks.map(toPart) }]
}

function toPart(block: ReturnType<typeof userBlocks>[number]): JsonObject {
  if (block.type === 'text') return { type: 'text', text: block.text }
  return { type: 'image_url', image_url: { url: dataUrl(block) } }
}

function toAssistant(
  message: AssistantMessage,
  at: number,
  ids: WireIds,
  model: string,
  options: CompletionsOptions,
): readonly ChatMessage[] {
  const own = isOwnAnswer(message, 'openai-completions', options.provider, model)
  const said = options.dialect === 'compatible' ? withoutChannelMarks : wellFormed
  const texts: string[] = []
  const calls: JsonObject[] = []
  message.content.forEach((block, position) => {
    if (block.type === 'text' && !isBlank(block.text)) texts.push(block.text)
    if (block.type === 'toolCall') calls.push(toCall(block, ids.idOfCall(at, position), own))
  })
  if (texts.length === 0 && calls.length === 0) return []
  return [
    {
      role: 'assistant',
      // Templates trim the content and join it with strings, calls or not.
      content: texts.length === 0 && options.dialect === 'openai' ? null : said(texts.join('\n')),
      ...(own ? reasoningOf(message, said) : {}),
      ...(calls.length === 0 ? {} : { tool_calls: calls }),
    },
  ]
}

/** Servers of gpt-oss have let its marks through into an answer, and its template refuses an answer that holds them. */
const withoutChannelMarks = (text: string): string => wellFormed(text).replaceAll('<|channel|>', '<| channel |>')

export function toCall(block: ToolCallBlock, id: string, own: boolean): JsonObject {
  return {
    id,
    type: 'function',
    function: { name: wireToolName(block.name), arguments: JSON.stringify(wellFormedJson(block.arguments)) },
    ...(own ? callExtras(block.thoughtSignature) : {}),
  }
}

/** Gemini behind an OpenAI-compatible door signs its calls in `extra_content` and wants that back. */
function callExtras(signature: string | undefined): JsonObject {
  const extras = signature?.startsWith('{') === true ? parseJsonObject(signature) : undefined
  return isJsonObject(extras?.['google']) ? { extra_content: extras } : {}
}

/** DeepSeek, Kimi and others want the reasoning of a tool loop back, in the field they sent it in. */
function reasoningOf(message: AssistantMessage, said: (text: string) => string): JsonObject {
  const blocks = message.content.flatMap((block) =>
    block.type === 'thinking' && isReasoningField(block.thinkingSignature) && !isBlank(block.thinking) ? [block] : [],
  )
  const field = blocks[0]?.thinkingSignature
  return field === undefined ? {} : { [field]: said(blocks.map((block) => block.thinking).join('\n')) }
}
