import { assertNever } from '../base/assert-never.ts'
import { isRecord, type JsonObject, type JsonValue } from '../base/json.ts'
import { wellFormed } from '../base/text.ts'
import {
  type AssistantBlock,
  type AssistantMessage,
  type ImageBlock,
  type Message,
  type PreparedMessage,
  type TextBlock,
  type ThinkingBlock,
  type ToolCallBlock,
  type ToolResultMessage,
  type UserBlock,
  type UserMessage,
  textOf,
} from '../core/message.ts'
import { isDeeperThan } from '../core/sound-message.ts'
import type { ItemKind } from './item.ts'
import type { Reason } from './reasons.ts'
import {
  bashExecutionText,
  branchSummaryText,
  compactionSummaryText,
  PLACEHOLDERS,
  systemMessageText,
} from './texts.ts'

export interface Normalized {
  /** Absent when nothing of it belongs in the model's view. */
  readonly message?: PreparedMessage
  readonly kind: ItemKind
  /** What had to be done to it, in the words of the report. */
  readonly notes: readonly Reason[]
}

const known = new WeakMap<Message, Normalized>()

/**
 * Any stored message as one of the three roles a model knows, in the one shape the later steps work on. Remembered per
 * message object: stored messages are frozen.
 */
export function normalizeMessage(stored: Message): Normalized {
  const before = known.get(stored)
  if (before !== undefined) return before
  const notes = new Set<Reason>()
  const { message, kind } = normalize(stored, notes)
  const normalized: Normalized =
    message === undefined ? { kind, notes: [...notes] } : { kind, message, notes: [...notes] }
  known.set(stored, normalized)
  return normalized
}

function normalize(stored: Message, notes: Set<Reason>): Omit<Normalized, 'notes'> {
  switch (stored.role) {
    case 'user':
      return { kind: 'user', message: userTurn(stored, notes) }
    case 'assistant':
      return { kind: 'assistant', message: { ...stored, content: assistantBlocks(stored.content, notes) } }
    case 'toolResult':
      return { kind: 'result', message: toolResultMessage(stored, notes) }
    case 'custom':
      return contextMessage(stored, userBlocks(stored.content, notes))
    case 'bashExecution':
      if (stored.excludeFromContext === true) return { kind: 'context' }
      return contextMessage(stored, userBlocks(bashExecutionText(stored), notes))
    case 'system':
      return contextMessage(stored, userBlocks(systemMessageText(textOf(stored.content)), notes))
    case 'compactionSummary':
      return summaryMessage(stored, compactionSummaryText(stored.summary), notes)
    case 'branchSummary':
      return summaryMessage(stored, branchSummaryText(stored.summary), notes)
    default:
      return assertNever(stored)
  }
}

function contextMessage({ timestamp }: Message, blocks: readonly UserBlock[]): Omit<Normalized, 'notes'> {
  if (blocks.length === 0) return { kind: 'context' }
  return { kind: 'context', message: userMessage({ role: 'user', content: '', timestamp }, blocks) }
}

/** With a hook's context in front, in the words that were sent before it was stored apart. */
function userTurn({ prependContext, ...stored }: UserMessage, notes: Set<Reason>): UserMessage {
  const { content } = stored
  if (prependContext === undefined) return userMessage(stored, userBlocks(content, notes))
  const whole = typeof content === 'string' ? `${prependContext}\n\n${content}` : [text(prependContext), ...content]
  return userMessage(stored, userBlocks(whole, notes))
}

function summaryMessage({ timestamp }: Message, text: string, notes: Set<Reason>): Omit<Normalized, 'notes'> {
  return { kind: 'summary', message: userMessage({ role: 'user', content: '', timestamp }, userBlocks(text, notes)) }
}

function userMessage(stored: UserMessage, blocks: readonly UserBlock[]): UserMessage {
  // A turn that vanished would leave two answers in a row and strict templates without a user; a placeholder does not.
  const content = blocks.length > 0 ? blocks : [text(PLACEHOLDERS.blankUser)]
  return { ...stored, content }
}

function toolResultMessage(stored: ToolResultMessage, notes: Set<Reason>): ToolResultMessage {
  const content = userBlocks(stored.content, notes)
  return {
    ...stored,
    toolCallId: wellFormed(stored.toolCallId.trim()),
    toolName: toToolName(stored.toolName) || 'unknown',
    content: content.length > 0 ? content : [text(PLACEHOLDERS.noOutput)],
  }
}

function userBlocks(content: UserMessage['content'], notes: Set<Reason>): readonly UserBlock[] {
  const blocks: UserBlock[] = []
  for (const block of blocksIn(content)) {
    const known = userBlock(block, notes)
    if (known !== undefined) blocks.push(known)
  }
  return blocks
}

function userBlock(block: UserBlock, notes: Set<Reason>): UserBlock | undefined {
  if (block.type === 'text') return textBlock(block, notes)
  if (block.type !== 'image') return unsupported(block, notes)
  return { type: 'image', data: block.data, mimeType: block.mimeType }
}

function assistantBlocks(content: AssistantMessage['content'], notes: Set<Reason>): readonly AssistantBlock[] {
  const blocks: AssistantBlock[] = []
  for (const block of blocksIn(content)) {
    const known = assistantBlock(block, notes)
    if (known !== undefined) blocks.push(known)
  }
  return blocks
}

/** Undefined for what has no place in a model's view. */
function assistantBlock(block: AssistantBlock | ImageBlock, notes: Set<Reason>): AssistantBlock | undefined {
  switch (block.type) {
    case 'text':
      return textBlock(block, notes)
    case 'thinking':
      return thinkingBlock(block, notes)
    case 'toolCall':
      return toolCallBlock(block, notes)
    case 'image':
      return unsupported(block, notes)
    default:
      // Of a kind that a later version or another program writes.
      notes.add('unknown block')
      return undefined
  }
}

function textBlock(block: TextBlock, notes: Set<Reason>): TextBlock | undefined {
  if (block.text.trim() === '') {
    notes.add('blank text')
    return undefined
  }
  const fixed = wellFormed(block.text)
  if (fixed === block.text) return block
  notes.add('lone surrogate')
  return { ...block, text: fixed }
}

function thinkingBlock(block: ThinkingBlock, notes: Set<Reason>): ThinkingBlock | undefined {
  if (wellFormed(block.thinking) === block.thinking) return block
  // Signed text cannot be changed, only taken out.
  notes.add('lone surrogate in signed reasoning')
  return undefined
}

function toolCallBlock(block: ToolCallBlock, notes: Set<Reason>): ToolCallBlock {
  const name = toToolName(block.name)
  if (name !== block.name) notes.add('tool name')
  const call = { ...block, id: wellFormed(block.id.trim()), name }
  // Input too deep to be sent went with the deep fields; a call without any leaves the view in the step about inputs.
  if (!isRecord(call.arguments)) return { ...call, arguments: {}, invalidArguments: '' }
  return { ...call, arguments: wellFormedArguments(call.arguments, notes) }
}

function wellFormedArguments(value: JsonObject, notes: Set<Reason>): JsonObject {
  if (!/\\ud[89a-f]/i.test(JSON.stringify(value))) return value
  notes.add('lone surrogate')
  return wellFormedObject(value)
}

function wellFormedDeep(value: JsonValue): JsonValue {
  if (typeof value === 'string') return wellFormed(value)
  if (Array.isArray(value)) return value.map(wellFormedDeep)
  return isJsonObject(value) ? wellFormedObject(value) : value
}

function wellFormedObject(value: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [wellFormed(key), wellFormedDeep(inner ?? null)]),
  )
}

/**
 * A name that every provider accepts. The call stays with its result: dropping it, as the original does, would take a
 * real result out of view.
 */
function toToolName(name: string): string {
  const kept = name.trim().replaceAll(/[^A-Za-z0-9_-]/g, '_')
  if (kept === '') return ''
  return (/^[A-Za-z_]/.test(kept) ? kept : `_${kept}`).slice(0, 64)
}

function unsupported({ type }: { readonly type: string }, notes: Set<Reason>): TextBlock {
  notes.add('unsupported block')
  return text(PLACEHOLDERS.unsupportedBlock(type))
}

const text = (value: string): TextBlock => ({ type: 'text', text: value })

function blocksIn<B extends UserBlock | AssistantBlock>(content: string | readonly B[]): readonly (B | TextBlock)[] {
  return typeof content === 'string' ? [text(content)] : content.map(withoutDeepFields)
}

/** A JSON object whose fields nothing has checked. */
export type Loose = { readonly [field: string]: unknown }

/** For values that came out of JSON: then an object is a JSON object. */
const isJsonObject = (value: unknown): value is JsonObject => isRecord(value)

/** Far above what a tool takes and below what JSON parsers of providers accept (protobuf stops at 100). */
const MAX_LEVELS = 64

/** An object without the fields that are nested too deeply to be sent. */
function withoutDeepFields<T extends object>(value: T): T
function withoutDeepFields(value: Loose): Loose {
  for (const field in value) {
    if (isDeeperThan(MAX_LEVELS, value[field]))
      return Object.fromEntries(Object.entries(value).filter(([, inner]) => !isDeeperThan(MAX_LEVELS, inner)))
  }
  return value
}
