import type { EntryDraft } from '../core/entry.ts'
import type { Outcome } from '../core/outcome.ts'
import { textOf, toolCallsOf, type AssistantMessage } from '../core/message.ts'
import { causeOf } from '../core/turn-stopped.ts'
import { callModel, ModelFailure, type Round } from './call-model.ts'
import { finishStep } from './finish-step.ts'
import type { Instruction, TurnParts } from './parts.ts'
import { createOwnTools } from './own-tools.ts'
import { closeInterruptedCalls, runTools } from './run-tools.ts'
import { stepState, type StepState } from './step-state.ts'

/**
 * One user message, answered: instruction, then rounds of model and tools until an answer without calls. Everything is
 * read from and written to the transcript, so a turn that a crash interrupted goes on where the transcript ends.
 */
export async function runTurn(instruction: Instruction, parts: TurnParts, signal: AbortSignal): Promise<Outcome> {
  await parts.emit({ type: 'turn-start', model: parts.models[0].name })
  const outcome = await runRounds(instruction, parts, signal)
  if (outcome.kind !== 'interrupted') await finishStep(instruction.run, outcome, parts)
  await parts.emit({ type: 'turn-end', outcome })
  return outcome
}

async function runRounds(instruction: Instruction, parts: TurnParts, signal: AbortSignal): Promise<Outcome> {
  const { maxRounds } = parts.settings
  const own = await createOwnTools(parts)
  let state = await beginStep(instruction, parts)
  let text = ''
  try {
    while (state.kind !== 'answered') {
      const round: Round = { run: instruction.run, round: state.round, tools: [...own.specs, ...parts.tools.specs()] }
      if (state.kind === 'open-calls') {
        await closeInterruptedCalls(state.calls, round, own.run, parts, signal)
        state = { kind: 'next-round', round: state.round + 1 }
        continue
      }
      if (state.round >= maxRounds)
        return { kind: 'round-limit', rounds: maxRounds, text: roundLimitText(text, maxRounds) }
      signal.throwIfAborted()
      await appendSteering(parts, instruction)
      const answer = await callModel(round, parts, signal)
      text = textOf(answer.content)
      state = await afterAnswer(answer, round, own.run, parts, signal)
    }
    return { kind: 'completed', text: state.text }
  } catch (thrown) {
    return outcomeOf(thrown, signal)
  }
}

type Working = Exclude<StepState, { kind: 'new' }>

async function afterAnswer(
  answer: AssistantMessage,
  round: Round,
  own: Parameters<typeof runTools>[2],
  parts: TurnParts,
  signal: AbortSignal,
): Promise<Working> {
  const calls = toolCallsOf(answer)
  if (calls.length === 0) return { kind: 'answered', text: textOf(answer.content), rounds: round.round + 1 }
  await runTools(calls, round, own, parts, signal)
  return { kind: 'next-round', round: round.round + 1 }
}

async function beginStep(instruction: Instruction, parts: TurnParts): Promise<Working> {
  const { entries } = await parts.transcript.context()
  const state = stepState(entries, instruction.run)
  if (state.kind !== 'new') return state
  await parts.transcript.append([userDraft(instruction, instruction, parts)])
  return { kind: 'next-round', round: 0 }
}

async function appendSteering(parts: TurnParts, instruction: Instruction): Promise<void> {
  const joined = parts.takeSteering()
  if (joined.length > 0) await parts.transcript.append(joined.map((message) => userDraft(message, instruction, parts)))
}

function userDraft(message: Instruction, step: Instruction, parts: TurnParts): EntryDraft {
  return {
    type: 'message',
    message: {
      role: 'user',
      content: message.content,
      timestamp: parts.clock.now(),
      provenance: { kind: 'external_user' },
    },
    stepId: step.run,
  }
}

function roundLimitText(lastText: string, rounds: number): string {
  const notice = `I stopped after ${rounds} rounds without a final answer (task.max_rounds). Say “continue” to go on.`
  return lastText.trim() === '' ? notice : `${lastText}\n\n${notice}`
}

function outcomeOf(thrown: unknown, signal: AbortSignal): Outcome {
  if (signal.aborted) {
    const by = causeOf(signal)
    return by === 'shutdown' ? { kind: 'interrupted' } : { kind: 'cancelled', by }
  }
  if (thrown instanceof ModelFailure) {
    return { kind: 'failed', code: thrown.error.code, message: thrown.error.message, partialText: thrown.partialText }
  }
  throw thrown
}
