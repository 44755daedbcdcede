import { assertNever } from '../../base/assert-never.ts'
import type { JsonObject } from '../../base/json.ts'
import type { AssistantMessage, ToolResultMessage } from '../../core/message.ts'
import { mapToolIds, type WireIds } from '../../core/wire-ids.ts'
import { callNames, imageBlocks, isOwnAnswer, toolResultText, userBlocks, type EncodeOptions } from '../encoding.ts'
import type { EncodedRequest, ModelRequest } from '../provider.ts'
import { googleGeneration, googleToolChoice } from '../sampling.ts'
import { isBlank, isWellFormed, wellFormed, wellFormedJson, wireToolName } from '../wire-text.ts'
import { geminiGeneration, googleThinking } from './thinking.ts'

interface Content {
  readonly role: 'user' | 'model'
  readonly parts: JsonObject[]
}

/**
 * Documented by Google for histories it did not write: Gemini 3 rejects a function call without a signature unless the
 * first of each set says that it never had one.
 */
const UNSIGNED = 'skip_thought_signature_validator'

/** The model is named in the URL, not in the body. */
export function encodeGoogle(request: ModelRequest, options: EncodeOptions): EncodedRequest {
  const thinkingConfig = googleThinking(request, options.reasoning)
  const body = {
    ...(isBlank(request.system) ? {} : { systemInstruction: { parts: [{ text: wellFormed(request.system) }] } }),
    ...(request.tools.length === 0 ? {} : { tools: [{ functionDeclarations: request.tools.map(toDeclaration) }] }),
    ...googleToolChoice(request),
    generationConfig: { maxOutputTokens: request.maxOutputTokens, ...googleGeneration(request), ...thinkingConfig },
    contents: toContents(request, options),
  }
  return { model: request.model, body: JSON.stringify(body) }
}

function toDeclaration(tool: ModelRequest['tools'][number]): JsonObject {
  return { name: tool.name, description: tool.description, parametersJsonSchema: wellFormedJson(tool.parameters) }
}

function toContents(request: ModelRequest, options: EncodeOptions): readonly Content[] {
  const ids = mapToolIds(request.messages, 'strict')
  const contents: Content[] = []
  const push = (role: Content['role'], parts: readonly JsonObject[]): void => {
    if (parts.length === 0) return
    const last = contents.at(-1)
    // Gemini refuses a turn that mixes function responses with anything else; two user turns in a row it takes.
    const isSameKind = last?.role === role && isResponses(last.parts) === isResponses(parts)
    if (isSameKind) last.parts.push(...parts)
    else contents.push({ role, parts: [...parts] })
  }
  // Responses stand alone in their turn, so images of older models' results wait for the last of them.
  let loose: JsonObject[] = []
  const names = callNames(request, ids)
  request.messages.forEach((message, at) => {
    if (message.role === 'toolResult') {
      const { response, images } = toResponse(message, { id: ids.idOfResult(at), names, model: request.model })
      loose.push(...images)
      return push('user', [response])
    }
    push('user', loose)
    loose = []
    if (message.role === 'assistant') push('model', toModelParts(message, at, ids, request.model, options))
    else push('user', userBlocks(message.content).map(toPart))
  })
  push('user', loose)
  return contents
}

function isResponses(parts: readonly JsonObject[]): boolean {
  return parts.some((part) => part['functionResponse'] !== undefined)
}

function toModelParts(
  message: AssistantMessage,
  at: number,
  ids: WireIds,
  model: string,
  options: EncodeOptions,
): readonly JsonObject[] {
  const own = isOwnAnswer(message, 'google-generative-ai', options.provider, model)
  const needsSignature = geminiGeneration(model) >= 3
  let calls = 0
  return message.content.flatMap((block, position): readonly JsonObject[] => {
    switch (block.type) {
      case 'text':
        if (isBlank(block.text)) return []
        return [{ text: wellFormed(block.text), ...(own ? signed(block.textSignature) : {}) }]
      case 'thinking':
        if (!own || isBlank(block.thinking) || !isWellFormed(block.thinking)) return []
        return [{ text: block.thinking, thought: true, ...signed(block.thinkingSignature) }]
      case 'toolCall': {
        const placeholder = calls++ === 0 && needsSignature ? { thoughtSignature: UNSIGNED } : {}
        const functionCall = {
          id: ids.idOfCall(at, position),
          name: wireToolName(block.name),
          args: wellFormedJson(block.arguments),
        }
        return [{ functionCall, ...placeholder, ...(own ? signed(block.thoughtSignature) : {}) }]
      }
      default:
        return assertNever(block)
    }
  })
}

/** Signatures are bytes, base64 on the wire; anything else came from another program and would be refused. */
function signed(signature: string | undefined): { readonly thoughtSignature?: string } {
  const isBase64 = signature !== undefined && signature.length % 4 === 0 && /^[A-Za-z0-9+/_-]+={0,2}$/.test(signature)
  return isBase64 ? { thoughtSignature: signature } : {}
}

/** From Gemini 3 on images belong into the response itself; before, they follow in a turn of their own. */
function toResponse(
  message: ToolResultMessage,
  call: { readonly id: string; readonly names: ReadonlyMap<string, string>; readonly model: string },
): { readonly response: JsonObject; readonly images: readonly JsonObject[] } {
  const text = toolResultText(message.content, false)
  const images = imageBlocks(message.content).map(toPart)
  const inside = geminiGeneration(call.model) >= 3
  const functionResponse = {
    id: call.id,
    name: call.names.get(call.id) ?? wireToolName(message.toolName),
    response: message.isError ? { error: text } : { output: text },
    ...(inside && images.length > 0 ? { parts: images } : {}),
  }
  return { response: { functionResponse }, images: inside ? [] : images }
}

function toPart(block: ReturnType<typeof userBlocks>[number]): JsonObject {
  return block.type === 'text' ? { text: block.text } : { inlineData: { mimeType: block.mimeType, data: block.data } }
}
