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

/**
 * Waits for something that only watches. A stop that arrives meanwhile must not cost what is already there (a tool's
 * result, the model's answer): the next step notices the stop by itself.
 */
export async function ignoreFailureIfAborted(watching: Promise<void>, signal: AbortSignal): Promise<void> {
  try {
    await watching
  } catch (thrown) {
    if (!signal.aborted) throw thrown
  }
}
