import { assertNever } from '../../base/assert-never.ts'
import { isRecord, type JsonObject } from '../../base/json.ts'
import type { AssistantMessage, TextBlock, ThinkingBlock, ToolResultMessage, UserBlock } from '../../core/message.ts'
import { mapToolIds, type WireIds } from '../../core/wire-ids.ts'
import {
  dataUrl,
  isOwnAnswer,
  objectSchema,
  thinkingLevelOf,
  toolResultText,
  userBlocks,
  type EncodeOptions,
} from '../encoding.ts'
import { parseJsonObject } from '../json-object.ts'
import { isOpenAiReasoningModel, openAiEffort } from '../openai-effort.ts'
import type { EncodedRequest, ModelRequest } from '../provider.ts'
import { responsesSampling } from '../sampling.ts'
import { isBlank, isWellFormed, wellFormed, wellFormedJson, wireToolName } from '../wire-text.ts'

/** Nothing is stored at the provider: the transcript is ours, and reasoning comes back to us encrypted. */
export function encodeOpenAiResponses(request: ModelRequest, options: EncodeOptions): EncodedRequest {
  const ids = mapToolIds(request.messages, 'strict')
  const input = request.messages.flatMap((message, at): readonly JsonObject[] => {
    if (message.role === 'assistant') return assistantItems(message, at, ids, request.model, options)
    if (message.role === 'toolResult') return [toOutput(message, ids.idOfResult(at))]
    const content = userBlocks(message.content).map(toInputPart)
    return content.length === 0 ? [] : [{ type: 'message', role: 'user', content }]
  })
  const body = {
    model: request.model,
    ...(isBlank(request.system) ? {} : { instructions: wellFormed(request.system) }),
    ...(request.tools.length === 0 ? {} : { tools: toTools(request) }),
    // Less is refused.
    max_output_tokens: Math.max(16, request.maxOutputTokens),
    ...reasoningFields(request, options),
    ...responsesSampling(request),
    ...(request.cacheKey === undefined ? {} : { prompt_cache_key: request.cacheKey.slice(0, 64) }),
    store: false,
    stream: true,
    input: onlyFollowedReasoning(input),
  }
  return { model: request.model, body: JSON.stringify(body) }
}

function reasoningFields(request: ModelRequest, options: EncodeOptions): JsonObject {
  const reasons = options.reasoning === undefined ? isOpenAiReasoningModel(request.model) : options.reasoning !== 'none'
  if (!reasons) return {}
  const effort = openAiEffort(request.model, thinkingLevelOf(request))
  return {
    ...(effort === undefined ? {} : { reasoning: { effort, summary: 'auto' } }),
    include: ['reasoning.encrypted_content'],
  }
}

function assistantItems(
  message: AssistantMessage,
  at: number,
  ids: WireIds,
  model: string,
  options: EncodeOptions,
): readonly JsonObject[] {
  const own = isOwnAnswer(message, 'openai-responses', options.provider, model)
  return message.content.flatMap((block, position): readonly JsonObject[] => {
    switch (block.type) {
      case 'thinking':
        return own ? toReasoningItem(block) : []
      case 'text':
        return isBlank(block.text) ? [] : [toMessageItem(block)]
      case 'toolCall':
        // Without its item id: the service holds nothing to look it up in, and checks an id it knows against the
        // reasoning item it came with, which may be gone.
        return [
          {
            type: 'function_call',
            call_id: ids.idOfCall(at, position),
            name: wireToolName(block.name),
            arguments: JSON.stringify(wellFormedJson(block.arguments)),
          },
        ]
      default:
        return assertNever(block)
    }
  })
}

/**
 * "Reasoning was provided without its required following item": a cut answer may end in reasoning. And one stored
 * answer may stand in a history twice, but an item's id may not.
 */
function onlyFollowedReasoning(items: readonly JsonObject[]): readonly JsonObject[] {
  const seen = new Set<unknown>()
  return items.filter((item, at) => {
    if (item['type'] !== 'reasoning') return true
    const next = items[at + 1]
    const follows = next?.['type'] === 'function_call' || (next?.['type'] === 'message' && next['role'] === 'assistant')
    if (!follows || seen.has(item['id'])) return false
    seen.add(item['id'])
    return true
  })
}

/** Whole or not at all. Without its encrypted content an item is a reference to something that was not stored. */
function toReasoningItem(block: ThinkingBlock): readonly JsonObject[] {
  const signature = block.thinkingSignature ?? ''
  if (!signature.startsWith('{') || !isWellFormed(signature)) return []
  const item = parseJsonObject(signature)
  if (item?.['type'] !== 'reasoning' || JSON.stringify(item).includes('\\ud')) return []
  const { id, encrypted_content: content } = item
  return typeof id === 'string' && /^rs_?[\w-]{1,61}$/.test(id) && typeof content === 'string'
    ? [knownFields(item)]
    : []
}

const REASONING_FIELDS: readonly string[] = ['type', 'id', 'status', 'summary', 'content', 'encrypted_content']

/** A field that OpenAI does not know, or a summary that is none, has it refuse the request. */
function knownFields(item: JsonObject): JsonObject {
  const known = Object.fromEntries(Object.entries(item).filter(([field]) => REASONING_FIELDS.includes(field)))
  return isSummary(known['summary']) ? known : { ...known, summary: [] }
}

function isSummary(summary: unknown): boolean {
  return (
    Array.isArray(summary) &&
    summary.every((part) => isRecord(part) && part['type'] === 'summary_text' && typeof part['text'] === 'string')
  )
}

function toMessageItem(block: TextBlock): JsonObject {
  const phase = phaseOf(block.textSignature)
  return {
    type: 'message',
    role: 'assistant',
    content: wellFormed(block.text),
    ...(phase === undefined ? {} : { phase }),
  }
}

/** The signature holds the item's id and, from gpt-5.3-codex on, whether the text was commentary or the answer. */
function phaseOf(signature: string | undefined): string | undefined {
  const phase = signature?.startsWith('{') === true ? parseJsonObject(signature)?.['phase'] : undefined
  return phase === 'commentary' || phase === 'final_answer' ? phase : undefined
}

function toOutput(message: ToolResultMessage, callId: string): JsonObject {
  const text = toolResultText(message.content, message.isError)
  const images = userBlocks(message.content).filter((block) => block.type === 'image')
  return {
    type: 'function_call_output',
    call_id: callId,
    output: images.length === 0 ? text : [{ type: 'input_text', text }, ...images.map(toInputPart)],
  }
}

function toInputPart(block: UserBlock): JsonObject {
  if (block.type === 'text') return { type: 'input_text', text: block.text }
  return { type: 'input_image', detail: 'auto', image_url: dataUrl(block) }
}

function toTools(request: ModelRequest): readonly JsonObject[] {
  return request.tools.map((tool) => {
    return {
      type: 'function',
      name: tool.name,
      description: tool.description,
      parameters: objectSchema(tool.parameters),
      strict: false,
    }
  })
}
