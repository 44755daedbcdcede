import type { EntryDraft } from '../core/entry.ts'
import type { EntryId, RunId } from '../core/ids.ts'
import type { PlacedTurn } from './parts.ts'

/** Whether it names an entry; otherwise the turn goes on wherever the conversation ends. */
export function hasPlace(place: PlacedTurn): place is PlacedTurn & { readonly at: EntryId | null } {
  return place.at !== undefined
}

/** What comes before the question; what came with it belongs to its step, so that a crash does not append it again. */
export function placedDrafts({ earlier, fresh }: PlacedTurn, run: RunId): readonly EntryDraft[] {
  return earlier.map((message, index) => {
    const step = index < earlier.length - fresh ? {} : { stepId: run }
    return { type: 'message', message, ...step }
  })
}
