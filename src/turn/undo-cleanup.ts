import { isRecord } from '../base/json.ts'
import type { Entry, EntryDraft, MessageEntry } from '../core/entry.ts'
import type { RunId } from '../core/ids.ts'
import {
  activeCleanups,
  CLEANUP_ENTRY_TYPE,
  latestCleanup,
  RESTORE_ENTRY_TYPE,
  type ActiveCleanup,
} from '../history/view-records.ts'
import type { TurnDeps } from './deps.ts'

type UndoDeps = Pick<TurnDeps, 'transcript' | 'savings'>

/**
 * Brings the latest hidden rounds back into view; undefined when nothing is hidden. A command that a restart runs again
 * (`run`) undoes what it undid before, not one more.
 */
export async function undoLatestCleanup(deps: UndoDeps, run?: RunId): Promise<string | undefined> {
  const { entries } = await deps.transcript.context()
  const done = run === undefined ? undefined : restoredBy(entries, run)
  if (done !== undefined) return done
  const latest = latestCleanup(entries)
  return latest === undefined ? undefined : undo(latest, entries, deps, run)
}

/** Brings back what one cleanup hid, whichever came after it. `gone`: it was undone before; undefined: there is none. */
export async function undoCleanup(deps: UndoDeps, id: string): Promise<string | undefined> {
  // The context begins at the latest summary; what that stands for can be brought back for the day it is undone.
  const entries = await deps.transcript.branch()
  const wanted = activeCleanups(entries).find((one) => one.id === id)
  if (wanted !== undefined) return undo(wanted, entries, deps)
  const known = entries.some((entry) => entry.id === id && isCleanupEntry(entry))
  return known ? 'gone' : undefined
}

function isCleanupEntry(entry: Entry): boolean {
  return entry.type === 'custom' && entry.customType === CLEANUP_ENTRY_TYPE
}

async function undo(
  { id, record }: ActiveCleanup,
  entries: readonly Entry[],
  { transcript, savings }: UndoDeps,
  run?: RunId,
): Promise<string> {
  const { stepId, hidden: ids, tokensBefore, tokensAfter } = record
  const hidden = new Set(ids)
  const originals = entries.filter((entry): entry is MessageEntry => entry.type === 'message' && hidden.has(entry.id))
  const drafts: readonly EntryDraft[] = [
    {
      type: 'custom',
      customType: RESTORE_ENTRY_TYPE,
      data: { cleanup: id, stepId, ...(run === undefined ? {} : { run }) },
    },
    ...originals.flatMap(mirrorOf),
  ]
  const change = { steps: -1, messages: -ids.length, tokensSaved: tokensAfter - tokensBefore }
  await transcript.append(drafts, { changes: savings.cleaned(change) })
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
