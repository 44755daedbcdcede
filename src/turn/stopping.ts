import type { EntryDraft } from '../core/entry.ts'
import { stepEndDraft, type StepOutcome } from '../history/derive-steps.ts'
import type { UnfinishedWork } from './deps.ts'

export const NOTHING_UNFINISHED: UnfinishedWork = { drafts: [], changes: [] }

/** A step that ends here, with what it had not stored yet. */
export function stoppedStep(
  stepId: string,
  outcome: StepOutcome = 'cancelled',
  unstored: Partial<UnfinishedWork> = {},
): UnfinishedWork {
  const { drafts = [], changes = [] } = unstored
  const end: EntryDraft = stepEndDraft(stepId, outcome)
  return { drafts: [...drafts, end], changes }
}
