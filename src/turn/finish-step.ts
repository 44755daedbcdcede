import type { RunId } from '../core/ids.ts'
import type { Outcome } from '../core/outcome.ts'
import { stepRounds } from './step-state.ts'
import type { TurnParts } from './parts.ts'

/** What comes after the last round: the step is announced as done. */
export async function finishStep(run: RunId, _outcome: Outcome, parts: TurnParts): Promise<void> {
  const { entries } = await parts.transcript.context()
  await parts.emit({ type: 'step-completed', stepId: run, rounds: stepRounds(entries, run) })
}
