import { createHash } from 'node:crypto'
import { isRecord, type JsonObject } from '../base/json.ts'
import type { Entry, SessionHeader } from '../core/entry.ts'
import type { EntryId } from '../core/ids.ts'

/** The format this room writes. Older ones are read and migrated, newer headers are taken as they are. */
export const FORMAT_VERSION = 3

/**
 * An entry as its line, the newline included. Type, id, parent and time come first: readers find their way through a
 * file by a line's first bytes. Line separators are escaped because generic line readers split on them; lone
 * surrogates are escaped by `JSON.stringify` itself.
 */
export function encodeEntry(entry: Entry): string {
  return encodeLine(orderedRaw(entry))
}

/** The fields of an entry's line, in the order they are written. */
export function orderedRaw(entry: Entry): Record<string, unknown> {
  const fields: Record<string, unknown> =
    entry.type === 'unknown'
      ? { timestamp: entry.timestamp, ...entry.raw, id: entry.id, parentId: entry.parentId }
      : { ...entry }
  const { type, id, parentId, timestamp, ...rest } = fields
  return { type, id, parentId, timestamp, ...rest }
}

export function encodeHeader(header: SessionHeader): string {
  return encodeLine(header)
}

export function encodeLine(value: object): string {
  return `${escapeSeparators(JSON.stringify(value))}\n`
}

const SEPARATORS = /[\u2028\u2029]/g

function escapeSeparators(json: string): string {
  // Almost no line holds one, and looking costs nothing where all characters are narrow.
  if (!json.includes('\u2028') && !json.includes('\u2029')) return json
  return json.replace(SEPARATORS, (char) => (char === '\u2028' ? '\\u2028' : '\\u2029'))
}

const KNOWN_TYPES: ReadonlyMap<string, (raw: Record<string, unknown>) => boolean> = new Map<
  string,
  (raw: Record<string, unknown>) => boolean
>([
  ['message', (raw) => isRecord(raw['message']) && typeof raw['message']['role'] === 'string'],
  ['compaction', (raw) => typeof raw['summary'] === 'string'],
  ['branch_summary', (raw) => typeof raw['summary'] === 'string'],
  ['custom', (raw) => typeof raw['customType'] === 'string'],
  ['custom_message', (raw) => typeof raw['customType'] === 'string' && 'content' in raw],
  ['model_change', (raw) => typeof raw['provider'] === 'string' && typeof raw['modelId'] === 'string'],
  ['thinking_level_change', (raw) => typeof raw['thinkingLevel'] === 'string'],
  ['label', (raw) => typeof raw['targetId'] === 'string'],
  ['session_info', () => true],
  ['context_edit', (raw) => typeof raw['targetId'] === 'string'],
])

/** True for an entry of a known type whose own fields have the shape that type needs. */
export function hasKnownShape(raw: Record<string, unknown>): boolean {
  return typeof raw['type'] === 'string' && KNOWN_TYPES.get(raw['type'])?.(raw) === true
}

/** `custom` entry that holds a line which is not what it says it is; pi would stumble over the line itself. */
export const MISSHAPEN = 'clew.misshapen'

/** Of no type, or of a known one without its fields. */
export function isMisshapen(raw: Record<string, unknown>): boolean {
  return typeof raw['type'] !== 'string' || KNOWN_TYPES.get(raw['type'])?.(raw) === false
}

/**
 * A parsed line under the place it has in the tree, which after damage need not be the one written in it. Types we
 * do not know travel on as `unknown` with everything they held, misshapen lines inside a `custom` entry.
 */
export function toEntry(raw: Record<string, unknown>, id: EntryId, parentId: EntryId | null): Entry {
  const timestamp = typeof raw['timestamp'] === 'string' ? raw['timestamp'] : ''
  const isSame = raw['id'] === id && raw['parentId'] === parentId && raw['timestamp'] === timestamp
  const placed = isSame ? raw : { ...raw, id, parentId, timestamp }
  if (hasKnownShape(raw)) return freezeEntry(placed as unknown as Entry)
  if (isMisshapen(raw))
    return freezeEntry({ type: 'custom', id, parentId, timestamp, customType: MISSHAPEN, data: raw })
  return freezeEntry({ type: 'unknown', id, parentId, timestamp, raw: placed as JsonObject })
}

/** Frozen where callers reach by habit: the entry, its message, the message's content. */
export function freezeEntry(entry: Entry): Entry {
  if (entry.type === 'message') {
    const { content } = entry.message as { readonly content?: unknown }
    if (Array.isArray(content)) Object.freeze(content)
    Object.freeze(entry.message)
  }
  return Object.freeze(entry)
}

export function isHeader(raw: unknown): raw is SessionHeader {
  return isRecord(raw) && raw['type'] === 'session' && typeof raw['id'] === 'string' && raw['id'] !== ''
}

/** Header fields another program left out, filled so that the rest of the room need not ask. */
export function toHeader(raw: SessionHeader): SessionHeader {
  const { version, timestamp, cwd } = raw as Partial<SessionHeader>
  return {
    ...raw,
    version: typeof version === 'number' ? version : 1,
    timestamp: typeof timestamp === 'string' ? timestamp : '',
    cwd: typeof cwd === 'string' ? cwd : '',
  }
}

/** The same for the same line at the same place, so that an entry without an id of its own keeps the one it is given. */
export function derivedId(line: number, content: string | Uint8Array): EntryId {
  return createHash('sha256').update(`${line}\n`).update(content).digest('hex').slice(0, 16) as EntryId
}
