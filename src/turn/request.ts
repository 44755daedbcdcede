import { sleep, NEVER } from '../base/async.ts'
import type { Clock } from '../base/clock.ts'
import { loopWork, runSlices } from '../base/loop-work.ts'
import type { Entry, EntryDraft } from '../core/entry.ts'
import { estimateTokens } from '../core/tokens.ts'
import { createBudget, HARD_MAX_TOOL_RESULT_CHARS, MIN_HISTORY_TOKENS } from '../history/budget.ts'
import {
  calibrationFrom,
  createRequestState,
  factsOf,
  REQUEST_ENTRY_TYPE,
  storedForm,
  type RequestTiming,
} from '../history/request-record.ts'
import { stickyEntryData, VIEW_ENTRY_TYPE } from '../history/view-records.ts'
import { prepareHistory, settleHistory, type HistoryInput, type PreparedHistory } from '../history/prepare.ts'
import type { EncodedRequest, ToolSpec } from '../provider/provider.ts'
import type { Transcript } from '../transcript/store.ts'
import type { TurnModel, TurnDeps } from './deps.ts'
import { createSetup, modelRequest, setupDrafts, type ClientSetup, type Setup } from './setup.ts'

/** A request ready to be sent, with everything needed to record it. */
export interface PreparedRequest {
  readonly model: TurnModel
  readonly setup: Setup
  readonly input: HistoryInput
  readonly history: PreparedHistory
  readonly encoded: EncodedRequest
  readonly times: RequestTimes
  /** What the transcript stores about it, together with the answer. */
  drafts(): readonly EntryDraft[]
}

export interface RequestOptions {
  readonly tools: readonly ToolSpec[]
  readonly systemPrompt: string
  readonly projection: 'normal' | 'safest'
  /** At least this many real tokens per estimated one, after the provider said that a request was too long. */
  readonly minCalibration?: number
  /** What the client demands of this answer. */
  readonly toolChoice?: 'required' | { readonly name: string }
}

/**
 * Prepares the history for this model as the transcript is now. What it decides for good (sticky truncation) is appended
 * before the request is sent, so that the same bytes are sent again next time.
 */
export async function prepareRequest(
  model: TurnModel,
  given: RequestOptions,
  deps: TurnDeps,
): Promise<PreparedRequest> {
  const { transcript, settings } = deps
  const options = withToolsThatFit(model, given, deps)
  const setup = createSetup({
    system: options.systemPrompt,
    tools: options.tools,
    maxOutputTokens: Math.min(model.maxOutputTokens, deps.client?.sampling?.maxOutputTokens ?? Infinity),
    thinkingLevel: settings.thinkingLevel,
    ...clientSetup(options, deps),
  })
  const { entries } = await transcript.context()
  const input = historyInput(model, setup, entries, options, deps)
  await settleInSlices(input, deps)
  const history = loopWork('history', () => prepareHistory(input))
  if (history.decisions.length > 0) {
    await transcript.append([{ type: 'custom', customType: VIEW_ENTRY_TYPE, data: stickyEntryData(history.decisions) }])
  }
  const { projection } = options
  const encoded = model.provider.encode(
    modelRequest(setup, { model: model.model, messages: history.messages, projection, sessionId: deps.sessionId }),
  )
  const n = (await latestRequestNumber(entries, transcript)) + 1
  const { learned } = model.window
  const record = createRequestState({
    n,
    input,
    prepared: history,
    body: encoded.body,
    ...(learned === undefined ? {} : { windowLearned: learned }),
  })
  const times = new RequestTimes(deps.clock)
  return {
    model,
    setup,
    input,
    history,
    encoded,
    times,
    drafts: () => [
      ...setupDrafts(entries, setup),
      {
        type: 'custom',
        customType: REQUEST_ENTRY_TYPE,
        data: Object.assign({}, storedForm(entries, record), times.timing()),
      },
    ],
  }
}

/** So that a long conversation that is opened again holds up no other. */
export function settleInSlices(input: HistoryInput, { clock }: Pick<TurnDeps, 'clock'>): Promise<void> {
  return runSlices(settleHistory(input), 'history', () => sleep(clock, 0, NEVER))
}

function clientSetup(
  { toolChoice }: RequestOptions,
  { client }: Pick<TurnDeps, 'client'>,
): { readonly client?: ClientSetup } {
  if (client === undefined) return {}
  const { sampling, system } = client
  return {
    client: {
      system: system !== undefined,
      ...(sampling === undefined ? {} : { sampling }),
      ...(toolChoice === undefined ? {} : { toolChoice }),
    },
  }
}

/** Tools that leave no room for a conversation would have every request refused: the model answers without them. */
function withToolsThatFit(model: TurnModel, options: RequestOptions, { log }: Pick<TurnDeps, 'log'>): RequestOptions {
  const tokens = tokensOfText(options.systemPrompt) + tokensOfTools(options.tools)
  const room = model.contextWindow - reservedFor(model) - MIN_HISTORY_TOKENS
  if (options.tools.length === 0 || tokens <= room) return options
  log.warn('the tools do not fit the model’s window and are left out', { model: model.name, tokens, room })
  // Calls in the history are written as text: most providers refuse calls of tools that are not offered.
  const { toolChoice: _, ...rest } = options
  return { ...rest, tools: [], projection: 'safest' }
}

const MOST_KNOWN_TEXTS = 100
const knownTexts = new Map<string, number>()

/** Remembered: a system prompt and the tools are the longest texts of a request, and the same in most of them. */
function tokensOfText(text: string): number {
  const known = knownTexts.get(text)
  if (known !== undefined) return known
  const tokens = estimateTokens(text)
  knownTexts.set(text, tokens)
  const [oldest] = knownTexts.size > MOST_KNOWN_TEXTS ? knownTexts.keys() : []
  if (oldest !== undefined) knownTexts.delete(oldest)
  return tokens
}

const knownTools = new WeakMap<readonly ToolSpec[], number>()

function tokensOfTools(tools: readonly ToolSpec[]): number {
  const tokens = knownTools.get(tools) ?? tokensOfText(JSON.stringify(tools))
  knownTools.set(tools, tokens)
  return tokens
}

/** Left free for the answer. */
function reservedFor({ maxOutputTokens, contextWindow }: TurnModel): number {
  return Math.min(maxOutputTokens, Math.floor(contextWindow / 4))
}

/** Numbers go on over a compaction that leaves no earlier request in view. */
async function latestRequestNumber(entries: readonly Entry[], transcript: Transcript): Promise<number> {
  const inView = latestNumber(entries)
  if (inView !== undefined) return inView
  if (!entries.some((entry) => entry.type === 'compaction')) return 0
  return latestNumber(await transcript.branch()) ?? 0
}

function latestNumber(entries: readonly Entry[]): number | undefined {
  return factsOf(entries.findLast((entry) => factsOf(entry) !== undefined))?.n
}

export function historyInput(
  model: TurnModel,
  setup: Setup,
  entries: readonly Entry[],
  { projection, minCalibration = 0 }: Pick<RequestOptions, 'projection' | 'minCalibration'>,
  { settings, clock }: Pick<TurnDeps, 'settings' | 'clock'>,
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
    reservedTokens: reservedFor(model),
    fixedTokens: tokensOfText(setup.system) + tokensOfTools(setup.tools),
    calibration: Math.max(minCalibration, calibrationFrom(entries, target)),
    pruning: settings.pruning,
    maxToolResultChars: Math.min(HARD_MAX_TOOL_RESULT_CHARS, settings.toolOutputChars),
  })
  return { entries, target, budget, historyLimit: settings.historyLimit, now: clock.now(), projection }
}

/** When a request was sent, when its answer began, when it ended: stored with it, so that a past turn has a timeline. */
class RequestTimes {
  readonly #clock: Clock
  #startedAt: number | undefined
  #started = 0
  #firstByteMs: number | undefined
  #durationMs: number | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  start(): void {
    this.#startedAt = this.#clock.now()
    this.#started = this.#clock.monotonic()
  }

  heard(): void {
    this.#firstByteMs ??= this.#clock.monotonic() - this.#started
  }

  end(): number {
    this.#durationMs = this.#clock.monotonic() - this.#started
    return this.#durationMs
  }

  timing(): RequestTiming {
    if (this.#startedAt === undefined) return {}
    return {
      startedAt: this.#startedAt,
      ...(this.#firstByteMs === undefined ? {} : { firstByteMs: this.#firstByteMs }),
      durationMs: this.#durationMs ?? this.#clock.monotonic() - this.#started,
    }
  }
}
