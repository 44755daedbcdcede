export type JsonValue = null | boolean | number | string | readonly JsonValue[] | JsonObject
export interface JsonObject {
  readonly [key: string]: JsonValue | undefined
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Compares values of any type as they are: as a text, the list `["a"]` would be the word `a`. */
export function isOneOf<const T extends readonly string[]>(value: unknown, words: T): value is T[number] {
  return (words as readonly unknown[]).includes(value)
}

/** Undefined for anything that is not JSON; callers decide what broken text means to them. */
export function parseJson(text: string): unknown {
  if (!endsAsItBegins(text)) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const CLOSING: ReadonlyMap<string, string> = new Map([
  ['{', '}'],
  ['[', ']'],
  ['"', '"'],
])

/** Looking at both ends costs a hundredth of an exception, and a damaged file can hold a hundred thousand broken lines. */
function endsAsItBegins(text: string): boolean {
  const bare = text.trim()
  const begin = bare.charAt(0)
  if (begin === '}' || begin === ']' || begin === '') return false
  const closing = CLOSING.get(begin)
  return closing === undefined || (bare.length > 1 && bare.endsWith(closing))
}
