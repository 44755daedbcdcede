import { createHash } from 'node:crypto'
import { isRecord, type JsonObject } from '../base/json.ts'
import type { Entry, SessionHeader, UnknownEntry } from '../core/entry.ts'
import type { EntryId } from '../core/ids.ts'
import {
  nameOf,
  numberOf,
  optionalFlag,
  optionalNumber,
  optionalText,
  withBoundedDepth,
  withRules,
  type Fields,
  type Rule,
  soundContent,
  soundMessage,
} from '../core/sound-message.ts'

/** The format this room writes. Older ones are read and migrated, newer headers are taken as they are. */
export const FORMAT_VERSION = 3

/** The fields of the line of an entry whose type we do not know, in the order they are written. */
export function orderedRaw({ id, parentId, timestamp, raw }: UnknownEntry): Fields {
  const { type, id: _id, parentId: _parentId, timestamp: own = timestamp, ...rest } = raw
  return { type, id, parentId, timestamp: own, ...rest }
}

export function encodeHeader(header: SessionHeader): string {
  return encodeLine(header)
}

/**
 * A value as a line, the newline included. Type, id, parent and time of an entry come first: readers find their way
 * through a file by a line's first bytes. Line separators are escaped because generic line readers split on them; lone
 * surrogates are escaped by `JSON.stringify` itself.
 */
export function encodeLine(value: object): string {
  return `${escapeSeparators(JSON.stringify(value))}\n`
}

const SEPARATORS = /[\u2028\u2029]/g

function escapeSeparators(json: string): string {
  // Almost no line holds one, and looking costs nothing where all characters are narrow.
  if (!json.includes('\u2028') && !json.includes('\u2029')) return json
  return json.replace(SEPARATORS, (char) => (char === '\u2028' ? '\\u2028' : '\\u2029'))
}

/** Types of entries, and what a line of each must hold at least to be one. */
const KNOWN_TYPES: ReadonlyMap<string, (raw: Fields) => boolean> = new Map<string, (raw: Fields) => boolean>([
  ['message', ({ message }) => isRecord(message) || Array.isArray(message) || typeof message === 'string'],
  ['compaction', (raw) => typeof raw['summary'] === 'string'],
  ['branch_summary', (raw) => typeof raw['summary'] === 'string'],
  ['custom', (raw) => typeof raw['customType'] === 'string'],
  ['custom_message', (raw) => 'content' in raw],
  ['model_change', (raw) => typeof raw['provider'] === 'string' && typeof raw['modelId'] === 'string'],
  ['thinking_level_change', (raw) => typeof raw['thinkingLevel'] === 'string'],
  ['label', (raw) => typeof raw['targetId'] === 'string'],
  ['session_info', () => true],
  ['context_edit', (raw) => typeof raw['targetId'] === 'string' && isReplacement(raw['replacement'])],
])

const isReplacement = (value: unknown): boolean => value === null || (isRecord(value) && 'content' in value)

/** For the fields of every entry. */
const PLACE_RULES = { stepId: optionalText, round: optionalNumber }

const RULES: ReadonlyMap<string, Readonly<Record<string, Rule>>> = new Map<string, Readonly<Record<string, Rule>>>([
  ['message', { ...PLACE_RULES, message: soundMessage }],
  [
    'compaction',
    {
      ...PLACE_RULES,
      tokensBefore: numberOf,
      fromHook: optionalFlag,
      systemMessage: (value) => (isRecord(value) ? soundMessage(value) : undefined),
    },
  ],
  ['branch_summary', { ...PLACE_RULES, fromId: nameOf }],
  [
    'custom_message',
    { ...PLACE_RULES, customType: nameOf, content: soundContent, display: (value) => value !== false },
  ],
  ['label', { ...PLACE_RULES, label: optionalText }],
  ['session_info', { ...PLACE_RULES, name: nameOf }],
  [
    'context_edit',
    { ...PLACE_RULES, replacement: soundReplacement, mirrors: (value) => (value === undefined ? value : 'cleanup') },
  ],
])

function soundReplacement(value: unknown): unknown {
  return isRecord(value) ? withRules(value, { content: soundContent }) : null
}

/** A line whose type is lost is a message when it holds one. */
function typeOf({ type, message }: Fields): unknown {
  return typeof type !== 'string' && isRecord(message) && typeof message['role'] === 'string' ? 'message' : type
}

/** `custom` entry that holds a line which is not what it says it is; pi would stumble over the line itself. */
export const MISSHAPEN = 'clew.misshapen'

/** Of no type, or of a known one without its fields. */
export function isMisshapen(raw: Fields): boolean {
  const type = typeOf(raw)
  return typeof type !== 'string' || KNOWN_TYPES.get(type)?.(raw) === false
}

/** True for a line that is an entry only after fields of it were corrected. */
export function hasOddFields(raw: Fields): boolean {
  return !isMisshapen(raw) && withSoundFields(withBoundedDepth(raw), nameOf(raw['id'])) !== raw
}

/**
 * The one place where a line becomes an entry. It gets the place it has in the tree, which after damage need not be the
 * one written in it, and fields of the types that its kind promises; the line in the file stays what it is. Types we do
 * not know travel on as `unknown` with everything they held, misshapen lines inside a `custom` entry.
 */
export function toEntry(raw: Fields, id: EntryId, parentId: EntryId | null): Entry {
  const timestamp = nameOf(raw['timestamp'])
  const bounded = withBoundedDepth(raw)
  if (isMisshapen(bounded))
    return freezeEntry({ type: 'custom', id, parentId, timestamp, customType: MISSHAPEN, data: bounded })
  const sound = withSoundFields(bounded, id)
  const isPlaced = raw['id'] === id && raw['parentId'] === parentId && raw['timestamp'] === timestamp
  const placed = isPlaced ? sound : { ...sound, id, parentId, timestamp }
  if (KNOWN_TYPES.has(nameOf(placed['type']))) return freezeEntry(placed as unknown as Entry)
  return freezeEntry({ type: 'unknown', id, parentId, timestamp, raw: placed as JsonObject })
}

function withSoundFields(raw: Fields, id: string): Fields {
  const type = typeOf(raw)
  const typed = type === raw['type'] ? raw : { ...raw, type }
  const ruled = withRules(typed, RULES.get(nameOf(type)) ?? PLACE_RULES)
  // A compaction that does not say what it keeps keeps nothing before itself.
  if (type !== 'compaction' || typeof ruled['firstKeptEntryId'] === 'string') return ruled
  return { ...ruled, firstKeptEntryId: id }
}

/**
 * The line of an entry at another place in the tree, everything else as it was read: what a reader makes of its fields
 * is not written back. Undefined for a line that stays as it is.
 */
export function movedLine(raw: Fields, id: EntryId, parentId: EntryId | null): Fields | undefined {
  const timestamp = nameOf(raw['timestamp'])
  if (isMisshapen(raw)) return { type: 'custom', id, parentId, timestamp, customType: MISSHAPEN, data: raw }
  if (raw['id'] === id && raw['parentId'] === parentId && raw['timestamp'] === timestamp) return undefined
  const { type, id: _id, parentId: _parentId, timestamp: _timestamp, ...rest } = raw
  return { type, id, parentId, timestamp, ...rest }
}

/** Frozen where callers reach by habit: the entry, its message, the message's content. */
export function freezeEntry(entry: Entry): Entry {
  if (entry.type === 'message') {
    if ('content' in entry.message) Object.freeze(entry.message.content)
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

/** What a line's first bytes tell, when it begins as pi and we write it. */
export interface LineHead {
  readonly type: EntryKind
  readonly id: string
  /** Undefined when the field is missing or is neither a string nor null. */
  readonly parentId: string | null | undefined
}

export const ENTRY_KINDS = {
  other: 0,
  session: 1,
  message: 2,
  compaction: 3,
  level: 4,
  model: 5,
} as const
export type EntryKind = (typeof ENTRY_KINDS)[keyof typeof ENTRY_KINDS]

export function kindOf(type: unknown): EntryKind {
  switch (type) {
    case 'session':
      return ENTRY_KINDS.session
    case 'message':
      return ENTRY_KINDS.message
    case 'compaction':
      return ENTRY_KINDS.compaction
    case 'thinking_level_change':
      return ENTRY_KINDS.level
    case 'model_change':
      return ENTRY_KINDS.model
    default:
      return ENTRY_KINDS.other
  }
}

const TYPE_START = Buffer.from('{"type":"')
const ID_START = Buffer.from(',"id":"')
const PARENT_START = Buffer.from(',"parentId":')
const QUOTE = 0x22
const BACKSLASH = 0x5c
const MAX_NAME_BYTES = 80

/** Undefined when the line does not begin in that order: then it has to be parsed. */
export function readHead(bytes: Buffer, start: number, end: number): LineHead | undefined {
  if (!startsWith(bytes, start, end, TYPE_START)) return undefined
  const typeStart = start + TYPE_START.length
  const typeEnd = stringEnd(bytes, typeStart, end)
  if (typeEnd < 0 || !startsWith(bytes, typeEnd + 1, end, ID_START)) return undefined
  const idStart = typeEnd + 1 + ID_START.length
  const idEnd = stringEnd(bytes, idStart, end)
  if (idEnd < 0 || !startsWith(bytes, idEnd + 1, end, PARENT_START)) return undefined
  const parentStart = idEnd + 1 + PARENT_START.length
  const type = kindOf(bytes.toString('latin1', typeStart, typeEnd))
  const id = bytes.toString('latin1', idStart, idEnd)
  if (bytes[parentStart] === 0x6e) return { type, id, parentId: null }
  const parentEnd = bytes[parentStart] === QUOTE ? stringEnd(bytes, parentStart + 1, end) : -1
  return parentEnd < 0 ? undefined : { type, id, parentId: bytes.toString('latin1', parentStart + 1, parentEnd) }
}

function startsWith(bytes: Buffer, at: number, end: number, expected: Buffer): boolean {
  if (at + expected.length > end) return false
  for (let i = 0; i < expected.length; i++) if (bytes[at + i] !== expected[i]) return false
  return true
}

/** Position of the closing quote of a short ASCII string without escapes, or -1. */
function stringEnd(bytes: Buffer, start: number, end: number): number {
  const limit = Math.min(end, start + MAX_NAME_BYTES)
  for (let at = start; at < limit; at++) {
    const byte = bytes[at] ?? 0
    if (byte === QUOTE) return at
    if (byte === BACKSLASH || byte >= 0x80 || byte < 0x20) return -1
  }
  return -1
}
