import type { CleanupStrategy } from '../core/cleanup-strategy.ts'
import type { Entry } from '../core/entry.ts'
import type { EntryId } from '../core/ids.ts'
import { toolCallsOf, type AssistantMessage } from '../core/message.ts'
import { isFailedRound, type Round, type StepOutcome, type TranscriptStep } from './derive-steps.ts'

/** What of a finished step is hidden, as the configuration says it. */
export interface CleanupRules {
  readonly strategy: CleanupStrategy
  /** Rounds that called one of these tools stay. */
  readonly keepTools: readonly string[]
  /** So many rounds before the final answer stay. */
  readonly keepRounds: number
}

export const DEFAULT_RULES: CleanupRules = { strategy: 'intermediate', keepTools: [], keepRounds: 0 }

export interface CleanupChoice {
  readonly hidden: readonly EntryId[]
  /** The rounds the hidden entries make up. */
  readonly rounds: readonly Round[]
  /** Why less than everything is hidden. */
  readonly reason?: string
}

/**
 * With a final answer everything between it and the instruction goes. Without one, only what failed and was superseded:
 * the successful rounds and the last one are what the next request builds on.
 */
export function chooseHidden(step: TranscriptStep, outcome: StepOutcome, rules: CleanupRules): CleanupChoice {
  const { strategy, keepTools, keepRounds } = rules
  if (strategy === 'none') return { hidden: [], rounds: [] }
  const hasAnswer = isAnswered(step, outcome)
  const open = hidableRounds(step, outcome)
  const rounds = open
    .slice(0, Math.max(0, open.length - keepRounds))
    .filter((round) => (hasAnswer && strategy !== 'errors-only') || isFailedRound(round))
    .filter((round) => !toolCallsOf(round.llmResponse.message).some(({ name }) => keepTools.includes(name)))
  return { rounds, hidden: entriesOf(step, rounds), ...reasonFor(hasAnswer, outcome) }
}

/**
 * What of a hook's choice can be done: whole rounds, because a call and its results leave together or not at all;
 * never the instruction, the final answer, a user's words, the last round of a step without an answer, or another step.
 */
export function soundChoice(step: TranscriptStep, outcome: StepOutcome, named: readonly string[]): CleanupChoice {
  const ids = new Set(named)
  const rounds = hidableRounds(step, outcome).filter(({ llmResponse }) => ids.has(llmResponse.id))
  return { rounds, hidden: entriesOf(step, rounds), ...reasonFor(isAnswered(step, outcome), outcome) }
}

function isAnswered(step: TranscriptStep, outcome: StepOutcome): boolean {
  return outcome === 'completed' && step.finalResponse !== undefined
}

function reasonFor(hasAnswer: boolean, outcome: StepOutcome): Pick<CleanupChoice, 'reason'> {
  if (hasAnswer) return {}
  const ended = outcome === 'completed' ? 'interrupted' : outcome
  return { reason: `no final answer (${ended}): failed rounds only` }
}

/** All of a step with an answer but that; of one without, the failed rounds before the last. */
export function hidableRounds(step: TranscriptStep, outcome: StepOutcome): readonly Round[] {
  if (isAnswered(step, outcome)) return step.rounds.filter(({ llmResponse }) => llmResponse.id !== step.finalResponse)
  return step.rounds.slice(0, lastRealRound(step.rounds)).filter(isFailedRound)
}

/** A refused request stores an answer that says nothing; what came before it is what the next request builds on. */
function lastRealRound(rounds: readonly Round[]): number {
  const last = rounds.findLastIndex(
    ({ llmResponse, toolCallResults }) => toolCallResults.length > 0 || saysSomething(llmResponse.message),
  )
  return Math.max(0, last)
}

function saysSomething({ content }: AssistantMessage): boolean {
  return content.some((block) => block.type !== 'text' || block.text.trim() !== '')
}

function entriesOf(step: TranscriptStep, rounds: readonly Round[]): readonly EntryId[] {
  const ids = new Set(
    rounds.flatMap(({ llmResponse, toolCallResults, systemFeedback }) => [
      llmResponse.id,
      ...toolCallResults.map((result) => result.id),
      ...systemFeedback,
    ]),
  )
  return step.entries.filter((entry) => ids.has(entry.id) && mayBeHidden(entry)).map((entry) => entry.id)
}

/** Only words of the model and the tools. */
function mayBeHidden(entry: Entry): boolean {
  if (entry.type !== 'message') return entry.type === 'custom_message'
  return entry.message.role !== 'user' && entry.message.role !== 'system'
}
