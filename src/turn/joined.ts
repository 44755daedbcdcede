import { isRecord } from '../base/json.ts'
import type { Entry, EntryDraft } from '../core/entry.ts'
import type { RunId } from '../core/ids.ts'
import { readPath, type PathReader } from '../core/path-memory.ts'

const JOINED_ENTRY_TYPE = 'clew.joined'

/** Says that a message joined a step that was already running; written together with the message's text. */
export function joinedDraft(run: RunId, stepId: string): EntryDraft {
  return { type: 'custom', customType: JOINED_ENTRY_TYPE, data: { run, stepId } }
}

/** The step a message joined before a crash: its text is in the transcript, its answer is that step's answer. */
export function stepJoinedBy(entries: readonly Entry[], run: RunId): RunId | undefined {
  return joinsIn(entries).findLast((join) => join.run === run)?.stepId
}

/** To be written again behind a summary that takes them out of view while their step still runs. */
export function joinsOfLatestStep(entries: readonly Entry[]): readonly EntryDraft[] {
  const latest = entries.findLast((entry) => entry.type === 'message' && entry.stepId !== undefined)?.stepId
  return joinsIn(entries).flatMap(({ run, stepId }) => (stepId === latest ? [joinedDraft(run, stepId)] : []))
}

interface Join {
  readonly run: RunId
  readonly stepId: RunId
}

const joinsIn = (entries: readonly Entry[]): readonly Join[] => readPath(entries, JOINS)

const JOINS: PathReader<Join[]> = {
  start: () => [],
  add(joins, entry) {
    if (entry.type !== 'custom' || entry.customType !== JOINED_ENTRY_TYPE || !isRecord(entry.data)) return
    const { run, stepId } = entry.data
    if (typeof run === 'string' && typeof stepId === 'string')
      joins.push({ run: run as RunId, stepId: stepId as RunId })
  },
}
