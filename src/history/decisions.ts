import { isOneOf } from '../base/json.ts'
import type { CustomEntry, Entry } from '../core/entry.ts'
import type { EntryId } from '../core/ids.ts'
import { readPath, type PathReader } from '../core/path-memory.ts'

/** The custom entry that holds decisions; the turn appends it before the request it belongs to. */
export const VIEW_ENTRY_TYPE = 'clew.view'

/**
 * What a request decided about an entry and every later one repeats, so that the same bytes are sent again and the
 * provider's prompt cache stays valid. Later decisions about the same entry come on top of the earlier ones.
 */
export interface StickyDecision {
  readonly entry: EntryId
  readonly action: 'truncate' | 'trim' | 'clear' | 'leave-out'
  /** For `truncate`: the characters the result may keep. */
  readonly chars?: number
  /** The context window it was made for; a model with a larger one is not bound by it. */
  readonly window?: number
}

export const stickyEntryData = (decisions: readonly StickyDecision[]): CustomEntry['data'] => ({ decisions })

/** What was decided about each entry, in order; what clears it makes the cuts before it meaningless. */
export type StickyDecisions = ReadonlyMap<EntryId, readonly StickyDecision[]>

/** Reads what is well formed and leaves the rest: another program may have written the file. */
export function readDecisions(entries: readonly Entry[], contextWindow = 0): StickyDecisions {
  const byEntry = new Map<EntryId, readonly StickyDecision[]>()
  for (const decision of readPath(entries, DECISIONS)) {
    if (contextWindow > (decision.window ?? Infinity)) continue
    const before = byEntry.get(decision.entry) ?? []
    // Left out stays left out: results that will be are still measured, and may be cleared, before they go.
    byEntry.set(decision.entry, [...(decision.action === 'clear' ? before.filter(isLeaveOut) : before), decision])
  }
  return byEntry
}

const DECISIONS: PathReader<StickyDecision[]> = {
  start: () => [],
  copy: (decisions) => [...decisions],
  add(decisions, entry) {
    for (const decision of decisionsIn(entry)) decisions.push(decision)
  },
}

export function decisionsIn(entry: Entry): readonly StickyDecision[] {
  return entry.type === 'custom' && entry.customType === VIEW_ENTRY_TYPE ? listOf(entry.data).filter(isDecision) : []
}

export const isLeaveOut = ({ action }: StickyDecision): boolean => action === 'leave-out'

function listOf(data: unknown): readonly unknown[] {
  if (typeof data !== 'object' || data === null || !('decisions' in data)) return []
  return Array.isArray(data.decisions) ? data.decisions : []
}

function isDecision(value: unknown): value is StickyDecision {
  if (typeof value !== 'object' || value === null || !('entry' in value) || !('action' in value)) return false
  if (typeof value.entry !== 'string') return false
  if (value.action !== 'truncate') return isOneOf(value.action, ['trim', 'clear', 'leave-out'])
  return 'chars' in value && typeof value.chars === 'number' && value.chars > 0
}
