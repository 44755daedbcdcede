import { isRecord } from '../base/json.ts'
import type { Entry, EntryDraft } from '../core/entry.ts'
import type { RunId } from '../core/ids.ts'

const JOINED_ENTRY_TYPE = 'clew.joined'

/** Says that a message joined a step that was already running; written together with the message's text. */
export function joinedDraft(run: RunId, stepId: string): EntryDraft {
  return { type: 'custom', customType: JOINED_ENTRY_TYPE, data: { run, stepId } }
}

/** The step a message joined before a crash: its text is in the transcript, its answer is that step's answer. */
export function stepJoinedBy(entries: readonly Entry[], run: RunId): RunId | undefined {
  for (const entry of entries.toReversed()) {
    if (entry.type !== 'custom' || entry.customType !== JOINED_ENTRY_TYPE || !isRecord(entry.data)) continue
    if (entry.data['run'] === run && typeof entry.data['stepId'] === 'string') return entry.data['stepId'] as RunId
  }
  return undefined
}
