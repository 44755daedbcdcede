import { GrowingText } from '../base/text.ts'
import type { Change } from '../core/change.ts'
import type { EntryDraft } from '../core/entry.ts'
import type { LogFacts } from '../base/log.ts'
import { GatewayError, isProviderFailure, toGatewayError, type ErrorCode } from '../core/errors.ts'
import type { RunId } from '../core/ids.ts'
import { NO_USAGE, textOf, type AssistantMessage, type Usage } from '../core/message.ts'
import { cachePricesOf, cleanupEffect } from '../history/cleanup-savings.ts'
import { exceedsWindowWithoutHistory, shouldCompact } from '../history/budget.ts'
import { MAX_LENGTH_REFUSALS } from '../history/overflow.ts'
import { activeCleanups } from '../history/view-records.ts'
import type { ToolSpec } from '../provider/provider.ts'
import { compact } from './compact.ts'
import { hookContext, ignoreFailureIfAborted } from './hooks.ts'
import { learnWindow } from './learn-window.ts'
import type { RequestForm, TurnModel, TurnDeps, UnfinishedWork } from './deps.ts'
import { prepareRequest, type PreparedRequest, type RequestOptions } from './request.ts'
import { callsNotRun } from './run-tools.ts'
import { stoppedStep } from './stopping.ts'

export interface Round {
  readonly run: RunId
  readonly round: number
  readonly tools: readonly ToolSpec[]
  readonly systemPrompt: string
  /** The same object in every round of a turn. */
  readonly summaries: SummaryAttempts
  /** What the client demands of this answer. */
  readonly toolChoice?: RequestOptions['toolChoice']
}

/** A summary that failed once is not paid for again in every round; an overflow still asks for one. */
export interface SummaryAttempts {
  failed: boolean
}

/** The model could not answer. What it had said before is kept: it may already have been shown. */
export class ModelFailure extends Error {
  readonly error: GatewayError
  readonly partialText: string
  readonly request: PreparedRequest
  /** An answer of no use is paid for all the same. */
  readonly usage: Usage
  constructor(error: GatewayError, partialText: string, request: PreparedRequest, usage = NO_USAGE) {
    super(error.message, { cause: error })
    this.name = 'ModelFailure'
    this.error = error
    this.partialText = partialText
    this.request = request
    this.usage = usage
  }
}

/** Of this model alone: its key, its account, its window. A request that is wrong or filtered is the same elsewhere. */
const OF_ONE_MODEL: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'MODEL_AUTH',
  'MODEL_QUOTA',
  'MODEL_UNKNOWN',
  'MODEL_CONTEXT_OVERFLOW',
])

/** Whether another model may not have this failure. */
const mayFallBack = (code: ErrorCode): boolean => isProviderFailure(code) || OF_ONE_MODEL.has(code)

/**
 * Asks the model, streams what it says, and appends its answer together with the record of the request. Other models
 * step in as long as nothing of the answer was shown. An answer cut by an abort or an error is appended as such.
 */
export async function callModel(round: Round, deps: TurnDeps, signal: AbortSignal): Promise<AssistantMessage> {
  const failures: NamedFailure[] = []
  for (const [index, model] of deps.models.entries()) {
    try {
      return await callOne(model, round, deps, signal)
    } catch (thrown) {
      if (!(thrown instanceof ModelFailure)) throw thrown
      const { error } = thrown
      failures.push({ model: model.name, failure: thrown })
      deps.log.warn('the model did not answer', refusalFacts(model, thrown))
      const next = deps.models[index + 1]
      if (next === undefined || thrown.partialText !== '' || !mayFallBack(error.code)) {
        const { request, partialText, usage } = thrown
        const summary = summaryOf(failures, thrown)
        const errorMessage = `${summary.code}: ${summary.message}`
        await appendCutAnswer(request, { text: partialText, errorMessage, stopReason: 'error', usage }, round, deps)
        throw new ModelFailure(summary, partialText, request, usage)
      }
      if (thrown.usage.totalTokens > 0)
        await deps.transcript.append([], { changes: deps.spending.record(model, thrown.usage) })
      await deps.emit({ type: 'model-retry', attempt: index + 1, delayMs: 0, code: error.code, model: next.name })
      deps.log.warn('the next model is asked instead', { model: next.name, instead: model.name, code: error.code })
    }
  }
  throw new GatewayError('MODEL_UNKNOWN', 'no model is configured')
}

interface NamedFailure {
  readonly model: string
  readonly failure: ModelFailure
}

/**
 * One error for all the models that failed. The first one is the one that was chosen, so its failure comes first and
 * gives the code; an answer that broke off after it was shown keeps its own code, because that is what was seen.
 */
function summaryOf(failures: readonly NamedFailure[], last: ModelFailure): GatewayError {
  const [first, ...others] = failures
  if (first === undefined || others.length === 0) return last.error
  const { error } = last.partialText === '' ? first.failure : last
  const message = [
    first.failure.error.message,
    ...others.map(({ model, failure }) => `Then ${model} was tried: ${failure.error.message}`),
  ].join(' ')
  return new GatewayError(error.code, message, { ...error.facts, models: failures.map(({ model }) => model) })
}

/** One model, with what can be done about a refusal of the shape or the size of a request. */
async function callOne(model: TurnModel, round: Round, deps: TurnDeps, signal: AbortSignal): Promise<AssistantMessage> {
  const { tools, systemPrompt, toolChoice } = round
  let form = deps.forms.formFor(model)
  let options: RequestOptions = inForm(form, {
    tools,
    systemPrompt,
    projection: 'normal',
    ...(toolChoice === undefined ? {} : { toolChoice }),
  })
  let refusals = 0
  let isRefused = false
  const prepared = await prepareRequest(deps.windows.applyTo(model), options, deps)
  let request = await compactWhenDue(prepared, options, round.summaries, deps, signal)
  for (;;) {
    try {
      const answer = await send(request, round, deps, signal)
      learnForm(model, form, isRefused, deps)
      return answer
    } catch (thrown) {
      if (!(thrown instanceof ModelFailure) || thrown.partialText !== '' || signal.aborted) throw thrown
      const next = thrown.error.code === 'MODEL_REQUEST_INVALID' ? saferForm(options) : undefined
      if (next !== undefined) {
        deps.log.warn(REFUSED[next], refusalFacts(model, thrown))
        form = next
        isRefused = true
        options = inForm(next, options)
        request = await prepareRequest(request.model, options, deps)
      } else if (thrown.error.code === 'MODEL_CONTEXT_OVERFLOW') {
        const smaller = ++refusals > MAX_LENGTH_REFUSALS ? undefined : await makeSmaller(thrown, options, deps)
        if (smaller === undefined) {
          deps.windows.giveUp(model)
          throw tooLongForGood(thrown)
        }
        options = smaller.options
        request = await compactWhenDue(smaller.request, options, round.summaries, deps, signal)
      } else {
        if (thrown.error.code === 'MODEL_REQUEST_INVALID') deps.forms.forget(model)
        throw thrown
      }
    }
  }
}

/** A refusal of the shape is ours, not the provider's: once more with everything left out that could offend. */
function saferForm({ projection, tools }: RequestOptions): Exclude<RequestForm, 'normal'> | undefined {
  if (projection === 'normal') return 'safest'
  // Some servers take no tools at all; an answer without them is better than none.
  return tools.length > 0 ? 'without-tools' : undefined
}

const REFUSED = {
  safest: 'the provider refused the request; trying the safest form',
  'without-tools': 'the provider refused the safest form too; trying it without tools',
} as const

function inForm(form: RequestForm, options: RequestOptions): RequestOptions {
  if (form === 'normal') return options
  if (form === 'safest') return { ...options, projection: 'safest' }
  const { toolChoice: _, ...without } = options
  return { ...without, projection: 'safest', tools: [] }
}

function learnForm(model: TurnModel, form: RequestForm, isRefused: boolean, { forms, log }: TurnDeps): void {
  if (form === 'normal') return forms.forget(model)
  if (isRefused && forms.learn(model, form))
    log.info('the model accepts only a reduced form of requests, which is used for some time', {
      model: model.name,
      form,
    })
}

/** Status, reason and detail as the provider gave them, redacted where they were read. */
function refusalFacts(model: TurnModel, { error }: ModelFailure): LogFacts {
  return { ...error.facts, model: model.name, code: error.code }
}

async function compactWhenDue(
  request: PreparedRequest,
  options: RequestOptions,
  attempts: SummaryAttempts,
  deps: TurnDeps,
  signal: AbortSignal,
): Promise<PreparedRequest> {
  const isDue = shouldCompact(request.history.tokens, request.input, deps.settings.compaction)
  if (!isDue || attempts.failed) return request
  const { kind } = await compact(request.model, request.input, 'the history exceeds its share', deps, signal)
  attempts.failed = kind === 'failed'
  return kind === 'compacted' ? prepareRequest(deps.windows.applyTo(request.model), options, deps) : request
}

interface Smaller {
  readonly request: PreparedRequest
  readonly options: RequestOptions
}

/** The request prepared for what its refusal taught; undefined when nothing smaller can be tried. */
async function makeSmaller(
  { error, request: refused }: ModelFailure,
  before: RequestOptions,
  deps: TurnDeps,
): Promise<Smaller | undefined> {
  const estimate = estimateOf(refused)
  for (let { budget } = refused.input; ;) {
    const sizes = await learnWindow(error, { model: refused.model, budget, estimate }, deps)
    if (sizes === undefined) return undefined
    const options = { ...before, minCalibration: sizes.calibration }
    const request = await prepareRequest(deps.windows.applyTo(refused.model), options, deps)
    // Half of a window that was far too large changes nothing: the same request would be refused again.
    if (sizes.by !== 'halved' || weightOf(request) < weightOf(refused)) return { request, options }
    budget = { ...budget, contextWindow: sizes.contextWindow }
  }
}

/** Uncalibrated tokens of the whole request. */
function estimateOf({ history, input }: PreparedRequest): number {
  return history.tokens.raw + input.budget.fixedTokens
}

function weightOf(request: PreparedRequest): number {
  return estimateOf(request) + request.setup.maxOutputTokens
}

function tooLongForGood(failure: ModelFailure): ModelFailure {
  const { error, request } = failure
  const { fixedTokens, contextWindow } = request.input.budget
  if (!exceedsWindowWithoutHistory(request.input.budget)) return failure
  const message = `${error.message} Its system prompt and tools alone need about ${fixedTokens} of its ${contextWindow} tokens: shorten agent.system_prompt, offer fewer tools, or give the model a larger window.`
  return new ModelFailure(new GatewayError(error.code, message, error.facts), '', request)
}

async function send(
  request: PreparedRequest,
  round: Round,
  deps: TurnDeps,
  signal: AbortSignal,
): Promise<AssistantMessage> {
  const { provider, model } = request.model
  await deps.spending.check()
  if (deps.hooks.has('llm_input')) await showRequest(request, round, deps, signal)
  request.times.start()
  const message = await readAnswer(request, round, deps, signal)
  const durationMs = request.times.end()
  // What is complete is kept: a stop while listeners are called stores the answer and says that its calls were not run.
  deps.ifStopped(() => (isEmpty(message) ? stoppedStep(round.run) : unstoredAnswer(message, request, round, deps)))
  if (deps.hooks.has('llm_output')) {
    const event = { provider: provider.name, model, message, round: round.round, durationMs }
    await ignoreFailureIfAborted(deps.hooks.llmOutput(event, hookContext(deps, request.model), signal), signal)
  }
  if (isEmpty(message)) throw new ModelFailure(emptyAnswer(message), '', request, message.usage)
  return appendAnswer({ ...message, timestamp: deps.clock.now() }, request, round, deps)
}

function showRequest(request: PreparedRequest, { round }: Round, deps: TurnDeps, signal: AbortSignal): Promise<void> {
  const { setup, history } = request
  const { provider, model } = request.model
  const event = {
    provider: provider.name,
    model,
    system: setup.system,
    messages: history.messages,
    tools: setup.tools.map(({ name }) => name),
    round,
  }
  return deps.hooks.llmInput(event, hookContext(deps, request.model), signal)
}

type FinishedAnswer = Omit<AssistantMessage, 'timestamp'>

/** Streams until the answer is whole. One that is cut short after it was shown is kept by the caller that catches the failure. */
async function readAnswer(
  request: PreparedRequest,
  round: Round,
  deps: TurnDeps,
  signal: AbortSignal,
): Promise<FinishedAnswer> {
  const { provider } = request.model
  const shown = new GrowingText()
  deps.ifStopped(() => {
    const cut = cutAnswer(request, { text: shown.toString(), errorMessage: 'stopped', stopReason: 'aborted' }, deps)
    return stoppedStep(round.run, 'cancelled', { drafts: answerDrafts(request, cut, round) })
  })
  try {
    for await (const event of provider.stream(request.encoded, signal)) {
      switch (event.type) {
        case 'text-delta':
          request.times.heard()
          shown.append(event.delta)
          await deps.emit({ type: 'text-delta', round: round.round, delta: event.delta })
          break
        case 'thinking-delta':
          request.times.heard()
          await deps.emit({ type: 'thinking-delta', round: round.round, delta: event.delta })
          break
        case 'retry':
          await deps.emit({ type: 'model-retry', attempt: event.attempt, delayMs: event.delayMs, code: event.code })
          break
        case 'tool-call-start':
          request.times.heard()
          break
        case 'end':
          return event.message
      }
    }
  } catch (thrown) {
    // After a shutdown the step goes on as if this request had not been made; a stop has stored what was shown.
    if (signal.aborted) throw signal.reason
    deps.ifStopped(() => stoppedStep(round.run))
    // What a plugin's provider throws is its failure, not the end of the conversation.
    if (!(thrown instanceof GatewayError))
      deps.log.error('a provider failed in an unforeseen way', {
        model: request.model.name,
        reason: thrown instanceof Error ? thrown.name : typeof thrown,
      })
    throw new ModelFailure(toGatewayError(thrown), shown.toString(), request)
  }
  const error = new GatewayError('MODEL_FAILED', 'the model ended its answer without finishing it')
  throw new ModelFailure(error, shown.toString(), request)
}

/** Nothing to read and nothing to do: storing it as the final answer would leave the user with a blank reply. */
function isEmpty({ content }: FinishedAnswer): boolean {
  return content.every((block) => block.type !== 'toolCall') && textOf(content).trim() === ''
}

function emptyAnswer({ stopReason }: FinishedAnswer): GatewayError {
  return new GatewayError(
    'MODEL_ANSWER_INVALID',
    stopReason === 'length'
      ? 'the model used up its output tokens before it said anything (agent.max_output_tokens)'
      : 'the model ended its turn without saying anything; say “continue” to go on',
  )
}

async function appendAnswer(
  message: AssistantMessage,
  request: PreparedRequest,
  round: Round,
  deps: TurnDeps,
): Promise<AssistantMessage> {
  const stored = await deps.transcript.append(answerDrafts(request, message, round), {
    changes: changesOf(request, message, deps),
  })
  const entry = stored.at(-1)
  if (entry === undefined) throw new GatewayError('INTERNAL', 'the transcript stored nothing')
  // The guard may have taken invalid calls out, or a hook the whole answer: what is stored is what counts.
  const answer =
    entry.type === 'message' && entry.message.role === 'assistant'
      ? entry.message
      : { ...message, content: message.content.filter((block) => block.type !== 'toolCall') }
  deps.ifStopped(() => stoppedStep(round.run, 'cancelled', { drafts: callsNotRun(answer, round, deps) }))
  await deps.emit({ type: 'round-end', round: round.round, entryId: entry.id, usage: message.usage })
  return answer
}

/** An answer that is complete and not stored yet, and its calls, none of which was run. */
function unstoredAnswer(
  finished: FinishedAnswer,
  request: PreparedRequest,
  round: Round,
  deps: TurnDeps,
): UnfinishedWork {
  const message = { ...finished, timestamp: deps.clock.now() }
  return stoppedStep(round.run, 'cancelled', {
    drafts: [...answerDrafts(request, message, round), ...callsNotRun(message, round, deps)],
    changes: changesOf(request, message, deps),
  })
}

function answerDrafts(
  request: PreparedRequest,
  message: AssistantMessage,
  { run, round }: Round,
): readonly EntryDraft[] {
  return [...request.drafts(), { type: 'message', message, stepId: run, round }]
}

/** What an answer cost, and what it taught. */
function changesOf(request: PreparedRequest, message: AssistantMessage, deps: TurnDeps): readonly Change[] {
  return [
    ...deps.spending.record(request.model, message.usage),
    ...deps.windows.confirm(request.model),
    ...savingsOf(request, message, deps),
  ]
}

/** What the cleanups in force did to this request, by what the provider reports of its cache. */
function savingsOf(
  { model, input }: PreparedRequest,
  { usage, timestamp }: AssistantMessage,
  { savings }: TurnDeps,
): readonly Change[] {
  if (activeCleanups(input.entries).length === 0) return []
  const { ttlMs } = input.budget.pruning
  const effect = cleanupEffect(input.entries, usage, { prices: cachePricesOf(model.prices), now: timestamp, ttlMs })
  return effect === undefined ? [] : savings.measured(effect)
}

interface CutAnswer {
  readonly text: string
  readonly errorMessage: string
  readonly stopReason: 'error' | 'aborted'
  readonly usage?: Usage
}

/** What a person may have read stays in the transcript, marked as cut; calls that were not finished do not. */
async function appendCutAnswer(request: PreparedRequest, cut: CutAnswer, round: Round, deps: TurnDeps): Promise<void> {
  const message = cutAnswer(request, cut, deps)
  const { usage } = message
  await deps.transcript.append(
    answerDrafts(request, message, round),
    usage.totalTokens > 0 ? { changes: deps.spending.record(request.model, usage) } : {},
  )
}

function cutAnswer(
  { model: { provider, model } }: PreparedRequest,
  { text, errorMessage, stopReason, usage = NO_USAGE }: CutAnswer,
  { clock }: TurnDeps,
): AssistantMessage {
  return {
    role: 'assistant',
    content: text === '' ? [] : [{ type: 'text', text }],
    api: provider.api,
    provider: provider.name,
    model,
    usage,
    stopReason,
    errorMessage,
    timestamp: clock.now(),
  }
}
