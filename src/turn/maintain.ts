import { cleanEverything } from './cleanup.ts'
import { compact, undoLatestCompaction } from './compact.ts'
import { countFor } from './count-messages.ts'
import type { RunId } from '../core/ids.ts'
import type { TurnParts } from './parts.ts'
import { undoLatestCleanup } from './undo-cleanup.ts'
import { offeredTools } from './own-tools.ts'
import { prepareRequest } from './request.ts'

/** `/cleanup`, `/restore` and `/compact`: they wait for their turn in the queue like a message. Each returns what to say. */
export async function runMaintenance(
  { name, rest }: { readonly name: 'cleanup' | 'restore' | 'compact'; readonly rest: string },
  run: RunId,
  parts: TurnParts,
  signal: AbortSignal,
): Promise<string> {
  switch (name) {
    case 'cleanup': {
      const events = await cleanEverything(parts, signal)
      const saved = events.reduce((sum, event) => sum + event.tokensSaved, 0)
      const messages = events.reduce((sum, event) => sum + event.cleanedMessages, 0)
      return events.length === 0
        ? 'There is nothing to clean up.'
        : `Cleaned ${messages} messages of ${events.length} steps; saved about ${saved} tokens. /restore brings the latest back.`
    }
    case 'restore': {
      const stepId = await undoLatestCleanup(parts, run)
      return stepId === undefined ? 'There is no cleanup to undo.' : `The working steps of ${stepId} are in view again.`
    }
    case 'compact': {
      if (rest === 'undo') return undoCompaction(run, parts)
      if (rest !== '') return 'Nothing was done: it is /compact, or /compact undo.'
      const [model] = parts.models
      const { input } = await prepareRequest(
        model,
        { tools: await offeredTools(parts), systemPrompt: parts.settings.systemPrompt, projection: 'normal' },
        parts,
      )
      const result = await compact(model, input, 'asked for', parts, signal)
      if (result.kind === 'nothing') return 'The conversation is too short to be summarised.'
      if (result.kind === 'failed') return `The conversation was not summarised: ${result.reason}.`
      return `The older part is now a summary: about ${result.tokensBefore} tokens became ${result.tokensAfter}. /compact undo takes it back.`
    }
  }
}

async function undoCompaction(run: RunId, parts: TurnParts): Promise<string> {
  const undone = await undoLatestCompaction(parts.transcript, await countFor(parts.models[0], parts), run)
  if (undone === undefined) return 'There is no summary to take back.'
  return `The latest summary is taken back; what it stood for is in view again: about ${undone.tokensAfter} tokens instead of ${undone.tokensBefore}.`
}
