import type { Entry, EntryDraft, MessageEntry } from '../core/entry.ts'
import type { StepCleanupCompleted } from '../core/event.ts'
import type { Outcome } from '../core/outcome.ts'
import { isRecord } from '../base/json.ts'
import type { RunId } from '../core/ids.ts'
import { planCleanup, uncleanedSteps, type CleanupStats, type SkipReason } from '../history/cleanup.ts'
import { CLEANUP_ENTRY_TYPE, latestCleanup, RESTORE_ENTRY_TYPE } from '../history/cleanup-records.ts'
import type { Transcript } from '../transcript/store.ts'
import { deriveSteps } from '../history/derive-steps.ts'
import { countFor } from './count-messages.ts'
import { hookContext } from './hook-context.ts'
import { offeredTools } from './own-tools.ts'
import type { TurnParts } from './parts.ts'
import { historyInput } from './request.ts'
import { createSetup, latestSetup } from './setup.ts'
import { unlessStopped } from './unless-stopped.ts'

/**
 * Takes a finished step's middle out of the model's view by appending a record. Nothing is deleted; `undoLatestCleanup`
 * appends the inverse. A cleanup that fails is reported and never affects the turn.
 */
export async function cleanStep(
  stepId: string,
  outcome: Outcome['kind'],
  parts: TurnParts,
): Promise<StepCleanupCompleted | undefined> {
  const { transcript, settings, models } = parts
  const { entries } = await transcript.context()
  // Most steps are a question and an answer: they cost neither a vocabulary nor two prepared histories.
  const rounds = deriveSteps(entries).find(({ id }) => id === stepId)?.rounds.length ?? 0
  if (rounds < 2) return undefined
  const [model] = models
  const setup =
    latestSetup(entries) ??
    createSetup({
      system: settings.systemPrompt,
      tools: await offeredTools(parts),
      maxOutputTokens: model.maxOutputTokens,
      thinkingLevel: settings.thinkingLevel,
    })
  const { entries: _, ...input } = historyInput(model, setup, entries, { projection: 'normal' }, parts)
  const plan = planCleanup(entries, {
    stepId,
    outcome,
    policy: settings.cleanup.policy,
    minTokens: settings.cleanup.minTokens,
    input,
    count: await countFor(model, parts),
  })
  if (plan.kind === 'skipped')
    return UNREMARKABLE.has(plan.reason) ? undefined : toEvent(stepId, plan.stats, plan.reason)
  const mirrors = plan.record.hidden.map((targetId): EntryDraft => ({
    type: 'context_edit',
    targetId,
    replacement: null,
    mirrors: 'cleanup',
  }))
  await transcript.append([{ type: 'custom', customType: CLEANUP_ENTRY_TYPE, data: plan.record }, ...mirrors])
  return toEvent(stepId, plan.stats, plan.reason)
}

/** Nothing was there to be cleaned: no decision that anybody has to hear of. */
const UNREMARKABLE: ReadonlySet<SkipReason> = new Set<SkipReason>([
  'nothing to hide',
  'already cleaned',
  'unknown step',
])

/** After a step, when it is switched on: clean, tell everybody. */
export async function cleanFinishedStep(
  stepId: string,
  outcome: Outcome,
  parts: TurnParts,
  signal: AbortSignal,
): Promise<void> {
  if (!parts.settings.cleanup.enabled) return
  try {
    const event = await cleanStep(stepId, outcome.kind, parts)
    if (event === undefined) return
    const { type: _, ...facts } = event
    parts.log.debug('context cleanup completed', facts)
    await parts.emit(event)
    await unlessStopped(parts.hooks.stepCleanupCompleted(facts, hookContext(parts), signal), signal)
  } catch (error) {
    parts.log.error('a cleanup failed; the conversation is not affected', {
      stepId,
      reason: error instanceof Error ? error.name : 'unknown',
    })
  }
}

/** `/cleanup`: every finished step that was not cleaned yet, however small the gain: somebody asked for it. */
export async function cleanEverything(parts: TurnParts): Promise<readonly StepCleanupCompleted[]> {
  const { entries } = await parts.transcript.context()
  const events: StepCleanupCompleted[] = []
  const { settings } = parts
  const cleanup = { ...settings.cleanup, policy: 'always', minTokens: 0 } as const
  const asked: TurnParts = { ...parts, settings: { ...settings, cleanup } }
  const answered = new Set(deriveSteps(entries).flatMap((step) => (step.finalResponse === undefined ? [] : [step.id])))
  for (const stepId of uncleanedSteps(entries)) {
    const event = await cleanStep(stepId, answered.has(stepId) ? 'completed' : 'interrupted', asked)
    if (event === undefined || event.cleanedMessages === 0) continue
    events.push(event)
    await parts.emit(event)
  }
  return events
}

/**
 * Brings the latest hidden rounds back into view; undefined when nothing is hidden. A command that a restart runs again
 * (`run`) undoes what it undid before, not one more.
 */
export async function undoLatestCleanup(transcript: Transcript, run?: RunId): Promise<string | undefined> {
  const { entries } = await transcript.context()
  const done = run === undefined ? undefined : restoredBy(entries, run)
  if (done !== undefined) return done
  const latest = latestCleanup(entries)
  if (latest === undefined) return undefined
  const { stepId } = latest.record
  const hidden = new Set(latest.record.hidden)
  const originals = entries.filter((entry): entry is MessageEntry => entry.type === 'message' && hidden.has(entry.id))
  await transcript.append([
    {
      type: 'custom',
      customType: RESTORE_ENTRY_TYPE,
      data: { cleanup: latest.id, stepId, ...(run === undefined ? {} : { run }) },
    },
    ...originals.flatMap(mirrorOf),
  ])
  return stepId
}

function restoredBy(entries: readonly Entry[], run: RunId): string | undefined {
  for (const entry of entries) {
    if (entry.type !== 'custom' || entry.customType !== RESTORE_ENTRY_TYPE || !isRecord(entry.data)) continue
    if (entry.data['run'] === run && typeof entry.data['stepId'] === 'string') return entry.data['stepId']
  }
  return undefined
}

function mirrorOf({ id, message }: MessageEntry): readonly EntryDraft[] {
  if (!('content' in message)) return []
  return [{ type: 'context_edit', targetId: id, replacement: { content: message.content }, mirrors: 'cleanup' }]
}

function toEvent(stepId: string, stats: CleanupStats, reason: string | undefined): StepCleanupCompleted {
  return { type: 'step-cleanup-completed', stepId, ...stats, ...(reason === undefined ? {} : { reason }) }
}
