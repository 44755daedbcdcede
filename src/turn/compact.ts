import { planCompaction, runCompaction, type CompactionPlan, type CompactionResult } from '../history/compaction.ts'
import { compactionUndoneBy, planCompactionUndo, type CompactionUndo } from '../history/compaction-undo.ts'
import { tokensInView, type CountMessages } from '../history/view-tokens.ts'
import { MAX_LENGTH_REFUSALS } from '../history/overflow.ts'
import type { HistoryInput } from '../history/prepare.ts'
import type { SummaryPrompt } from '../history/summary-prompt.ts'
import { GatewayError } from '../core/errors.ts'
import type { RunId } from '../core/ids.ts'
import type { Usage } from '../core/message.ts'
import { estimateTokens } from '../core/tokens.ts'
import type { Transcript } from '../transcript/store.ts'
import { askForText } from './ask-for-text.ts'
import { countFor } from './count-messages.ts'
import { hookContext } from './hooks.ts'
import { joinsOfLatestStep } from './step-state.ts'
import { learnWindow } from './learn-window.ts'
import type { TurnModel, TurnDeps } from './deps.ts'

/** Of what the model sees, counted the same way by a compaction and by its undo. */
type CompactionNumbers = Pick<CompactionUndo, 'tokensBefore' | 'tokensAfter' | 'estimated'>

export type Compaction =
  | ({ readonly kind: 'compacted' } & CompactionNumbers)
  | { readonly kind: 'nothing' }
  | { readonly kind: 'failed'; readonly reason: string }

const MAX_SUMMARY_TOKENS = 4_096

/** Summarises the older part of the history with the model itself. A failure leaves everything as it was. */
export async function compact(
  model: TurnModel,
  input: HistoryInput,
  reason: string,
  deps: TurnDeps,
  signal: AbortSignal,
): Promise<Compaction> {
  const plan = planCompaction(input, deps.settings.compaction, await countFor(model, deps, input.entries))
  if (plan === undefined) return { kind: 'nothing' }
  const { tokensBefore } = plan
  await deps.hooks.beforeCompaction({ tokensBefore, messages: input.entries.length, reason }, hookContext(deps), signal)
  const paid: Usage[] = []
  const result = await summarizeInChunks(model, plan, input, paid, deps, signal)
  // A summary that is thrown away has been paid for too.
  const changes = [
    ...(paid.length === 0 ? [] : deps.spending.record(model, ...paid)),
    ...(result.kind === 'compacted' ? deps.windows.confirm(model) : []),
  ]
  if (result.kind === 'cancelled') {
    const cause = result.cause instanceof GatewayError ? { ...result.cause.facts, code: result.cause.code } : {}
    deps.log.warn('a compaction was cancelled; the history stays as it is', {
      ...cause,
      model: model.name,
      why: result.reason,
    })
    await deps.transcript.append([], { changes })
    return { kind: 'failed', reason: reasonFor(result) }
  }
  await deps.transcript.append([result.draft, ...joinsOfLatestStep(input.entries)], { changes })
  const { tokensAfter, estimated } = result
  await deps.emit({ type: 'compaction-end', tokensBefore, tokensAfter, estimated })
  const summary = result.draft.type === 'compaction' ? result.draft.summary : ''
  await deps.hooks.afterCompaction({ tokensBefore, tokensAfter, summary }, hookContext(deps), signal)
  return { kind: 'compacted', tokensBefore, tokensAfter, estimated }
}

/** For a person: what the provider said, or which limit is used up. */
function reasonFor({ reason, cause }: Extract<CompactionResult, { readonly kind: 'cancelled' }>): string {
  return cause instanceof GatewayError ? `${reason}: ${cause.message.replace(/\.$/u, '')}` : reason
}

/** A chunk that the provider finds too long teaches the model's window, and the chunks are cut for that. */
async function summarizeInChunks(
  model: TurnModel,
  plan: CompactionPlan,
  input: HistoryInput,
  paid: Usage[],
  deps: TurnDeps,
  signal: AbortSignal,
): Promise<CompactionResult> {
  let { budget } = input
  let chunked: CompactionPlan | undefined = plan
  for (let refusals = 0; ; refusals++) {
    let estimate = 0
    const summarizing = (prompt: SummaryPrompt, stop: AbortSignal): Promise<string> => {
      estimate = estimateTokens(prompt.system) + estimateTokens(prompt.user)
      return askForText(deps.windows.applyTo(model), prompt, MAX_SUMMARY_TOKENS, paid, deps, stop)
    }
    const result = await runCompaction(chunked, input, summarizing, signal)
    const error = result.kind === 'cancelled' ? result.cause : undefined
    if (!(error instanceof GatewayError) || error.code !== 'MODEL_CONTEXT_OVERFLOW') return result
    if (refusals === MAX_LENGTH_REFUSALS) return result
    const sizes = await learnWindow(error, { model: deps.windows.applyTo(model), budget, estimate }, deps)
    if (sizes === undefined) return result
    budget = { ...budget, contextWindow: sizes.contextWindow, calibration: sizes.calibration }
    chunked = planCompaction({ ...input, budget }, deps.settings.compaction, plan.count)
    if (chunked === undefined) return result
  }
}

/**
 * Brings back what the latest summary replaced; undefined when there is none. A command that a restart runs again (`run`)
 * takes back what it took back before, not one more.
 */
export async function undoLatestCompaction(
  transcript: Transcript,
  count: CountMessages,
  run?: RunId,
): Promise<CompactionNumbers | undefined> {
  const path = await transcript.branch()
  const done = run === undefined ? undefined : compactionUndoneBy(path, run)
  if (done !== undefined) {
    const after = tokensInView(path, count)
    return { tokensBefore: done.tokensBefore, tokensAfter: after.count, estimated: after.estimated }
  }
  const undo = planCompactionUndo(path, { count, ...(run === undefined ? {} : { run }) })
  if (undo !== undefined) await transcript.append([undo.draft])
  return undo
}
