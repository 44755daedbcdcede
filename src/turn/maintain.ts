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
import type { TurnDeps } from './deps.ts'
import { tokensInView } from '../history/view-tokens.ts'
import { undoLatestCleanup } from './undo-cleanup.ts'
import { offeredTools } from './turn-tools.ts'
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
  deps: TurnDeps,
  signal: AbortSignal,
): Promise<MaintenanceResult> {
  const phrases = await phrasesOf(deps)
  switch (name) {
    case 'branch':
      return { text: await chooseVersion(rest, deps.transcript, phrases) }
    case 'cleanup':
      return cleanNow(phrases, deps, signal)
    case 'restore': {
      const stepId = await undoLatestCleanup(deps, run)
      return {
        text: stepId === undefined ? phrases.nothingToRestore() : phrases.restored(await askedIn(stepId, deps)),
      }
    }
    case 'compact':
      if (rest === 'undo') return { text: await undoCompaction(run, phrases, deps) }
      if (rest !== '') return { text: phrases.compactUsage() }
      return compactNow(phrases, deps, signal)
  }
}

/** What the user asked in a step; its id when that is no longer there. */
async function askedIn(stepId: string, { transcript }: TurnDeps): Promise<string> {
  return deriveSteps(await transcript.branch()).find(({ id }) => id === stepId)?.title ?? stepId
}

/** In the language of the conversation. */
export async function phrasesOf({ transcript, settings }: Pick<TurnDeps, 'transcript' | 'settings'>): Promise<Phrases> {
  const { entries } = await transcript.context()
  return phrasesIn(chooseLanguage(settings.language, latestWords(entries)))
}

async function cleanNow(phrases: Phrases, deps: TurnDeps, signal: AbortSignal): Promise<MaintenanceResult> {
  const events = await cleanEverything(deps, signal)
  const [first] = events
  const last = events.at(-1)
  if (first === undefined || last === undefined) return { text: phrases.nothingToClean(), done: await unchanged(deps) }
  const messages = events.reduce((sum, event) => sum + event.cleanedMessages, 0)
  const steps = events.flatMap((event) => event.steps ?? [event.stepId])
  const figures = figuresOf(first.tokensBefore, last.tokensRemaining, last.estimated)
  return {
    text: phrases.cleaned(messages, events.length, figures.saved),
    done: { ...figures, cleanup: { steps, messages } },
  }
}

async function compactNow(phrases: Phrases, deps: TurnDeps, signal: AbortSignal): Promise<MaintenanceResult> {
  const [model] = deps.models
  const { input } = await prepareRequest(
    model,
    { tools: await offeredTools(deps), systemPrompt: deps.settings.systemPrompt, projection: 'normal' },
    deps,
  )
  const result = await compact(model, input, 'asked for', deps, signal)
  switch (result.kind) {
    case 'nothing':
      return { text: phrases.tooShort(), done: await unchanged(deps) }
    case 'failed': {
      const { reason } = result
      const done = { ...(await unchanged(deps)), compaction: { outcome: 'failed', reason } }
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

async function unchanged(deps: TurnDeps): Promise<JsonObject> {
  const { entries } = await deps.transcript.context()
  const { count, estimated } = tokensInView(entries, await countFor(deps.models[0], deps, entries))
  return figuresOf(count, count, estimated)
}

async function undoCompaction(run: RunId, phrases: Phrases, deps: TurnDeps): Promise<string> {
  const undone = await undoLatestCompaction(
    deps.transcript,
    await countFor(deps.models[0], deps, await deps.transcript.branch()),
    run,
  )
  return undone === undefined ? phrases.noSummary() : phrases.summaryTakenBack(undone.tokensBefore, undone.tokensAfter)
}
