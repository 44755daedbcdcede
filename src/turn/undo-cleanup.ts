import { isRecord } from '../base/json.ts'
import type { Entry, EntryDraft, MessageEntry } from '../core/entry.ts'
import type { RunId } from '../core/ids.ts'
import { latestCleanup, RESTORE_ENTRY_TYPE } from '../history/cleanup-records.ts'
import type { TurnParts } from './parts.ts'

/**
 * Brings the latest hidden rounds back into view; undefined when nothing is hidden. A command that a restart runs again
 * (`run`) undoes what it undid before, not one more.
 */
export async function undoLatestCleanup(
  { transcript, savings }: Pick<TurnParts, 'transcript' | 'savings'>,
  run?: RunId,
): Promise<string | undefined> {
  const { entries } = await transcript.context()
  const done = run === undefined ? undefined : restoredBy(entries, run)
  if (done !== undefined) return done
  const latest = latestCleanup(entries)
  if (latest === undefined) return undefined
  const { stepId, hidden: ids, tokensBefore, tokensAfter } = latest.record
  const hidden = new Set(ids)
  const originals = entries.filter((entry): entry is MessageEntry => entry.type === 'message' && hidden.has(entry.id))
  const drafts: readonly EntryDraft[] = [
    {
      type: 'custom',
      customType: RESTORE_ENTRY_TYPE,
      data: { cleanup: latest.id, stepId, ...(run === undefined ? {} : { run }) },
    },
    ...originals.flatMap(mirrorOf),
  ]
  const change = { steps: -1, messages: -ids.length, tokensSaved: tokensAfter - tokensBefore }
  await transcript.append(drafts, { alongside: savings.cleaned(change) })
  return stepId
}

function restoredBy(entries: readonly Entry[], run: RunId): string | undefined {
  for (const entry of entries) {
    if (entry.type !== 'custom' || entry.customType !== RESTORE_ENTRY_TYPE || !isRecord(entry.data)) continue
    if (entry.data['run'] === run && typeof entry.data['stepId'] === 'string') return entry.data['stepId']
  }
  return undefined
}

function mirrorOf({ id, message }: MessageEntry): readonly EntryDraft[] {
  if (!('content' in message)) return []
  return [{ type: 'context_edit', targetId: id, replacement: { content: message.content }, mirrors: 'cleanup' }]
}
