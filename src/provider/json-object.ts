import { isRecord, parseJson, type JsonObject } from '../base/json.ts'

/** For values that came out of `JSON.parse`: an object of those holds nothing but JSON. */
export function isJsonObject(value: unknown): value is JsonObject {
  return isRecord(value)
}

export function parseJsonObject(text: string): JsonObject | undefined {
  const value = parseJson(text)
  return isJsonObject(value) ? value : undefined
}
