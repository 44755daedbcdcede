import { isRecord, type JsonObject } from '../base/json.ts'
import type { EntryId } from '../core/ids.ts'

/** A JSON object whose fields nobody has checked. */
export type Loose = { readonly [field: string]: unknown }

/** For values that came out of JSON: then an object is a JSON object. */
export const isJsonObject = (value: unknown): value is JsonObject => isRecord(value)

export const isEntryId = (value: unknown): value is EntryId => typeof value === 'string'

export const stringOf = (value: unknown): string => (typeof value === 'string' ? value : '')

export const numberOf = (value: unknown): number => (typeof value === 'number' && Number.isFinite(value) ? value : 0)
