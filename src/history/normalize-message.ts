import { isRecord, parseJson, type JsonObject, type JsonValue } from '../base/json.ts'
import { wellFormed } from '../core/cut-text.ts'
import type {
  AssistantBlock,
  AssistantMessage,
  Message,
  PreparedMessage,
  ToolCallBlock,
  ToolResultMessage,
  UserBlock,
  UserMessage,
} from '../core/message.ts'
import { NO_USAGE } from '../core/message.ts'
import type { ItemKind } from './item.ts'
import { isJsonObject, numberOf, stringOf, withoutDeepFields, type Loose } from './loose.ts'
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
  readonly notes: readonly string[]
}

const known = new WeakMap<Loose | Message, Normalized>()

/**
 * Any stored message as one of the three roles a model knows, in the one shape the later steps work on. Files of other
 * programs and of older versions come through here too, so no field is trusted. Remembered per message object: stored
 * messages are frozen.
 */
export function normalizeMessage(stored: Loose | Message): Normalized {
  const before = known.get(stored)
  if (before !== undefined) return before
  const notes = new Set<string>()
  const { message, kind } = normalize({ ...stored }, notes)
  const normalized: Normalized =
    message === undefined ? { kind, notes: [...notes] } : { kind, message, notes: [...notes] }
  known.set(stored, normalized)
  return normalized
}

function normalize(stored: Loose, notes: Set<string>): Omit<Normalized, 'notes'> {
  switch (stored['role']) {
    case 'user':
      return { kind: 'user', message: userTurn(stored, notes) }
    case 'assistant':
      return { kind: 'assistant', message: assistantMessage(stored, notes) }
    case 'toolResult':
    case 'tool':
      return { kind: 'result', message: toolResultMessage(stored, notes) }
    case 'custom':
    case 'hookMessage':
      return { kind: 'context', message: userMessage({ ...timeOf(stored) }, userBlocks(stored['content'], notes)) }
    case 'bashExecution':
      if (stored['excludeFromContext'] === true) return { kind: 'context' }
      return contextText('context', stored, bashExecutionText(stored), notes)
    case 'system':
      return contextText('context', stored, systemMessageText(textIn(stored['content'])), notes)
    case 'compactionSummary':
      return contextText('summary', stored, compactionSummaryText(stringOf(stored['summary'])), notes)
    case 'branchSummary':
      return contextText('summary', stored, branchSummaryText(stringOf(stored['summary'])), notes)
    default:
      notes.add('unknown role')
      return { kind: 'context' }
  }
}

function contextText(kind: ItemKind, stored: Loose, text: string, notes: Set<string>): Omit<Normalized, 'notes'> {
  return { kind, message: userMessage({ ...timeOf(stored) }, userBlocks(text, notes)) }
}

/** With a hook's context in front, in the words that were sent before it was stored apart. */
function userTurn({ prependContext, ...stored }: Loose, notes: Set<string>): UserMessage {
  const { content } = stored
  if (typeof prependContext !== 'string') return userMessage(stored, userBlocks(content, notes))
  const whole = Array.isArray(content)
    ? [{ type: 'text', text: prependContext }, ...content]
    : `${prependContext}\n\n${stringOf(content)}`
  return userMessage(stored, userBlocks(whole, notes))
}

function userMessage(stored: Loose, blocks: readonly UserBlock[]): UserMessage {
  // A turn that vanished would leave two answers in a row and strict templates without a user; a placeholder does not.
  const content = blocks.length > 0 ? blocks : [text(PLACEHOLDERS.blankUser)]
  return { ...stored, role: 'user', content, timestamp: numberOf(stored['timestamp']) }
}

function assistantMessage(stored: Loose, notes: Set<string>): AssistantMessage {
  return {
    ...stored,
    role: 'assistant',
    content: assistantBlocks(stored['content'], notes),
    api: stringOf(stored['api']),
    provider: stringOf(stored['provider']),
    model: stringOf(stored['model']),
    usage: isUsage(stored['usage']) ? stored['usage'] : NO_USAGE,
    stopReason: isStopReason(stored['stopReason']) ? stored['stopReason'] : 'stop',
    timestamp: numberOf(stored['timestamp']),
  }
}

function toolResultMessage(stored: Loose, notes: Set<string>): ToolResultMessage {
  const content = userBlocks(stored['content'], notes)
  return {
    ...stored,
    role: 'toolResult',
    toolCallId: wellFormed(
      RESULT_ID_FIELDS.map((field) => stringOf(stored[field]).trim()).find((id) => id !== '') ?? '',
    ),
    toolName: toToolName(stringOf(stored['toolName'])) || 'unknown',
    content: content.length > 0 ? content : [text(PLACEHOLDERS.noOutput)],
    isError: stored['isError'] === true,
    timestamp: numberOf(stored['timestamp']),
  }
}

/** What the various writers of such files called it. */
const RESULT_ID_FIELDS = ['toolCallId', 'toolUseId', 'tool_call_id', 'tool_use_id', 'callId', 'call_id']

function userBlocks(content: unknown, notes: Set<string>): readonly UserBlock[] {
  const blocks: UserBlock[] = []
  for (const block of blocksIn(content)) {
    const known = userBlock(block, notes)
    if (known !== undefined) blocks.push(known)
  }
  return blocks
}

function userBlock(block: Loose, notes: Set<string>): UserBlock | undefined {
  if (block['type'] === 'text') return textBlock(block, notes)
  if (block['type'] !== 'image') return unsupported(block, notes)
  return { type: 'image', data: stringOf(block['data']), mimeType: stringOf(block['mimeType']) }
}

function assistantBlocks(content: unknown, notes: Set<string>): readonly AssistantBlock[] {
  const blocks: AssistantBlock[] = []
  for (const block of blocksIn(content)) {
    const known = assistantBlock(block, notes)
    if (known !== undefined) blocks.push(known)
  }
  return blocks
}

/** Undefined for what has no place in a model's view. */
function assistantBlock(block: Loose, notes: Set<string>): AssistantBlock | undefined {
  switch (block['type']) {
    case 'text':
      return textBlock(block, notes)
    case 'thinking':
      return thinkingBlock(block, notes)
    case 'toolCall':
    case 'toolUse':
    case 'tool_use':
    case 'functionCall':
      return toolCallBlock(block, notes)
    case 'image':
      return unsupported(block, notes)
    default:
      notes.add('unknown block')
      return undefined
  }
}

function textBlock(block: Loose, notes: Set<string>): TextLike | undefined {
  const raw = stringOf(block['text'])
  if (raw.trim() === '') {
    notes.add('blank text')
    return undefined
  }
  const fixed = wellFormed(raw)
  if (fixed !== raw) notes.add('lone surrogate')
  return { ...withoutOddField(block, 'textSignature'), type: 'text', text: fixed }
}

type TextLike = { readonly type: 'text'; readonly text: string }

function thinkingBlock(block: Loose, notes: Set<string>): AssistantBlock | undefined {
  const thinking = stringOf(block['thinking'])
  const signature = block['thinkingSignature']
  if (signature !== undefined && typeof signature !== 'string')
    return { ...block, type: 'thinking', thinking, thinkingSignature: JSON.stringify(signature) }
  if (wellFormed(thinking) !== thinking) {
    // Signed text cannot be mended, only left out.
    notes.add('lone surrogate in signed reasoning')
    return undefined
  }
  return { ...block, type: 'thinking', thinking }
}

function toolCallBlock(block: Loose, notes: Set<string>): ToolCallBlock {
  const given = block['arguments'] ?? block['input']
  const call = {
    ...withoutOddField(block, 'thoughtSignature'),
    type: 'toolCall' as const,
    id: wellFormed(stringOf(block['id']).trim()),
    name: toToolName(stringOf(block['name'])),
    // What cannot be read is dropped, with its reason, by the step about inputs.
    arguments: readArguments(given, notes) ?? NO_ARGUMENTS,
  }
  if (call.name !== stringOf(block['name'])) notes.add('tool name')
  return call
}

/** Signatures are strings; anything else under that name is none. */
function withoutOddField(block: Loose, field: string): Loose {
  if (!(field in block) || typeof block[field] === 'string') return block
  return Object.fromEntries(Object.entries(block).filter(([name]) => name !== field))
}

/** Stands for input that is missing or cannot be read; recognised by identity. */
export const NO_ARGUMENTS: JsonObject = {}

function readArguments(given: unknown, notes: Set<string>): JsonObject | undefined {
  const value = typeof given === 'string' ? withoutDeepFields({ parsed: parseJson(given) })['parsed'] : given
  if (!isJsonObject(value)) return undefined
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

function unsupported(block: Loose, notes: Set<string>): TextLike {
  notes.add('unsupported block')
  return text(PLACEHOLDERS.unsupportedBlock(typeof block['type'] === 'string' ? block['type'] : 'unknown'))
}

const text = (value: string): TextLike => ({ type: 'text', text: value })

function blocksIn(content: unknown): readonly Loose[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  if (!Array.isArray(content)) return []
  return content.map((block: unknown) => {
    if (typeof block === 'string') return { type: 'text', text: block }
    return isRecord(block) ? withoutDeepFields(block) : { type: 'null' }
  })
}

function textIn(content: unknown): string {
  return blocksIn(content)
    .flatMap((block) => (block['type'] === 'text' ? [stringOf(block['text'])] : []))
    .join('\n')
}

const timeOf = (stored: Loose) => ({ timestamp: stored['timestamp'] })

function isUsage(value: unknown): value is AssistantMessage['usage'] {
  return (
    isRecord(value) && ['input', 'output', 'cacheRead', 'cacheWrite'].every((field) => Number.isFinite(value[field]))
  )
}

function isStopReason(value: unknown): value is AssistantMessage['stopReason'] {
  return typeof value === 'string' && ['stop', 'length', 'toolUse', 'error', 'aborted'].includes(value)
}
