import type { Entry } from '../core/entry.ts'
import { textOf } from '../core/message.ts'

/** What the user said last, in so many letters: it tells the language of a conversation. */
export function latestWords(entries: readonly Entry[]): string | undefined {
  const entry = entries.findLast((each) => each.type === 'message' && each.message.role === 'user')
  return entry?.type === 'message' && entry.message.role === 'user' ? textOf(entry.message.content) : undefined
}
