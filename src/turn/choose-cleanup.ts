import { toolCallsOf, type Usage } from '../core/message.ts'
import type { CleanupStrategy } from '../core/cleanup-strategy.ts'
import { chooseHidden, hidableRounds, soundChoice, type CleanupChoice } from '../history/cleanup-strategy.ts'
import { isFailedRound, type StepOutcome, type TranscriptStep } from '../history/derive-steps.ts'
import { textOfEntries } from '../history/recall-rounds.ts'
import { stepSummaryPrompt } from '../history/summary-prompt.ts'
import { askForText } from './ask-for-text.ts'
import { hookContext } from './hooks.ts'
import type { TurnDeps } from './deps.ts'

export interface ChosenCleanup {
  readonly choice: CleanupChoice
  /** Stands in the note. */
  readonly summary?: string
  /** What choosing has cost. */
  readonly paid: readonly Usage[]
}

/** What of a finished step is to be hidden: the configured strategy's choice, or what a hook makes of it. */
export async function chooseForStep(
  step: TranscriptStep,
  outcome: StepOutcome,
  deps: TurnDeps,
  signal: AbortSignal,
): Promise<ChosenCleanup> {
  const { rules } = deps.settings.cleanup
  const usual = chooseHidden(step, outcome, rules)
  const answer = await askHook(step, outcome, usual, deps, signal)
  const strategy = answer.strategy ?? rules.strategy
  const choice =
    answer.hide === undefined
      ? chooseHidden(step, outcome, { ...rules, strategy })
      : soundChoice(step, outcome, answer.hide)
  if (answer.summary !== undefined) return { choice, summary: answer.summary, paid: [] }
  return summarised(step, choice, strategy, deps, signal)
}

async function askHook(
  step: TranscriptStep,
  outcome: StepOutcome,
  usual: CleanupChoice,
  deps: TurnDeps,
  signal: AbortSignal,
) {
  if (!deps.hooks.has('choose_cleanup')) return {}
  const rounds = hidableRounds(step, outcome).map((round) => ({
    entries: [round.llmResponse.id, ...round.toolCallResults.map(({ id }) => id), ...round.systemFeedback],
    tools: toolCallsOf(round.llmResponse.message).map(({ name }) => name),
    failed: isFailedRound(round),
  }))
  const { strategy } = deps.settings.cleanup.rules
  const event = { stepId: step.id, outcome, strategy, rounds, hide: usual.hidden }
  return deps.hooks.chooseCleanup(event, hookContext(deps), signal)
}

/** A note about a shorter step has fewer tokens than a summary would have. */
const MIN_SUMMARISED_CHARS = 2_000
const MAX_SUMMARISED_CHARS = 100_000
const MAX_SUMMARY_TOKENS = 512

/** A summary that fails costs the step nothing but its words: the usual note stands there instead. */
async function summarised(
  step: TranscriptStep,
  choice: CleanupChoice,
  strategy: CleanupStrategy,
  deps: TurnDeps,
  signal: AbortSignal,
): Promise<ChosenCleanup> {
  const model = deps.windows.applyTo(deps.models[0])
  const hidden = new Set(choice.hidden)
  const text = textOfEntries(
    step.entries.filter(({ id }) => hidden.has(id)),
    // A Chinese character is about a token: half the window leaves room for the rest.
    Math.min(MAX_SUMMARISED_CHARS, Math.floor(model.contextWindow / 2)),
  )
  if (strategy !== 'summarise' || text.length < MIN_SUMMARISED_CHARS) return { choice, paid: [] }
  const paid: Usage[] = []
  try {
    const prompt = stepSummaryPrompt(step.title ?? '', text)
    const summary = (await askForText(model, prompt, MAX_SUMMARY_TOKENS, paid, deps, signal)).trim()
    return summary === '' ? { choice, paid } : { choice, summary, paid }
  } catch (error) {
    deps.log.warn('a finished step could not be summarised; it gets the usual note', {
      stepId: step.id,
      reason: error instanceof Error ? error.name : 'unknown',
    })
    return { choice, paid }
  }
}
