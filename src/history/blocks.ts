import type { UserBlock, UserMessage } from '../core/message.ts'

/** Content as blocks, whichever of its two forms it has. */
export function userBlocksOf(message: UserMessage): readonly UserBlock[] {
  return typeof message.content === 'string' ? [{ type: 'text', text: message.content }] : message.content
}
