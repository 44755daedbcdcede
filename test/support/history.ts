import type { Entry } from '../../src/core/entry.ts'
import type { EntryId } from '../../src/core/ids.ts'
import {
  NO_USAGE,
  type AssistantBlock,
  type AssistantMessage,
  type Message,
  type ToolCallBlock,
  type UserBlock,
} from '../../src/core/message.ts'
import { createBudget, type HistoryBudget } from '../../src/history/budget.ts'
import { toEntry } from '../../src/transcript/line.ts'
import { compactReport, encodeReport } from '../../src/history/report.ts'
import { prepareHistory, type HistoryInput, type PreparedHistory } from '../../src/history/prepare.ts'

export const TARGETS = {
  anthropic: { provider: 'anthropic', api: 'anthropic-messages', model: 'claude-sonnet-4-5', acceptsImages: true },
  google: { provider: 'google', api: 'google-generative-ai', model: 'gemini-2.5-pro', acceptsImages: true },
  responses: { provider: 'openai', api: 'openai-responses', model: 'gpt-5', acceptsImages: true },
  completions: { provider: 'openai', api: 'openai-completions', model: 'gpt-4.1', acceptsImages: true },
  mistral: { provider: 'mistral', api: 'mistral-conversations', model: 'mistral-large-latest', acceptsImages: true },
  claudeViaGoogle: { provider: 'antigravity', api: 'google-gemini-cli', model: 'claude-opus-4-5', acceptsImages: true },
  blind: { provider: 'my-local', api: 'openai-completions', model: 'llama2', acceptsImages: false },
  compatible: { provider: 'my-local', api: 'openai-completions', model: 'llama3', acceptsImages: true },
} as const

export type TargetName = keyof typeof TARGETS

export const id = (text: string): EntryId => text as EntryId

/** Entries of one path as a store reads them, ids `e1`, `e2` … and one second between them. */
export function entriesOf(...parts: readonly (Message | Partial<Entry>)[]): readonly Entry[] {
  return parts.map((part, at) => {
    const base = {
      id: id(`e${at + 1}`),
      parentId: at === 0 ? null : id(`e${at}`),
      timestamp: new Date(1_000_000 + at * 1000).toISOString(),
    }
    return deepFreeze(asRead('role' in part ? { ...base, type: 'message', message: part } : { ...base, ...part }))
  })
}

/** What the store makes of an entry's line, whatever its fields hold. */
export function asRead(line: object): Entry {
  const raw = line as Entry
  return raw.type === 'unknown' ? raw : toEntry({ ...raw }, raw.id, raw.parentId)
}

export const user = (content: string | readonly UserBlock[], more: object = {}): Message => ({
  role: 'user',
  content,
  timestamp: 1,
  ...more,
})

export const text = (value: string) => ({ type: 'text', text: value }) as const

export const call = (callId: string, name = 'read', args: object = {}): ToolCallBlock => ({
  type: 'toolCall',
  id: callId,
  name,
  arguments: args as ToolCallBlock['arguments'],
})

export const assistant = (
  content: string | readonly AssistantBlock[],
  more: Partial<AssistantMessage> = {},
): AssistantMessage => ({
  role: 'assistant',
  content: typeof content === 'string' ? [text(content)] : content,
  ...modelFields('anthropic'),
  usage: NO_USAGE,
  stopReason: 'stop',
  timestamp: 2,
  ...more,
})

export function modelFields(target: TargetName): Pick<AssistantMessage, 'api' | 'provider' | 'model'> {
  const { api, provider, model } = TARGETS[target]
  return { api, provider, model }
}

export const result = (
  toolCallId: string,
  content: string | readonly UserBlock[] = 'ok',
  more: object = {},
): Message => ({
  role: 'toolResult',
  toolCallId,
  toolName: 'read',
  content: typeof content === 'string' ? [text(content)] : content,
  isError: false,
  timestamp: 3,
  ...more,
})

export interface PrepareOptions extends Partial<Omit<HistoryInput, 'entries' | 'target' | 'budget'>> {
  readonly target?: TargetName
  readonly budget?: Partial<HistoryBudget>
}

export function prepare(entries: readonly Entry[], options: PrepareOptions = {}): PreparedHistory {
  const { target = 'anthropic', budget, ...rest } = options
  return prepareHistory({
    entries,
    target: TARGETS[target],
    historyLimit: 0,
    now: 2_000,
    ...rest,
    budget: createBudget({ contextWindow: 200_000, ...budget }),
  })
}

/**
 * Everything that a history says, and what is stored of its report, without the parts it is made of. A message that is the
 * very object that another history has at its place is left out, which spares writing out what cannot differ.
 */
export function saidBy(
  { parts, messages, report, tokens, decisions }: PreparedHistory,
  other?: Pick<PreparedHistory, 'messages'>,
): string {
  const own = messages.map((message, at) => (message === other?.messages[at] ? 'the same' : message))
  return JSON.stringify({ messages: own, report, tokens, decisions, stored: compactReport(encodeReport(parts)) })
}

/** A history a person can read in a failing test: `user: a | assistant: b [call c1] | result c1: ok`. */
export function sketch({ messages }: Pick<PreparedHistory, 'messages'>): string {
  return messages
    .map((message) => {
      const parts = (typeof message.content === 'string' ? [text(message.content)] : message.content).map((block) => {
        if (block.type === 'text') return block.text
        return block.type === 'toolCall' ? `[call ${block.id}]` : `[${block.type}]`
      })
      const who = message.role === 'toolResult' ? `result ${message.toolCallId}` : message.role
      return `${who}: ${parts.join(' + ')}`
    })
    .join(' | ')
}

export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  Object.freeze(value)
  for (const key in value) deepFreeze(value[key])
  return value
}

/** One pixel. */
export const PNG_1PX =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
