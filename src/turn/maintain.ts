import { cleanEverything } from './cleanup.ts'
import { compact, undoLatestCompaction } from './compact.ts'
import { countFor } from './count-messages.ts'
import type { RunId } from '../core/ids.ts'
import { chooseLanguage } from '../core/language.ts'
import { phrasesIn } from '../core/phrases/phrases-in.ts'
import type { Phrases } from '../core/phrases/phrases.ts'
import { latestWords } from '../history/latest-words.ts'
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
  const { entries } = await parts.transcript.context()
  const phrases = phrasesIn(chooseLanguage(parts.settings.language, latestWords(entries)))
  switch (name) {
    case 'cleanup': {
      const events = await cleanEverything(parts, signal)
      const saved = events.reduce((sum, event) => sum + event.tokensSaved, 0)
      const messages = events.reduce((sum, event) => sum + event.cleanedMessages, 0)
      return events.length === 0 ? phrases.nothingToClean() : phrases.cleaned(messages, events.length, saved)
    }
    case 'restore': {
      const stepId = await undoLatestCleanup(parts, run)
      return stepId === undefined ? phrases.nothingToRestore() : phrases.restored(stepId)
    }
    case 'compact': {
      if (rest === 'undo') return undoCompaction(run, phrases, parts)
      if (rest !== '') return phrases.compactUsage()
      const [model] = parts.models
      const { input } = await prepareRequest(
        model,
        { tools: await offeredTools(parts), systemPrompt: parts.settings.systemPrompt, projection: 'normal' },
        parts,
      )
      const result = await compact(model, input, 'asked for', parts, signal)
      if (result.kind === 'nothing') return phrases.tooShort()
      if (result.kind === 'failed') return phrases.notSummarised(result.reason)
      return phrases.summarised(result.tokensBefore, result.tokensAfter)
    }
  }
}

async function undoCompaction(run: RunId, phrases: Phrases, parts: TurnParts): Promise<string> {
  const undone = await undoLatestCompaction(parts.transcript, await countFor(parts.models[0], parts), run)
  return undone === undefined ? phrases.noSummary() : phrases.summaryTakenBack(undone.tokensBefore, undone.tokensAfter)
}
