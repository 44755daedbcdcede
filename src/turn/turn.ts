import type { Clock, Timer } from '../base/clock.ts'
import type { Entry, EntryDraft } from '../core/entry.ts'
import { GatewayError } from '../core/errors.ts'
import type { ClientCall } from '../core/client-turn.ts'
import type { StepCompleted } from '../core/event.ts'
import {
  DASHBOARD_TOOL,
  textOf,
  toolCallsOf,
  type AssistantMessage,
  type Provenance,
  type ToolCallBlock,
} from '../core/message.ts'
import type { RunId } from '../core/ids.ts'
import { type AnsweredBy, type CancelCause, type Outcome, causeOf } from '../core/outcome.ts'
import { addSpent, NOTHING_SPENT, toTurnUsage, type Spent } from '../core/spent.ts'
import { deriveStep, stepEndDraft } from '../history/derive-steps.ts'
import { callModel, ModelFailure, type Round } from './call-model.ts'
import { cleanDeferredSteps, cleanFinishedStep } from './cleanup.ts'
import { hookContext, ignoreFailureIfAborted } from './hooks.ts'
import { endsAt, hasPlace, placedDrafts } from './placed-turn.ts'
import type { Instruction, TurnModel, TurnDeps } from './deps.ts'
import { choiceOfRound, clientCalls, createOwnTools, isOfClient, toolsOfRound } from './turn-tools.ts'
import { closeInterruptedCalls, runTools, type OwnTools } from './run-tools.ts'
import {
  answeredWith,
  filesOfStep,
  joinedDraft,
  modelOfStep,
  stepJoinedBy,
  stepRounds,
  stepSpent,
  stepState,
  type StepState,
} from './step-state.ts'
import { NOTHING_UNFINISHED, stoppedStep } from './stopping.ts'
import { earlierWorkspaceBlock, workspaceBlock } from './setup.ts'

/**
 * One user message, answered: instruction, then rounds of model and tools until an answer without calls. Everything is
 * read from and written to the transcript, so a turn that a crash interrupted goes on where the transcript ends.
 */
export async function runTurn(instruction: Instruction, deps: TurnDeps, signal: AbortSignal): Promise<Outcome> {
  const prepared = await askBeforeStart(instruction, deps, signal)
  await deps.emit({ type: 'turn-start', model: prepared.deps.models[0].name })
  await cleanDeferredSteps(prepared.deps, signal)
  const outcome = await runRounds(prepared, signal)
  deps.ifStopped(() => (outcome.kind === 'completed' ? NOTHING_UNFINISHED : stoppedStep(instruction.run, outcome.kind)))
  deps.onSettled(outcome)
  if (outcome.kind !== 'interrupted') await finishStep(instruction, outcome, prepared.deps, signal)
  await deps.emit({ type: 'turn-end', outcome })
  return outcome
}

/** An instruction after the hooks had their say. */
interface PreparedTurn {
  readonly instruction: Instruction
  readonly deps: TurnDeps
  readonly systemPrompt: string
}

async function askBeforeStart(instruction: Instruction, deps: TurnDeps, signal: AbortSignal): Promise<PreparedTurn> {
  const systemPrompt = await systemPromptOf(deps)
  if (!deps.hooks.has('before_agent_start')) return { instruction, deps, systemPrompt }
  const { messages } = await deps.transcript.context()
  const event = { prompt: textOf(instruction.content), messages }
  const answer = await deps.hooks.beforeAgentStart(event, hookContext(deps), signal)
  const { prependContext } = answer
  return {
    instruction: prependContext === undefined ? instruction : { ...instruction, prependContext },
    deps: answer.model === undefined ? deps : withModels(chosenFirst(answer.model, deps), deps),
    systemPrompt: answer.systemPrompt ?? systemPrompt,
  }
}

/** The configured prompt and the workspace's files, which stay what they were when the session began. */
async function systemPromptOf({ settings, transcript, workspaceText, client }: TurnDeps): Promise<string> {
  if (client?.system !== undefined) return client.system
  const { entries } = await transcript.context()
  const block = earlierWorkspaceBlock(entries) ?? workspaceBlock(await workspaceText())
  return block === '' ? settings.systemPrompt : `${settings.systemPrompt}\n\n${block}`
}

function withModels(models: TurnDeps['models'], deps: TurnDeps): TurnDeps {
  return { ...deps, models, log: deps.log.child({ model: models[0].name }) }
}

/** An unknown model that a hook names must not cost the user the answer. */
function chosenFirst(name: string, deps: TurnDeps): readonly [TurnModel, ...TurnModel[]] {
  try {
    return [deps.resolveModel(name), ...deps.models.filter((model) => model.name !== name)]
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    deps.log.warn('a hook chose a model that does not exist', { code: error.code })
    return deps.models
  }
}

async function runRounds({ instruction, deps, systemPrompt }: PreparedTurn, signal: AbortSignal): Promise<Outcome> {
  const { maxRounds } = deps.settings
  const own = createOwnTools(deps)
  let state = await beginStep(instruction, deps)
  const spentBefore = isResumed(state)
    ? stepSpent((await deps.transcript.context()).entries, instruction.run)
    : NOTHING_SPENT
  let text = ''
  const summaries = { failed: false }
  try {
    while (state.kind !== 'answered') {
      const round: Round = {
        run: instruction.run,
        round: state.round,
        tools: await toolsOfRound(state.round, deps),
        systemPrompt,
        summaries,
        ...choiceOfRound(state.round, deps),
      }
      if (state.kind === 'handed-over') break
      if (state.kind === 'open-calls') {
        const { calls } = state
        const ours = calls.filter((call) => !isOfClient(call, deps))
        if (ours.length > 0) await closeInterruptedCalls(ours, round, own, deps, signal)
        state =
          ours.length === calls.length
            ? { kind: 'next-round', round: state.round + 1 }
            : await handedOver(calls, round, deps)
        continue
      }
      if (state.round >= maxRounds)
        return {
          kind: 'round-limit',
          rounds: maxRounds,
          text: roundLimitText(text, maxRounds),
          ...(await answeredBy(instruction.run, spentBefore, deps)),
        }
      signal.throwIfAborted()
      await appendSteering(deps, instruction, signal)
      const answer = await callModel(round, deps, signal)
      text = textOf(answer.content)
      state = await afterAnswer(answer, round, own, deps, signal)
    }
    return {
      kind: 'completed',
      text: state.text,
      ...(await answeredBy(instruction.run, spentBefore, deps)),
      ...(state.kind === 'handed-over' ? { calls: state.calls } : {}),
      ...(state.kind === 'answered' && state.isCut === true ? { isCut: true } : {}),
    }
  } catch (thrown) {
    return outcomeOf(thrown, signal)
  }
}

function isResumed(state: Working): boolean {
  return state.kind !== 'next-round' || state.round > 0
}

/** The model that gave the step's last answer, and what the step cost: before a restart, as stored, and since. */
async function answeredBy(run: RunId, before: Spent, { transcript, spending }: TurnDeps): Promise<AnsweredBy> {
  const { entries } = await transcript.context()
  const model = modelOfStep(entries, run)
  const usage = toTurnUsage(addSpent(before, spending.ofTurn()))
  const files = filesOfStep(entries, run)
  return { ...(model === undefined ? {} : { model }), usage, ...(files.length === 0 ? {} : { files }) }
}

type Working = Exclude<StepState, { kind: 'new' }> | HandedOver

/** The model called tools that the client runs: the turn ends here, and the client's results begin the next one. */
interface HandedOver {
  readonly kind: 'handed-over'
  readonly round: number
  readonly text: string
  readonly calls: readonly ClientCall[]
}

/** The text is read from the transcript: after a restart only the calls are known. */
async function handedOver(calls: readonly ToolCallBlock[], { run, round }: Round, deps: TurnDeps): Promise<HandedOver> {
  const { entries } = await deps.transcript.context()
  const answer = entries.findLast(
    (entry) => entry.type === 'message' && entry.stepId === run && entry.message.role === 'assistant',
  )
  const text = answer?.type === 'message' && answer.message.role === 'assistant' ? textOf(answer.message.content) : ''
  return { kind: 'handed-over', round, text, calls: clientCalls(calls, deps) }
}

async function afterAnswer(
  answer: AssistantMessage,
  round: Round,
  own: OwnTools,
  deps: TurnDeps,
  signal: AbortSignal,
): Promise<Working> {
  const calls = toolCallsOf(answer)
  if (calls.length === 0) return answeredWith(answer, round.round)
  const ours = calls.filter((call) => !isOfClient(call, deps))
  const log = deps.log.child({ model: `${answer.provider}/${answer.model}` })
  if (ours.length > 0) await runTools(ours, round, own, { ...deps, log }, signal)
  if (ours.length === calls.length) return { kind: 'next-round', round: round.round + 1 }
  return {
    kind: 'handed-over',
    round: round.round,
    text: textOf(answer.content),
    calls: clientCalls(calls, deps),
  }
}

async function beginStep(instruction: Instruction, deps: TurnDeps): Promise<Working> {
  const { entries } = await deps.transcript.context()
  const state = stepState(entries, instruction.run)
  if (state.kind !== 'new') {
    deps.ifStopped(() => stoppedStep(instruction.run))
    return state
  }
  const joined = stepJoinedBy(entries, instruction.run)
  if (joined !== undefined) {
    const other = stepState(entries, joined)
    return other.kind === 'answered' ? other : { kind: 'next-round', round: 0 }
  }
  deps.ifStopped(() => stoppedStep(instruction.run))
  await appendInstruction(instruction, deps)
  return { kind: 'next-round', round: 0 }
}

/** At its place: a branch where the client's history parts from the transcript, with what only the client had. */
async function appendInstruction(instruction: Instruction, deps: TurnDeps): Promise<void> {
  const { transcript } = deps
  const { place } = instruction
  const question = place?.asks === false ? [] : [userDraft(instruction, instruction, deps)]
  if (place === undefined) return void (await transcript.append(question))
  if (hasPlace(place) && !(await endsAt(place.at, transcript))) await transcript.branchTo(place.at)
  const drafts = [...placedDrafts(place, instruction.run), ...question]
  if (drafts.length > 0) await transcript.append(drafts)
}

async function appendSteering(deps: TurnDeps, instruction: Instruction, signal: AbortSignal): Promise<void> {
  const taken = await deps.takeSteering(signal)
  if (taken.length === 0) return
  const { entries } = await deps.transcript.context()
  // After a crash they are taken from the queue once more; what they said is in the transcript already.
  const joined = taken.filter(({ run }) => stepJoinedBy(entries, run) === undefined)
  if (joined.length > 0)
    await deps.transcript.append(
      joined.flatMap((message) => [userDraft(message, instruction, deps), joinedDraft(message.run, instruction.run)]),
    )
}

function userDraft(message: Instruction, step: Instruction, deps: TurnDeps): EntryDraft {
  return {
    type: 'message',
    message: {
      role: 'user',
      content: message.content,
      ...(message.prependContext === undefined ? {} : { prependContext: message.prependContext }),
      timestamp: deps.clock.now(),
      provenance: provenanceOf(message, deps),
      ...(message.place?.digest === undefined ? {} : { sent: message.place.digest }),
    },
    stepId: step.run,
  }
}

function provenanceOf({ channel, fromDashboard }: Instruction, { session }: TurnDeps): Provenance {
  const source = channel === undefined ? {} : { sourceChannel: channel }
  const tool = fromDashboard === true ? { sourceTool: DASHBOARD_TOOL } : {}
  return { kind: 'external_user', ...source, sourceSessionKey: session, ...tool }
}

/** Those who listen to a stopped step have so long, because the next turn waits for them. */
const STOP_GRACE_MS = 2_000

/** Cleanup comes before the step is announced as done. What a stop ended is finished by `finishStopped`. */
async function finishStep({ run }: Instruction, outcome: Outcome, deps: TurnDeps, turn: AbortSignal): Promise<void> {
  if (outcome.kind === 'cancelled') return
  const isHandedOver = outcome.kind === 'completed' && outcome.calls !== undefined
  if (outcome.kind !== 'completed' || isHandedOver) await deps.transcript.append([stepEndDraft(run, outcome.kind)])
  deps.ifStopped(() => NOTHING_UNFINISHED)
  await announceStep(run, outcome, deps, turn)
}

/** For a step that was cancelled. What it came to is in the transcript already, unless only that could not be stored. */
export async function finishStopped(run: RunId, by: CancelCause, deps: TurnDeps): Promise<void> {
  const step = deriveStep((await deps.transcript.context()).entries, run)
  if (step === undefined) return
  if (step.outcome === undefined) await deps.transcript.append([stepEndDraft(run, 'cancelled')])
  await announceStep(run, { kind: 'cancelled', by }, deps, AbortSignal.abort())
}

async function announceStep(run: RunId, outcome: Outcome, deps: TurnDeps, turn: AbortSignal): Promise<void> {
  const grace = graceSignal(turn, deps.clock)
  try {
    // The calls of a step that was handed over wait for the client's results: hiding them would leave those without a call.
    if (outcome.kind !== 'completed' || outcome.calls === undefined)
      await cleanFinishedStep(run, outcome, deps, grace.signal)
    const { entries } = await deps.transcript.context()
    const facts = { stepId: run, rounds: stepRounds(entries, run), ...titleAndTimes(entries, run) }
    await deps.emit({ type: 'step-completed', ...facts })
    if (!deps.hooks.has('step_completed')) return
    const event = { ...facts, outcome }
    await ignoreFailureIfAborted(deps.hooks.stepCompleted(event, hookContext(deps), grace.signal), grace.signal)
  } finally {
    grace.dispose()
  }
}

function titleAndTimes(entries: readonly Entry[], run: RunId): Pick<StepCompleted, 'title' | 'startTime' | 'endTime'> {
  const step = deriveStep(entries, run)
  if (step === undefined) return {}
  const { title, startTime, endTime } = step
  return { ...(title === undefined ? {} : { title }), startTime, ...(endTime === undefined ? {} : { endTime }) }
}

/** A signal that ends a little after the turn's own. */
function graceSignal(turn: AbortSignal, clock: Clock): { readonly signal: AbortSignal; dispose(): void } {
  const controller = new AbortController()
  let timer: Timer | undefined
  const stop = (): void => {
    timer = clock.after(STOP_GRACE_MS, () => controller.abort(turn.reason))
  }
  if (turn.aborted) stop()
  else turn.addEventListener('abort', stop, { once: true })
  const dispose = (): void => {
    timer?.cancel()
    turn.removeEventListener('abort', stop)
  }
  return { signal: controller.signal, dispose }
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
  if (thrown instanceof GatewayError && thrown.code === 'BUDGET_REACHED') {
    return { kind: 'failed', code: thrown.code, message: thrown.message, partialText: '' }
  }
  throw thrown
}
