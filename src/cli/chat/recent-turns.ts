import { isRecord, type JsonObject } from '../../base/json.ts'

const MAX_CHARS = 400

export interface RecentTurn {
  readonly role: 'user' | 'assistant'
  readonly text: string
}

/** The last words of a conversation, shortened, from what `/api/sessions/KEY` says. */
export function recentTurns(shown: JsonObject, count: number): readonly RecentTurn[] {
  const messages: readonly unknown[] = Array.isArray(shown['messages']) ? shown['messages'] : []
  return messages
    .flatMap((message): RecentTurn[] => {
      if (!isRecord(message)) return []
      const { role, text } = message
      if ((role !== 'user' && role !== 'assistant') || typeof text !== 'string' || text.trim() === '') return []
      return [{ role, text: shortened(text.trim()) }]
    })
    .slice(-count)
}

function shortened(text: string): string {
  return text.length <= MAX_CHARS ? text : `${text.slice(0, MAX_CHARS)}…`
}
