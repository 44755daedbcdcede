import type { JsonObject } from '../../base/json.ts'

export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly content?: string | readonly JsonObject[] | null
  readonly tool_calls?: readonly JsonObject[]
  readonly [field: string]: unknown
}

/** Neighbouring turns of one speaker become one: chat templates of local models raise an error otherwise. */
export function mergeTurns(messages: readonly ChatMessage[]): readonly ChatMessage[] {
  const merged: ChatMessage[] = []
  for (const message of messages) {
    const last = merged.at(-1)
    const mergeable = last?.role === message.role && (message.role === 'user' || message.role === 'assistant')
    // A turn with calls is followed by its results, so it can only take text in front of it.
    if (mergeable && last.tool_calls === undefined) merged[merged.length - 1] = merge(last, message)
    else merged.push(message)
  }
  return merged
}

function merge(first: ChatMessage, second: ChatMessage): ChatMessage {
  return { ...first, ...second, content: mergeContent(first.content ?? null, second.content ?? null) }
}

type Content = string | readonly JsonObject[] | null

function mergeContent(first: Content, second: Content): Content {
  if (isNothing(first) || isNothing(second)) return isNothing(first) ? second : first
  if (typeof first === 'string' && typeof second === 'string') return `${first}\n\n${second}`
  return [...parts(first), ...parts(second)]
}

const isNothing = (content: Content): content is null | '' => content === null || content === ''

function parts(content: string | readonly JsonObject[]): readonly JsonObject[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content
}
