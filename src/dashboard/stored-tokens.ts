import type { MessageEntry } from '../core/entry.ts'
import { estimateMessageTokens } from '../core/tokens.ts'
import { normalizeMessage } from '../history/normalize-message.ts'

/** Entries never change, so a count is made once. */
const counted = new WeakMap<MessageEntry, number>()

/** What a stored message would cost in a request, by the one estimate that every budget uses. */
export function estimateStoredTokens(entry: MessageEntry): number {
  const known = counted.get(entry)
  if (known !== undefined) return known
  const { message } = normalizeMessage(entry.message)
  const tokens = message === undefined ? 0 : estimateMessageTokens(message)
  counted.set(entry, tokens)
  return tokens
}
