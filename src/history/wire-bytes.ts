import { assertNever } from '../base/assert-never.ts'
import type { JsonValue } from '../base/json.ts'
import type { PreparedMessage } from '../core/message.ts'
import type { Item } from './item.ts'

const BYTES_AROUND_A_MESSAGE = 256
/** A control character becomes `\\u0001`; nothing takes more. */
const MAX_BYTES_PER_CHAR = 6

/**
 * How to weigh messages against a limit: by a bound that needs no look at the text as long as that is enough, which it
 * is for all but the largest requests.
 */
export function bytesMeasure(items: readonly Item[], limit: number): BytesMeasure {
  const bound = bytesBound(items)
  if (bound <= limit) return { bytesOf: upperBound, total: bound }
  let total = 0
  for (const item of items) total += wireBytes(item.message)
  return { bytesOf: wireBytes, total }
}

/** No body has more bytes from these items. */
export function bytesBound(items: readonly Item[]): number {
  let bound = 0
  for (const item of items) bound += upperBound(item.message)
  return bound
}

export interface BytesMeasure {
  readonly bytesOf: (message: PreparedMessage) => number
  /** Of all items together, by that measure. */
  readonly total: number
}

function upperBound(message: PreparedMessage): number {
  if (typeof message.content === 'string') return BYTES_AROUND_A_MESSAGE + message.content.length * MAX_BYTES_PER_CHAR
  let bytes = BYTES_AROUND_A_MESSAGE
  for (const block of message.content) {
    switch (block.type) {
      case 'image':
        bytes += block.data.length
        break
      case 'text':
        bytes += BYTES_AROUND_A_BLOCK + block.text.length * MAX_BYTES_PER_CHAR
        break
      case 'thinking':
        bytes += BYTES_AROUND_A_BLOCK + lengthOf(block.thinking, block.thinkingSignature ?? '') * MAX_BYTES_PER_CHAR
        break
      case 'toolCall':
        bytes += BYTES_AROUND_A_BLOCK + lengthOf(block.id, block.name, block.thoughtSignature) * MAX_BYTES_PER_CHAR
        bytes += ARGUMENTS_WRITTEN_TWICE * jsonBound(block.arguments)
        break
      default:
        return assertNever(block)
    }
  }
  return bytes
}

const BYTES_AROUND_A_BLOCK = 128
/** Once as they are, once more for the quotes and backslashes where an API takes them as a text of JSON. */
const ARGUMENTS_WRITTEN_TWICE = 2

function lengthOf(first: string, second: string, third = ''): number {
  return first.length + second.length + third.length
}

/** No JSON of the value is longer. */
function jsonBound(value: JsonValue | undefined): number {
  if (typeof value === 'string') return 2 + value.length * MAX_BYTES_PER_CHAR
  if (typeof value !== 'object' || value === null) return MAX_BYTES_OF_A_NUMBER
  let bytes = 2
  for (const [key, inner] of Object.entries(value)) bytes += 4 + key.length * MAX_BYTES_PER_CHAR + jsonBound(inner)
  return bytes
}

const MAX_BYTES_OF_A_NUMBER = 25

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
