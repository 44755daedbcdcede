import { isRecord, type JsonObject } from '../base/json.ts'
import type { EntryId } from '../core/ids.ts'
import { isDeeperThan } from '../core/sound-message.ts'

/** A JSON object whose fields nothing has checked. */
export type Loose = { readonly [field: string]: unknown }

/** For values that came out of JSON: then an object is a JSON object. */
export const isJsonObject = (value: unknown): value is JsonObject => isRecord(value)

export const isEntryId = (value: unknown): value is EntryId => typeof value === 'string'

/** Far above what a tool takes and below what JSON parsers of providers accept (protobuf stops at 100). */
const MAX_LEVELS = 64

/** An object without the fields that are nested too deeply to be sent. */
export function withoutDeepFields<T extends object>(value: T): T
export function withoutDeepFields(value: Loose): Loose {
  for (const field in value) {
    if (isDeeperThan(MAX_LEVELS, value[field]))
      return Object.fromEntries(Object.entries(value).filter(([, inner]) => !isDeeperThan(MAX_LEVELS, inner)))
  }
  return value
}
