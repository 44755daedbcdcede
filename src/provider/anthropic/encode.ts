import { assertNever } from '../../base/assert-never.ts'
import type { JsonObject, JsonValue } from '../../base/json.ts'
import type { AssistantMessage, ThinkingBlock, ToolResultMessage } from '../../core/message.ts'
import { mapToolIds, type WireIds } from '../../core/wire-ids.ts'
import { imageBlocks, isOwnAnswer, objectSchema, toolResultText, userBlocks, type EncodeOptions } from '../encoding.ts'
import type { EncodedRequest, ModelRequest } from '../provider.ts'
import { anthropicSampling } from '../sampling.ts'
import { isBlank, isWellFormed, wellFormed, wellFormedJson, wireToolName } from '../wire-text.ts'
import { anthropicThinking, omitsThinkingText, type AnthropicMessage } from './thinking.ts'

const CACHED = { cache_control: { type: 'ephemeral' } }

export function encodeAnthropic(request: ModelRequest, options: EncodeOptions): EncodedRequest {
  const messages = toMessages(request, options)
  const tools = toTools(request, messages)
  const body = {
    model: request.model,
    max_tokens: request.maxOutputTokens,
    ...(isBlank(request.system) ? {} : { system: [{ type: 'text', text: wellFormed(request.system), ...CACHED }] }),
    ...tools,
    ...anthropicSampling(request),
    ...anthropicThinking(request, messages, options.reasoning),
    stream: true,
    messages: markCachedTurns(messages),
  }
  return { model: request.model, body: JSON.stringify(body) }
}

function toMessages(request: ModelRequest, options: EncodeOptions): readonly AnthropicMessage[] {
  const ids = mapToolIds(request.messages, 'strict')
  const turns = new TurnList()
  request.messages.forEach((message, at) => {
    if (message.role === 'assistant') {
      turns.add('assistant', assistantContent(message, at, ids, request.model, options))
    } else if (message.role === 'user') {
      turns.add('user', userBlocks(message.content).map(toUserBlock))
    } else {
      turns.addResult(toToolResult(message, ids.idOfResult(at)), imagesOfError(message))
    }
  })
  return turns.finish()
}

/** Turns alternate; results stand first in theirs, so what cannot be inside one waits for the last of them. */
class TurnList {
  readonly #turns: { role: 'user' | 'assistant'; content: JsonObject[] }[] = []
  #waiting: JsonObject[] = []

  addResult(result: JsonObject, behind: readonly JsonObject[]): void {
    this.#push('user', [result])
    this.#waiting.push(...behind)
  }

  add(role: 'user' | 'assistant', content: readonly JsonObject[]): void {
    this.#push('user', this.#waiting)
    this.#waiting = []
    this.#push(role, content)
  }

  finish(): readonly AnthropicMessage[] {
    this.add('user', [])
    return this.#turns
  }

  #push(role: 'user' | 'assistant', content: readonly JsonObject[]): void {
    if (content.length === 0) return
    const last = this.#turns.at(-1)
    if (last?.role === role) last.content.push(...content)
    else this.#turns.push({ role, content: [...content] })
  }
}

function assistantContent(
  message: AssistantMessage,
  at: number,
  ids: WireIds,
  model: string,
  options: EncodeOptions,
): readonly JsonObject[] {
  const own = isOwnAnswer(message, 'anthropic-messages', options.provider, model)
  const content = message.content.flatMap((block, position): readonly JsonObject[] => {
    switch (block.type) {
      case 'text':
        return isBlank(block.text) ? [] : [{ type: 'text', text: wellFormed(block.text) }]
      case 'thinking':
        return own ? toThinking(block, model) : []
      case 'toolCall':
        return [
          {
            type: 'tool_use',
            id: ids.idOfCall(at, position),
            name: wireToolName(block.name),
            input: wellFormedJson(block.arguments),
          },
        ]
      default:
        return assertNever(block)
    }
  })
  // An answer cut while it thought: its last block must not be thinking.
  const end = content.findLastIndex((block) => block['type'] === 'text' || block['type'] === 'tool_use')
  return content.slice(0, end + 1)
}

const SIGNATURE = /^[A-Za-z0-9+/_-]+={0,2}$/

/** Signed text cannot be repaired: what would need it goes whole. */
function toThinking(block: ThinkingBlock, model: string): readonly JsonObject[] {
  const signature = block.thinkingSignature ?? ''
  if (!SIGNATURE.test(signature)) return []
  if (block.redacted === true) return [{ type: 'redacted_thinking', data: signature }]
  if (block.thinking === '' && !omitsThinkingText(model)) return []
  return isWellFormed(block.thinking) ? [{ type: 'thinking', thinking: block.thinking, signature }] : []
}

function toToolResult(message: ToolResultMessage, id: string): JsonObject {
  const blocks = userBlocks(message.content).filter((block) => !message.isError || block.type === 'text')
  const content = blocks.map(toUserBlock)
  return {
    type: 'tool_result',
    tool_use_id: id,
    content: content.length === 0 ? [{ type: 'text', text: toolResultText(message.content, false) }] : content,
    ...(message.isError ? { is_error: true } : {}),
  }
}

/** A result marked as an error holds text only; its images follow behind the results. */
function imagesOfError(message: ToolResultMessage): readonly JsonObject[] {
  if (!message.isError) return []
  return imageBlocks(message.content).map(toUserBlock)
}

function toUserBlock(block: ReturnType<typeof userBlocks>[number]): JsonObject {
  if (block.type === 'text') return { type: 'text', text: block.text }
  return { type: 'image', source: { type: 'base64', media_type: block.mimeType, data: block.data } }
}

/**
 * The API refuses tool blocks in a history when the request declares no tools (a summary is asked for that way), so
 * the names used are declared, and calling them is ruled out.
 */
function toTools(request: ModelRequest, messages: readonly AnthropicMessage[]): JsonObject {
  if (request.tools.length > 0) {
    const tools = request.tools.map((tool): JsonObject => {
      return { name: tool.name, description: tool.description, input_schema: objectSchema(tool.parameters) }
    })
    return { tools: tools.map((tool, i) => (i === tools.length - 1 ? { ...tool, ...CACHED } : tool)) }
  }
  const names = new Set(
    messages.flatMap(({ content }) =>
      content.flatMap((block) => (block['type'] === 'tool_use' ? [block['name']] : [])),
    ),
  )
  if (names.size === 0) return {}
  const tools = [...names].map((name): JsonValue => {
    return { name: name ?? '', description: 'Not available any more.', input_schema: { type: 'object' } }
  })
  return { tools, tool_choice: { type: 'none' } }
}

/**
 * Breakpoints on the last two user turns: the newest writes the cache for the next request, the one before reads what
 * the last request wrote. Together with system and tools that is the four the API allows; all other bytes stay the same
 * from request to request.
 */
function markCachedTurns(messages: readonly AnthropicMessage[]): readonly AnthropicMessage[] {
  const marked = new Set(messages.flatMap((message, at) => (message.role === 'user' ? [at] : [])).slice(-2))
  return messages.map((message, at) => {
    if (!marked.has(at)) return message
    const last = message.content.length - 1
    return { ...message, content: message.content.map((block, i) => (i === last ? { ...block, ...CACHED } : block)) }
  })
}
