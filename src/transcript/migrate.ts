import { isRecord } from '../base/json.ts'
import type { EntryIndex } from './entry-index.ts'

/**
 * A line of an older format as a line of this one. Version 1 had no ids and no parents: the index gives it both, by
 * place. What is left to do is the position of a compaction's first kept line, and a role that version 3 renamed.
 */
export function migrateRaw(raw: Record<string, unknown>, version: number, index: EntryIndex): Record<string, unknown> {
  if (version >= 3) return raw
  if (version < 2 && raw['type'] === 'compaction' && typeof raw['firstKeptEntryIndex'] === 'number') {
    const { firstKeptEntryIndex, ...rest } = raw
    // Counted over the lines with the header as 0.
    const at = firstKeptEntryIndex - 1
    return at >= 0 && at < index.count ? { ...rest, firstKeptEntryId: index.idAt(at) } : rest
  }
  const { message } = raw
  if (raw['type'] === 'message' && isRecord(message) && message['role'] === 'hookMessage') {
    return { ...raw, message: { ...message, role: 'custom' } }
  }
  return raw
}
