import { isRecord, type JsonObject, parseJson } from '../base/json.ts'
import { CLEANUP_STRATEGIES, type CleanupStrategy } from '../core/cleanup-strategy.ts'
import type { AssistantBlock, AssistantMessage, Message, ToolResultMessage, UserBlock } from '../core/message.ts'
import type { HookEvents, HookResults, ModifyingHook } from './hook.ts'

/** A result that breaks its contract; the message names the field, never its content. */
export class HookResultInvalid extends Error {}

const MAX_TEXT_CHARS = 1_000_000

type Fields = Readonly<Record<string, unknown>>

type Checks = {
  readonly [Name in ModifyingHook]: (result: Fields, event: HookEvents[Name]) => HookResults[Name]
}

/**
 * What a hook answered, as plain data of ours: copied, so that the hook cannot change it later, and without fields
 * is unknown. A stored message stays the message it was: role and ids cannot be exchanged under it.
 */
export const CHECK_RESULT: Checks = {
  before_agent_start: (result) => {
    const prependContext = text(result, 'prependContext')
    const systemPrompt = text(result, 'systemPrompt')
    const model = text(result, 'model')
    return {
      ...(prependContext !== undefined && { prependContext }),
      ...(systemPrompt !== undefined && { systemPrompt }),
      ...(model !== undefined && { model }),
    }
  },
  tool_result_persist: (result, event) => {
    const message = plainObject(result, 'message')
    return message === undefined ? {} : { message: sameToolResult(message, event.message) }
  },
  before_message_write: (result, event) => {
    const block = flag(result, 'block')
    const message = plainObject(result, 'message')
    return {
      ...(block !== undefined && { block }),
      ...(message !== undefined && { message: sameMessage(message, event.message) }),
    }
  },
  before_tool_call: (result) => {
    const block = flag(result, 'block')
    const reason = text(result, 'reason')
    const callArguments = plainObject(result, 'arguments')
    return {
      ...(block !== undefined && { block }),
      ...(reason !== undefined && { reason }),
      ...(callArguments !== undefined && { arguments: callArguments }),
    }
  },
  choose_cleanup: (result) => {
    const strategy = strategyName(result)
    const hide = idList(result, 'hide')
    const summary = text(result, 'summary')
    return {
      ...(strategy !== undefined && { strategy }),
      ...(hide !== undefined && { hide }),
      ...(summary !== undefined && { summary }),
    }
  },
}

function strategyName({ strategy }: Fields): CleanupStrategy | undefined {
  if (strategy === undefined) return undefined
  const known = CLEANUP_STRATEGIES.find((name) => name === strategy)
  if (known === undefined) throw new HookResultInvalid(`strategy is none of ${CLEANUP_STRATEGIES.join(', ')}`)
  return known
}

const MAX_IDS = 10_000

function idList(result: Fields, field: string): readonly string[] | undefined {
  const value = result[field]
  if (value === undefined) return undefined
  if (!isListOf(value, (item): item is string => typeof item === 'string') || value.length > MAX_IDS)
    throw new HookResultInvalid(`${field} is not a list of at most ${MAX_IDS} ids`)
  return [...value]
}

function sameMessage(message: JsonObject, original: Message): Message {
  if (original.role === 'toolResult') return sameToolResult(message, original)
  if (original.role === 'assistant') return sameAnswer(message, original)
  if (message['role'] !== original.role) throw new HookResultInvalid('message.role was changed')
  if (!isMessageLike(message, original)) {
    throw new HookResultInvalid('message.content is neither text nor a list of text and image blocks')
  }
  return message
}

function sameToolResult(message: JsonObject, original: ToolResultMessage): ToolResultMessage {
  const { role, content, isError, details } = message
  if (role !== 'toolResult') throw new HookResultInvalid('message.role was changed')
  if (!isListOf(content, isUserBlock))
    throw new HookResultInvalid('message.content is not a list of text and image blocks')
  if (typeof isError !== 'boolean') throw new HookResultInvalid('message.isError is neither true nor false')
  return { ...original, content, isError, ...(details !== undefined && { details }) }
}

/** A call that vanished or got another id would leave its result without a call, which every provider rejects. */
function sameAnswer(message: JsonObject, original: AssistantMessage): AssistantMessage {
  const { role, content } = message
  if (role !== 'assistant') throw new HookResultInvalid('message.role was changed')
  if (!isListOf(content, isAssistantBlock)) throw new HookResultInvalid('message.content is not a list of blocks')
  const idsOf = (blocks: readonly AssistantBlock[]): string =>
    JSON.stringify(blocks.flatMap((block) => (block.type === 'toolCall' ? [[block.id, block.name]] : [])))
  if (idsOf(content) !== idsOf(original.content))
    throw new HookResultInvalid('the tool calls of the message were changed')
  return { ...original, content }
}

/** For the roles whose content is text or user blocks, or that have none. */
function isMessageLike(message: JsonObject, original: Message): message is JsonObject & Message {
  if (typeof message['timestamp'] !== 'number') return false
  if (!('content' in original)) return true
  return typeof message['content'] === 'string' || isListOf(message['content'], isUserBlock)
}

function isListOf<T>(value: unknown, isItem: (item: unknown) => item is T): value is readonly T[] {
  return Array.isArray(value) && value.every(isItem)
}

function isUserBlock(block: unknown): block is UserBlock {
  if (!isRecord(block)) return false
  if (block['type'] === 'text') return typeof block['text'] === 'string'
  return block['type'] === 'image' && typeof block['data'] === 'string' && typeof block['mimeType'] === 'string'
}

function isAssistantBlock(block: unknown): block is AssistantBlock {
  if (!isRecord(block)) return false
  if (block['type'] === 'text') return typeof block['text'] === 'string'
  if (block['type'] === 'thinking') return typeof block['thinking'] === 'string'
  return block['type'] === 'toolCall' && typeof block['id'] === 'string' && isRecord(block['arguments'])
}

/** Only what survives JSON can be stored: functions, cycles and the like are the hook's mistake. */
function plainObject(result: Fields, field: string): JsonObject | undefined {
  const value = result[field]
  if (value === undefined) return undefined
  const copy = isRecord(value) ? parseJson(stringify(value, field)) : undefined
  if (!isJsonObject(copy)) throw new HookResultInvalid(`${field} is not an object`)
  return copy
}

/** For what `JSON.parse` returned. */
function isJsonObject(parsed: unknown): parsed is JsonObject {
  return isRecord(parsed)
}

function stringify(value: Fields, field: string): string {
  try {
    return JSON.stringify(value)
  } catch {
    throw new HookResultInvalid(`${field} cannot be written as JSON`)
  }
}

function text(result: Fields, field: string): string | undefined {
  const value = result[field]
  if (value === undefined) return undefined
  if (typeof value !== 'string') throw new HookResultInvalid(`${field} is not a text`)
  if (value.length > MAX_TEXT_CHARS) throw new HookResultInvalid(`${field} has more than ${MAX_TEXT_CHARS} characters`)
  return value
}

function flag(result: Fields, field: string): boolean | undefined {
  const value = result[field]
  if (value === undefined || typeof value === 'boolean') return value
  throw new HookResultInvalid(`${field} is neither true nor false`)
}
