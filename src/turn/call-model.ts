import type { EntryDraft } from '../core/entry.ts'
import { GatewayError } from '../core/errors.ts'
import type { RunId } from '../core/ids.ts'
import { NO_USAGE, type AssistantMessage } from '../core/message.ts'
import { estimateTokens } from '../core/tokens.ts'
import { causeOf } from '../core/turn-stopped.ts'
import { createBudget } from '../history/budget.ts'
import { stickyEntryData, VIEW_ENTRY_TYPE } from '../history/decisions.ts'
import { prepareHistory, type PreparedHistory } from '../history/prepare.ts'
import type { EncodedRequest, ToolSpec } from '../provider/provider.ts'
import type { TurnModel, TurnParts } from './parts.ts'
import { createSetup, hashOf, nextRequestNumber, requestDraft, setupDrafts } from './request-record.ts'

export interface Round {
  readonly run: RunId
  readonly round: number
  readonly tools: readonly ToolSpec[]
}

/** The model could not answer. What it had said before is kept: it may already have been shown. */
export class ModelFailure extends Error {
  readonly error: GatewayError
  readonly partialText: string
  constructor(error: GatewayError, partialText: string) {
    super(error.message, { cause: error })
    this.name = 'ModelFailure'
    this.error = error
    this.partialText = partialText
  }
}

/**
 * Asks the model, streams what it says, and appends its answer together with the record of the request. Other models
 * step in as long as nothing of the answer was shown. An answer cut by an abort or an error is appended as such.
 */
export async function callModel(round: Round, parts: TurnParts, signal: AbortSignal): Promise<AssistantMessage> {
  for (const [index, model] of parts.models.entries()) {
    try {
      return await callOne(model, round, parts, signal)
    } catch (thrown) {
      if (!(thrown instanceof ModelFailure) || signal.aborted) throw thrown
      const next = parts.models[index + 1]
      if (next === undefined || thrown.partialText !== '' || !isWorthAnotherModel(thrown.error)) throw thrown
      await parts.emit({ type: 'model-retry', attempt: index + 1, delayMs: 0, code: thrown.error.code })
      parts.log.warn('another model steps in', { from: model.name, to: next.name, code: thrown.error.code })
    }
  }
  throw new GatewayError('MODEL_UNKNOWN', 'no model is configured')
}

/** A conversation one provider filters or finds too long may well pass at the next; only a stop by the user ends it all. */
function isWorthAnotherModel(error: GatewayError): boolean {
  return error.code.startsWith('MODEL_')
}

async function callOne(
  model: TurnModel,
  round: Round,
  parts: TurnParts,
  signal: AbortSignal,
): Promise<AssistantMessage> {
  try {
    return await request(model, 'normal', round, parts, signal)
  } catch (thrown) {
    // A refusal of the shape is ours, not the provider's: once more with everything left out that could offend.
    const isShapeError =
      thrown instanceof ModelFailure && thrown.error.code === 'MODEL_REQUEST_INVALID' && thrown.partialText === ''
    if (!isShapeError || signal.aborted) throw thrown
    parts.log.warn('the provider refused the request; trying the safest form', { model: model.name })
    return request(model, 'safest', round, parts, signal)
  }
}

interface Sent {
  readonly encoded: EncodedRequest
  readonly record: EntryDraft
}

async function request(
  model: TurnModel,
  projection: 'normal' | 'safest',
  round: Round,
  parts: TurnParts,
  signal: AbortSignal,
): Promise<AssistantMessage> {
  const sent = await prepareRequest(model, projection, round, parts)
  let shown = ''
  try {
    for await (const event of model.provider.stream(sent.encoded, signal)) {
      switch (event.type) {
        case 'text-delta':
          shown += event.delta
          await parts.emit({ type: 'text-delta', round: round.round, delta: event.delta })
          break
        case 'thinking-delta':
          await parts.emit({ type: 'thinking-delta', round: round.round, delta: event.delta })
          break
        case 'retry':
          await parts.emit({ type: 'model-retry', attempt: event.attempt, delayMs: event.delayMs, code: event.code })
          break
        case 'tool-call-start':
          break
        case 'end':
          return await appendAnswer({ ...event.message, timestamp: parts.clock.now() }, sent, round, parts)
      }
    }
  } catch (thrown) {
    await appendCutAnswer(model, thrown, shown, sent, round, parts, signal)
    if (signal.aborted || !(thrown instanceof GatewayError)) throw thrown
    throw new ModelFailure(thrown, shown)
  }
  throw new GatewayError('MODEL_FAILED', 'the model ended its answer without finishing it')
}

async function prepareRequest(
  model: TurnModel,
  projection: 'normal' | 'safest',
  round: Round,
  parts: TurnParts,
): Promise<Sent> {
  const { transcript, settings, clock } = parts
  const setup = createSetup(settings.systemPrompt, round.tools)
  const before = await transcript.context()
  const missing = setupDrafts(before.entries, setup)
  if (missing.length > 0) await transcript.append(missing)
  const { entries } = missing.length === 0 ? before : await transcript.context()
  const target = {
    provider: model.provider.name,
    api: model.provider.api,
    model: model.model,
    acceptsImages: model.acceptsImages,
  }
  const budget = createBudget({
    contextWindow: model.contextWindow,
    reservedTokens: Math.min(model.maxOutputTokens, Math.floor(model.contextWindow / 4)),
    fixedTokens: estimateTokens(setup.system) + estimateTokens(JSON.stringify(setup.tools)),
    pruning: settings.pruning,
  })
  const now = clock.now()
  const history: PreparedHistory = prepareHistory({
    entries,
    target,
    budget,
    historyLimit: settings.historyLimit,
    now,
    projection,
  })
  if (history.decisions.length > 0) {
    await transcript.append([{ type: 'custom', customType: VIEW_ENTRY_TYPE, data: stickyEntryData(history.decisions) }])
  }
  const { maxOutputTokens } = model
  const { thinkingLevel } = settings
  const encoded = model.provider.encode({
    model: model.model,
    system: setup.system,
    messages: history.messages,
    tools: setup.tools,
    maxOutputTokens,
    thinkingLevel,
    cacheKey: transcript.sessionId,
  })
  const record = requestDraft(
    {
      n: nextRequestNumber(entries),
      ...target,
      hash: hashOf(encoded),
      setup: setup.hash,
      now,
      projection,
      historyLimit: settings.historyLimit,
      budget,
      maxOutputTokens,
      thinkingLevel,
      cacheKey: transcript.sessionId,
      tokens: { count: history.tokens.count, raw: history.tokens.raw, estimated: history.tokens.estimated },
    },
    history.report,
  )
  return { encoded, record }
}

async function appendAnswer(
  message: AssistantMessage,
  sent: Sent,
  round: Round,
  parts: TurnParts,
): Promise<AssistantMessage> {
  const stored = await parts.transcript.append([
    sent.record,
    { type: 'message', message, stepId: round.run, round: round.round },
  ])
  const entry = stored.at(-1)
  if (entry === undefined) throw new GatewayError('INTERNAL', 'the transcript stored nothing')
  await parts.emit({ type: 'round-end', round: round.round, entryId: entry.id, usage: message.usage })
  // The guard may have taken invalid calls out: what is stored is what counts.
  return entry.type === 'message' && entry.message.role === 'assistant' ? entry.message : message
}

/** What a person may have read stays in the transcript, marked as cut; calls that were not finished do not. */
async function appendCutAnswer(
  model: TurnModel,
  thrown: unknown,
  shown: string,
  sent: Sent,
  round: Round,
  parts: TurnParts,
  signal: AbortSignal,
): Promise<void> {
  // After a shutdown the step goes on as if this request had not been made.
  if (signal.aborted && causeOf(signal) === 'shutdown') return
  const message: AssistantMessage = {
    role: 'assistant',
    content: shown === '' ? [] : [{ type: 'text', text: shown }],
    api: model.provider.api,
    provider: model.provider.name,
    model: model.model,
    usage: NO_USAGE,
    stopReason: signal.aborted ? 'aborted' : 'error',
    errorMessage: signal.aborted
      ? 'stopped'
      : thrown instanceof GatewayError
        ? `${thrown.code}: ${thrown.message}`
        : 'INTERNAL',
    timestamp: parts.clock.now(),
  }
  await parts.transcript.append([sent.record, { type: 'message', message, stepId: round.run, round: round.round }])
}
