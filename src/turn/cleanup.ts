import type { Entry, EntryDraft } from '../core/entry.ts'
import { GatewayError } from '../core/errors.ts'
import type { StepCleanupCompleted } from '../core/event.ts'
import type { Outcome } from '../core/outcome.ts'
import { cachePricesOf } from '../history/cleanup-savings.ts'
import { planCleanup, uncleanedSteps, type CleanupPlan } from '../history/cleanup.ts'
import { CLEANUP_ENTRY_TYPE, deferredDraft, deferredSteps, type CleanupRecord } from '../history/view-records.ts'
import { deriveStep, deriveSteps, type StepOutcome, type TranscriptStep } from '../history/derive-steps.ts'
import { sizeOfHistory } from '../history/request-record.ts'
import { chooseForStep } from './choose-cleanup.ts'
import { countFor } from './count-messages.ts'
import { hookContext, ignoreFailureIfAborted } from './hooks.ts'
import { offeredTools } from './turn-tools.ts'
import type { TurnDeps } from './deps.ts'
import { historyInput, settleInSlices } from './request.ts'
import { createSetup, latestSetup } from './setup.ts'

/**
 * Takes a finished step's middle out of the model's view by appending a record. Nothing is deleted; `undoLatestCleanup`
 * appends the inverse. Undefined when the step is not there or was cleaned before.
 */
export async function cleanStep(
  stepId: string,
  outcome: StepOutcome,
  deps: TurnDeps,
  signal: AbortSignal,
): Promise<StepCleanupCompleted | undefined> {
  const { transcript } = deps
  const { entries } = await transcript.context()
  const step = deriveStep(entries, stepId) ?? deriveSteps(entries).find(({ id }) => id === stepId)
  if (step === undefined) return undefined
  // Most steps are a question and an answer: they cost neither a vocabulary nor two prepared histories.
  if (step.rounds.length < 2) return nothingToHide(step, entries)
  const chosen = await chooseForStep(step, outcome, deps, signal)
  const plan = planCleanup(entries, {
    ...(await planningOptions(entries, deps)),
    stepId,
    outcome,
    choice: chosen.choice,
    ...(chosen.summary === undefined ? {} : { summary: chosen.summary }),
  })
  const drafts = draftsOf(plan, stepId, entries, deps)
  // A summary that is not used has been paid for too.
  const [model] = deps.models
  const changes = [
    ...(chosen.paid.length === 0 ? [] : deps.spending.record(model, ...chosen.paid)),
    ...(plan.kind === 'clean' ? deps.spending.recordSaved(model, plan.stats.tokensSaved) : []),
    ...(plan.kind === 'clean' ? deps.savings.cleaned(changeOf(plan)) : []),
  ]
  if (drafts.length > 0 || changes.length > 0) await transcript.append(drafts, { changes })
  if (plan.kind === 'skipped' && plan.reason === 'already cleaned') return undefined
  return toEvent(stepId, plan)
}

async function planningOptions(entries: readonly Entry[], deps: TurnDeps) {
  const { settings, models } = deps
  const [model] = models
  const setup =
    latestSetup(entries) ??
    createSetup({
      system: settings.systemPrompt,
      tools: await offeredTools(deps),
      maxOutputTokens: model.maxOutputTokens,
      thinkingLevel: settings.thinkingLevel,
    })
  const whole = historyInput(model, setup, entries, { projection: 'normal' }, deps)
  await settleInSlices(whole, deps)
  const { entries: _, ...input } = whole
  const { policy, minTokens, rules } = settings.cleanup
  return {
    input,
    policy,
    minTokens,
    rules,
    prices: cachePricesOf(model.prices),
    count: await countFor(model, deps, entries),
  }
}

function draftsOf(
  plan: CleanupPlan,
  stepId: string,
  entries: readonly Entry[],
  { settings }: TurnDeps,
): readonly EntryDraft[] {
  if (plan.kind === 'clean') return plan.records.flatMap(recordDrafts)
  const waits = plan.reason === 'the cache is warm' || plan.reason === 'below the minimum'
  const isNew = settings.cleanup.policy === 'cache-aware' && waits && !deferredSteps(entries).includes(stepId)
  return isNew ? [deferredDraft(stepId)] : []
}

function changeOf({ records, stats }: Extract<CleanupPlan, { readonly kind: 'clean' }>) {
  return { steps: records.length, messages: stats.cleanedMessages, tokensSaved: stats.tokensSaved }
}

function recordDrafts(record: CleanupRecord): readonly EntryDraft[] {
  const mirrors = record.hidden.map((targetId): EntryDraft => ({
    type: 'context_edit',
    targetId,
    replacement: null,
    mirrors: 'cleanup',
  }))
  return [{ type: 'custom', customType: CLEANUP_ENTRY_TYPE, data: record }, ...mirrors]
}

/** After a step, when it is switched on: clean, tell everybody. A cleanup that fails never affects the turn. */
export async function cleanFinishedStep(
  stepId: string,
  outcome: Outcome,
  deps: TurnDeps,
  signal: AbortSignal,
): Promise<void> {
  if (!deps.settings.cleanup.enabled) return
  await cleanAndTell(stepId, outcome.kind, deps, signal)
}

/** Before a turn: what was put off is cleaned as soon as the provider's cache has gone cold anyway. */
export async function cleanDeferredSteps(deps: TurnDeps, signal: AbortSignal): Promise<void> {
  const { enabled, policy } = deps.settings.cleanup
  if (!enabled || policy !== 'cache-aware') return
  const { entries } = await deps.transcript.context()
  const latest = deferredSteps(entries).at(-1)
  if (latest === undefined || !isCold(entries, deps)) return
  const step = deriveSteps(entries).find(({ id }) => id === latest)
  if (step !== undefined) await cleanAndTell(latest, step.outcome ?? 'interrupted', deps, signal)
}

function isCold(entries: readonly Entry[], { clock, settings }: TurnDeps): boolean {
  const latest = entries.findLast((entry) => entry.type === 'message' && entry.message.role === 'assistant')
  return clock.now() - Date.parse(latest?.timestamp ?? '') > settings.pruning.ttlMs
}

async function cleanAndTell(stepId: string, outcome: StepOutcome, deps: TurnDeps, signal: AbortSignal): Promise<void> {
  const { log } = deps
  try {
    const event = await cleanStep(stepId, outcome, deps, signal)
    if (event === undefined) return
    const { type: _, ...facts } = event
    const about = { ...facts, model: deps.models[0].name }
    if (event.cleanedMessages > 0) log.info('context cleanup completed', about)
    else if (event.reason !== NOTHING_TO_HIDE) log.debug('nothing was cleaned up', about)
    await deps.emit(event)
    if (!deps.hooks.has('step_cleanup_completed')) return
    await ignoreFailureIfAborted(deps.hooks.stepCleanupCompleted(facts, hookContext(deps), signal), signal)
  } catch (error) {
    // The turn was stopped meanwhile, or the session is another node's now.
    if (error instanceof GatewayError && error.code === 'OWNERSHIP_LOST') return
    log.error('a cleanup failed; the conversation is not affected', {
      stepId,
      model: deps.models[0].name,
      reason: error instanceof Error ? error.name : 'unknown',
    })
  }
}

/** `/cleanup`: every finished step that was not cleaned yet, however small the gain: the user asked for it. */
export async function cleanEverything(deps: TurnDeps, signal: AbortSignal): Promise<readonly StepCleanupCompleted[]> {
  const { entries } = await deps.transcript.context()
  const events: StepCleanupCompleted[] = []
  const { settings } = deps
  const cleanup = { ...settings.cleanup, policy: 'always', minTokens: 0 } as const
  const asked: TurnDeps = { ...deps, settings: { ...settings, cleanup } }
  const answered = new Set(deriveSteps(entries).flatMap((step) => (step.finalResponse === undefined ? [] : [step.id])))
  for (const stepId of uncleanedSteps(entries, cleanup.rules)) {
    const event = await cleanStep(stepId, answered.has(stepId) ? 'completed' : 'interrupted', asked, signal)
    if (event === undefined || event.cleanedMessages === 0) continue
    events.push(event)
    await deps.emit(event)
  }
  return events
}

function toEvent(stepId: string, plan: CleanupPlan): StepCleanupCompleted {
  const several = plan.kind === 'clean' && plan.records.length > 1
  return {
    type: 'step-cleanup-completed',
    stepId,
    ...plan.stats,
    netBasis: 'estimated',
    ...(several ? { steps: plan.records.map((record) => record.stepId) } : {}),
    ...(plan.reason === undefined ? {} : { reason: plan.reason }),
  }
}

/** Most steps are a question and an answer: a line for each would push the others out of the page's log. */
const NOTHING_TO_HIDE = 'nothing to hide'

/** The seed announces every step, also those without anything in the middle. */
function nothingToHide({ id }: TranscriptStep, entries: readonly Entry[]): StepCleanupCompleted {
  const { messages, tokens } = sizeOfHistory(entries)
  return {
    type: 'step-cleanup-completed',
    stepId: id,
    cleanedMessages: 0,
    remainingMessages: messages,
    tokensBefore: tokens,
    tokensSaved: 0,
    tokensRemaining: tokens,
    estimated: true,
    netTokensSaved: 0,
    netRequests: 0,
    netBasis: 'estimated',
    reason: NOTHING_TO_HIDE,
  }
}
