import type { Entry, EntryDraft } from '../core/entry.ts'
import { estimateTokens } from '../core/tokens.ts'
import { createBudget, HARD_MAX_TOOL_RESULT_CHARS, type HistoryBudget } from '../history/budget.ts'
import { calibrationFrom } from '../history/calibration.ts'
import { stickyEntryData, VIEW_ENTRY_TYPE } from '../history/decisions.ts'
import { prepareHistory, type HistoryInput, type PreparedHistory } from '../history/prepare.ts'
import { createRequestRecord, REQUEST_ENTRY_TYPE, requestRecords } from '../history/request-record.ts'
import type { EncodedRequest, ToolSpec } from '../provider/provider.ts'
import type { Transcript } from '../transcript/store.ts'
import type { TurnModel, TurnParts } from './parts.ts'
import { createSetup, setupDrafts, type Setup } from './setup.ts'

/** A request ready to be sent, with everything needed to record it. */
export interface PreparedRequest {
  readonly model: TurnModel
  readonly setup: Setup
  readonly input: HistoryInput
  readonly history: PreparedHistory
  readonly encoded: EncodedRequest
  /** What the transcript is told about it, together with the answer. */
  readonly drafts: readonly EntryDraft[]
}

export interface RequestOptions {
  readonly tools: readonly ToolSpec[]
  readonly systemPrompt: string
  readonly projection: 'normal' | 'safest'
  /** Tightens the budget after the provider said that a request was too long. */
  readonly adjust?: (budget: HistoryBudget) => HistoryBudget
}

/**
 * Prepares the history for this model as the transcript is now. What it decides for good (sticky truncation) is appended
 * before the request is sent, so that the same bytes are sent again next time.
 */
export async function prepareRequest(
  model: TurnModel,
  options: RequestOptions,
  parts: TurnParts,
): Promise<PreparedRequest> {
  const { transcript, settings } = parts
  const setup = createSetup({
    system: options.systemPrompt,
    tools: options.tools,
    maxOutputTokens: model.maxOutputTokens,
    thinkingLevel: settings.thinkingLevel,
  })
  const { entries } = await transcript.context()
  const input = historyInput(model, setup, entries, options, parts)
  const history = prepareHistory(input)
  if (history.decisions.length > 0) {
    await transcript.append([{ type: 'custom', customType: VIEW_ENTRY_TYPE, data: stickyEntryData(history.decisions) }])
  }
  const encoded = model.provider.encode({
    model: model.model,
    system: setup.system,
    messages: history.messages,
    tools: setup.tools,
    plainTurns: options.projection === 'safest',
    maxOutputTokens: setup.maxOutputTokens,
    thinkingLevel: setup.thinkingLevel,
    cacheKey: parts.sessionId,
  })
  const n = (await latestRequestNumber(entries, transcript)) + 1
  const record = createRequestRecord({ n, input, prepared: history, body: encoded.body })
  return {
    model,
    setup,
    input,
    history,
    encoded,
    drafts: [...setupDrafts(entries, setup), { type: 'custom', customType: REQUEST_ENTRY_TYPE, data: record }],
  }
}

/** Numbers go on over a compaction that leaves no earlier request in view. */
async function latestRequestNumber(entries: readonly Entry[], transcript: Transcript): Promise<number> {
  const inView = requestRecords(entries).at(-1)?.n
  if (inView !== undefined) return inView
  if (!entries.some((entry) => entry.type === 'compaction')) return 0
  return requestRecords(await transcript.branch()).at(-1)?.n ?? 0
}

export function historyInput(
  model: TurnModel,
  setup: Setup,
  entries: readonly Entry[],
  { projection, adjust = (budget) => budget }: Pick<RequestOptions, 'projection' | 'adjust'>,
  { settings, clock }: Pick<TurnParts, 'settings' | 'clock'>,
): HistoryInput {
  const target = {
    provider: model.provider.name,
    api: model.provider.api,
    model: model.model,
    ...(model.provider.dialect === undefined ? {} : { dialect: model.provider.dialect }),
    acceptsImages: model.acceptsImages,
  }
  const budget = createBudget({
    contextWindow: model.contextWindow,
    reservedTokens: Math.min(setup.maxOutputTokens, Math.floor(model.contextWindow / 4)),
    fixedTokens: estimateTokens(setup.system) + estimateTokens(JSON.stringify(setup.tools)),
    calibration: calibrationFrom(entries, target),
    pruning: settings.pruning,
    maxToolResultChars: Math.min(HARD_MAX_TOOL_RESULT_CHARS, settings.toolOutputChars),
  })
  return { entries, target, budget: adjust(budget), historyLimit: settings.historyLimit, now: clock.now(), projection }
}
