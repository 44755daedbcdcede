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
