import { parseForeignJson, isRecord, type JsonObject } from '../base/json.ts'

/** For values that came out of `JSON.parse`: an object of those holds nothing but JSON. */
export function isJsonObject(value: unknown): value is JsonObject {
  return isRecord(value)
}

export function parseJsonObject(text: string): JsonObject | undefined {
  const value = parseForeignJson(text)
  return isJsonObject(value) ? value : undefined
}

/** The value, or an empty object: for fields of foreign documents that may be anything. */
export function objectOf(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {}
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** The objects of a list; empty for anything else. */
export function arrayOf(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}
