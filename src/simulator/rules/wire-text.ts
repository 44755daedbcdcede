import { isRecord } from '../../base/json.ts'

/** The longest a UTF-16 unit becomes in JSON: six bytes, as an escape. */
const MAX_BYTES_PER_UNIT = 6
const MAX_BYTES_AROUND_VALUE = 32

export interface WireFacts {
  /** Path of the first string or key that is not well-formed Unicode. */
  readonly loneSurrogateAt: string | undefined
  /** Never less than the body's bytes on the wire. */
  readonly maxBytes: number
}

function hasLoneSurrogate(text: string): boolean {
  return !text.isWellFormed()
}

/** One walk over the body for what every provider's JSON parser sees before any rule does. */
export function wireFacts(body: unknown): WireFacts {
  let maxBytes = 0
  let broken = false
  const measure = (text: string): void => {
    maxBytes += text.length * MAX_BYTES_PER_UNIT
    if (!broken && hasLoneSurrogate(text)) broken = true
  }
  const visit = (value: unknown): void => {
    maxBytes += MAX_BYTES_AROUND_VALUE
    if (typeof value === 'string') measure(value)
    else if (Array.isArray(value)) for (const item of value) visit(item)
    else if (isRecord(value)) {
      for (const key in value) {
        measure(key)
        visit(value[key])
      }
    }
  }
  visit(body)
  return { loneSurrogateAt: broken ? pathOfLoneSurrogate(body, []) : undefined, maxBytes }
}

function pathOfLoneSurrogate(value: unknown, path: readonly (string | number)[]): string | undefined {
  if (typeof value === 'string') return hasLoneSurrogate(value) ? path.join('.') : undefined
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const found = pathOfLoneSurrogate(item, [...path, index])
      if (found !== undefined) return found
    }
  } else if (isRecord(value)) {
    for (const [key, item] of Object.entries(value)) {
      const here = [...path, key]
      const found = hasLoneSurrogate(key) ? here.join('.') : pathOfLoneSurrogate(item, here)
      if (found !== undefined) return found
    }
  }
  return undefined
}

/** What a value is called in a message. Total: `String` throws for objects whose `toString` came from outside. */
export function asText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? 'undefined')
}

/** Exact size, computed only when the cheap bound does not already settle the question. */
export function exceedsBytes(body: unknown, facts: WireFacts, limit: number, known: number | undefined): boolean {
  if (known !== undefined) return known > limit
  if (facts.maxBytes <= limit) return false
  return Buffer.byteLength(JSON.stringify(body)) > limit
}
