import { isRecord, type JsonObject, type JsonValue } from '../base/json.ts'
import { wellFormed } from '../base/text.ts'

export { wellFormed }

export function isWellFormed(text: string): boolean {
  return text.isWellFormed()
}

/** A JSON value whose every string and key is well-formed; the same object when nothing had to change. */
export function wellFormedJson(value: JsonObject): JsonObject {
  // Other programs' transcripts hold calls without arguments.
  if (!isRecord(value)) return {}
  // JSON.stringify writes lone surrogates as `\udXXX`: almost no value needs the deep walk.
  return JSON.stringify(value).includes('\\ud') ? repairObject(value) : value
}

function repair(value: JsonValue | undefined): JsonValue | undefined {
  if (typeof value === 'string') return wellFormed(value)
  if (typeof value !== 'object' || value === null) return value
  if (isArray(value)) return value.map((item) => repair(item) ?? null)
  return repairObject(value)
}

function repairObject(value: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [wellFormed(key), repair(item)]))
}

/** `Array.isArray` forgets that an array may be read-only. */
function isArray(value: JsonObject | readonly JsonValue[]): value is readonly JsonValue[] {
  return Array.isArray(value)
}

export function isBlank(text: string): boolean {
  return text.trim() === ''
}

/** A function name every API accepts. Names come from old transcripts too, which other programs wrote. */
export function wireToolName(name: string): string {
  const safe = name.replaceAll(/[^A-Za-z0-9_-]/g, '_').slice(0, 64)
  if (safe === '') return 'unknown_tool'
  // Google wants a letter or an underscore first.
  return /^[A-Za-z_]/.test(safe) ? safe : `_${safe.slice(0, 63)}`
}
