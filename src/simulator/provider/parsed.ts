import { isRecord, type JsonObject, type JsonValue, parseJson } from '../../base/json.ts'

/** For values that came out of a JSON parser: there every object is a JSON object. */
export function isJsonObject(value: unknown): value is JsonObject {
  return isRecord(value)
}

export function isJson(value: unknown): value is JsonValue {
  return value === null || ['boolean', 'number', 'string', 'object'].includes(typeof value)
}

/** An object given as such or as JSON text; empty for everything else. */
export function toJsonObject(value: unknown): JsonObject {
  const parsed = typeof value === 'string' ? parseJson(value) : value
  return isJsonObject(parsed) ? parsed : {}
}
