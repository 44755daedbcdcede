import type { JsonObject } from '../base/json.ts'
import { cleanEverything } from './cleanup.ts'
import { compact, undoLatestCompaction } from './compact.ts'
import { countFor } from './count-messages.ts'
import type { RunId } from '../core/ids.ts'
import { chooseLanguage } from '../core/language.ts'
import { phrasesIn } from '../core/phrases/phrases-in.ts'
import type { Phrases } from '../core/phrases/phrases.ts'
import { deriveSteps } from '../history/derive-steps.ts'
import { latestWords } from '../history/latest-words.ts'
import type { TurnParts } from './parts.ts'
import { tokensInView } from '../history/view-tokens.ts'
import { undoLatestCleanup } from './undo-cleanup.ts'
import { offeredTools } from './own-tools.ts'
import { prepareRequest } from './request.ts'
import { chooseVersion } from './versions.ts'

export const MAINTENANCE = ['cleanup', 'restore', 'compact', 'branch'] as const

type MaintenanceName = (typeof MAINTENANCE)[number]

/** What a command did: the words for the user, and the figures for programs. */
export interface MaintenanceResult {
  readonly text: string
  readonly done?: JsonObject
}

/** `/cleanup`, `/restore`, `/compact` and `/branch`: they wait for their turn in the queue like a message. */
export async function runMaintenance(
  { name, rest }: { readonly name: MaintenanceName; readonly rest: string },
  run: RunId,
  parts: TurnParts,
  signal: AbortSignal,
): Promise<MaintenanceResult> {
  const phrases = await phrasesOf(parts)
  switch (name) {
    case 'branch':
      return { text: await chooseVersion(rest, parts.transcript, phrases) }
    case 'cleanup':
      return cleanNow(phrases, parts, signal)
    case 'restore': {
      const stepId = await undoLatestCleanup(parts, run)
      return {
        text: stepId === undefined ? phrases.nothingToRestore() : phrases.restored(await askedIn(stepId, parts)),
      }
    }
    case 'compact':
      if (rest === 'undo') return { text: await undoCompaction(run, phrases, parts) }
      if (rest !== '') return { text: phrases.compactUsage() }
      return compactNow(phrases, parts, signal)
  }
}

/** What the user asked in a step; its id when that is no longer there. */
async function askedIn(stepId: string, { transcript }: TurnParts): Promise<string> {
  return deriveSteps(await transcript.branch()).find(({ id }) => id === stepId)?.title ?? stepId
}

/** In the language of the conversation. */
export async function phrasesOf({
  transcript,
  settings,
}: Pick<TurnParts, 'transcript' | 'settings'>): Promise<Phrases> {
  const { entries } = await transcript.context()
  return phrasesIn(chooseLanguage(settings.language, latestWords(entries)))
}

async function cleanNow(phrases: Phrases, parts: TurnParts, signal: AbortSignal): Promise<MaintenanceResult> {
  const events = await cleanEverything(parts, signal)
  const [first] = events
  const last = events.at(-1)
  if (first === undefined || last === undefined) return { text: phrases.nothingToClean(), done: await unchanged(parts) }
  const messages = events.reduce((sum, event) => sum + event.cleanedMessages, 0)
  const steps = events.flatMap((event) => event.steps ?? [event.stepId])
  const figures = figuresOf(first.tokensBefore, last.tokensRemaining, last.estimated)
  return {
    text: phrases.cleaned(messages, events.length, figures.saved),
    done: { ...figures, cleanup: { steps, messages } },
  }
}

async function compactNow(phrases: Phrases, parts: TurnParts, signal: AbortSignal): Promise<MaintenanceResult> {
  const [model] = parts.models
  const { input } = await prepareRequest(
    model,
    { tools: await offeredTools(parts), systemPrompt: parts.settings.systemPrompt, projection: 'normal' },
    parts,
  )
  const result = await compact(model, input, 'asked for', parts, signal)
  switch (result.kind) {
    case 'nothing':
      return { text: phrases.tooShort(), done: await unchanged(parts) }
    case 'failed': {
      const { reason } = result
      const done = { ...(await unchanged(parts)), compaction: { outcome: 'failed', reason } }
      return { text: phrases.notSummarised(reason), done }
    }
    case 'compacted': {
      const { tokensBefore, tokensAfter, estimated } = result
      return {
        text: phrases.summarised(tokensBefore, tokensAfter),
        done: { ...figuresOf(tokensBefore, tokensAfter, estimated), compaction: { outcome: 'compacted' } },
      }
    }
  }
}

function figuresOf(tokensBefore: number, tokensAfter: number, estimated: boolean) {
  return { tokensBefore, tokensAfter, saved: tokensBefore - tokensAfter, estimated }
}

async function unchanged(parts: TurnParts): Promise<JsonObject> {
  const { entries } = await parts.transcript.context()
  const { count, estimated } = tokensInView(entries, await countFor(parts.models[0], parts, entries))
  return figuresOf(count, count, estimated)
}

async function undoCompaction(run: RunId, phrases: Phrases, parts: TurnParts): Promise<string> {
  const undone = await undoLatestCompaction(
    parts.transcript,
    await countFor(parts.models[0], parts, await parts.transcript.branch()),
    run,
  )
  return undone === undefined ? phrases.noSummary() : phrases.summaryTakenBack(undone.tokensBefore, undone.tokensAfter)
}
