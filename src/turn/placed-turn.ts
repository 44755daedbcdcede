import type { EntryDraft } from '../core/entry.ts'
import type { EntryId, RunId } from '../core/ids.ts'
import type { Transcript } from '../transcript/store.ts'
import type { PlacedTurn } from './deps.ts'

/** Whether it names an entry; otherwise the turn goes on wherever the conversation ends. */
export function hasPlace(place: PlacedTurn): place is PlacedTurn & { readonly at: EntryId | null } {
  return place.at !== undefined
}

/** Records that were appended since, such as a cleanup that was put off, belong to it: a branch would lose them. */
export async function endsAt(at: EntryId | null, transcript: Pick<Transcript, 'leafId' | 'context'>): Promise<boolean> {
  if (at === transcript.leafId) return true
  const { entries } = await transcript.context()
  const index = entries.findLastIndex(({ id }) => id === at)
  return index >= 0 && entries.slice(index + 1).every(({ type }) => type !== 'message')
}

/** What comes before the question; what came with it belongs to its step, so that a crash does not append it again. */
export function placedDrafts({ earlier, fresh }: PlacedTurn, run: RunId): readonly EntryDraft[] {
  return earlier.map((message, index) => {
    const step = index < earlier.length - fresh ? {} : { stepId: run }
    return { type: 'message', message, ...step }
  })
}
