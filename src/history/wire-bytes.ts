import type { PreparedMessage } from '../core/message.ts'
import type { Item } from './item.ts'

const BYTES_AROUND_A_MESSAGE = 256
/** A control character becomes `\\u0001`; nothing takes more. */
const MAX_BYTES_PER_CHAR = 6

/**
 * How to weigh messages against a limit: by a bound that needs no look at the text as long as that is enough, which it
 * is for all but the largest requests.
 */
export function bytesMeasure(items: readonly Item[], limit: number): (message: PreparedMessage) => number {
  let total = 0
  for (const item of items) total += upperBound(item.message)
  return total <= limit ? upperBound : wireBytes
}

function upperBound(message: PreparedMessage): number {
  if (typeof message.content === 'string') return BYTES_AROUND_A_MESSAGE + message.content.length * MAX_BYTES_PER_CHAR
  let bytes = BYTES_AROUND_A_MESSAGE
  for (const block of message.content) {
    if (block.type === 'image') bytes += block.data.length
    else if (block.type === 'text') bytes += block.text.length * MAX_BYTES_PER_CHAR
    else return wireBytes(message)
  }
  return bytes
}

const knownBytes = new WeakMap<PreparedMessage['content'] & object, number>()

/** What a message adds to a request body, rather too much than too little: some APIs wrap arguments in a second JSON. */
export function wireBytes(message: PreparedMessage): number {
  const { content } = message
  if (typeof content === 'string') return BYTES_AROUND_A_MESSAGE + Buffer.byteLength(JSON.stringify(content))
  const known = knownBytes.get(content)
  if (known !== undefined) return known
  const calls = content.filter((block) => block.type === 'toolCall')
  const bytes =
    BYTES_AROUND_A_MESSAGE + Buffer.byteLength(JSON.stringify(content)) + Buffer.byteLength(JSON.stringify(calls))
  knownBytes.set(content, bytes)
  return bytes
}
