/** Ids and keys become rows of the index, parts of every frame, and lines on an operator's terminal. */
const MAX_ID_CHARS = 512

/** Unicode's class Cc: C0, DEL and C1. */
const CONTROL_CHARACTERS = /\p{Cc}/u

export function hasControlCharacters(text: string): boolean {
  return CONTROL_CHARACTERS.test(text)
}

/** What is wrong with a field that names a message, a conversation or a person; undefined when nothing is. */
export function faultOfId(field: string, value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined
  if (value.length > MAX_ID_CHARS) return `"${field}" has more than ${MAX_ID_CHARS} characters`
  return hasControlCharacters(value) ? `"${field}" holds a control character` : undefined
}
