import type { Entry } from '../core/entry.ts'
import type { PreparedMessage } from '../core/message.ts'
import type { TokenCount } from '../core/token-counter.ts'
import { estimateMessageTokens } from '../core/tokens.ts'
import { activeEntries, viewOf } from './view.ts'

/** How numbers that people read are counted: the same way on both sides of a comparison. */
export type CountMessages = (messages: readonly PreparedMessage[]) => TokenCount

/** Counts messages with the estimate that every budget uses. */
export const estimateMessages: CountMessages = (messages) => ({
  count: messages.reduce((sum, message) => sum + estimateMessageTokens(message), 0),
  estimated: true,
})

/** Of what the model sees of this path, without what a provider's rules change. */
export function tokensInView(path: readonly Entry[], count: CountMessages): TokenCount {
  return count(viewOf(activeEntries(path)).items.map(({ message }) => message))
}
