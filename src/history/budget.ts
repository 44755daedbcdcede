import type { CompactionSettings } from './compaction.ts'
import type { HistoryInput, HistoryTokens } from './prepare.ts'
import { latestCompaction, undoDetails } from './view-records.ts'

/** Sizes a request may have. Every number is an option; `createBudget` gives the defaults. */
export interface HistoryBudget {
  readonly contextWindow: number
  /** Left free for the answer. */
  readonly reservedTokens: number
  /** System prompt and tool definitions. */
  readonly fixedTokens: number
  readonly maxToolResultChars: number
  readonly maxToolResultShare: number
  /** Of the window, for the text of all tool results together. */
  readonly maxAllToolResultsShare: number
  /** Real tokens per estimated one, from what the provider reported; 1 while nothing is known. */
  readonly calibration: number
  readonly keepImagesOfTurns: number
  readonly pruning: PruningSettings
}

/** `contextPruning` of the configuration. */
export interface PruningSettings {
  readonly mode: 'cache-ttl' | 'off'
  readonly ttlMs: number
  readonly keepLastAssistants: number
  readonly softTrimRatio: number
  readonly hardClearRatio: number
  readonly minPrunableToolChars: number
  readonly softTrim: { readonly maxChars: number; readonly headChars: number; readonly tailChars: number }
  readonly hardClear: { readonly enabled: boolean; readonly placeholder: string }
  /** Globs with `*`, case ignored; deny wins, an empty allow list allows all. */
  readonly allowTools: readonly string[]
  readonly denyTools: readonly string[]
}

/** The original's `HARD_MAX_TOOL_RESULT_CHARS`. */
export const HARD_MAX_TOOL_RESULT_CHARS = 400_000
/** The original's `MAX_TOOL_RESULT_CONTEXT_SHARE`. */
export const MAX_TOOL_RESULT_CONTEXT_SHARE = 0.3
/** A text block keeps at least this much, as long as the total allows. */
export const MIN_KEEP_CHARS = 2_000
export const CHARS_PER_TOKEN = 4

export const DEFAULT_PRUNING: PruningSettings = {
  mode: 'cache-ttl',
  ttlMs: 5 * 60_000,
  keepLastAssistants: 3,
  softTrimRatio: 0.3,
  hardClearRatio: 0.5,
  minPrunableToolChars: 50_000,
  softTrim: { maxChars: 4_000, headChars: 1_500, tailChars: 1_500 },
  hardClear: { enabled: true, placeholder: '[Old tool result content cleared]' },
  allowTools: [],
  denyTools: [],
}

/** A budget for a window, with the defaults for everything that is not given. */
export function createBudget(options: Partial<HistoryBudget> & { readonly contextWindow: number }): HistoryBudget {
  return {
    reservedTokens: Math.min(16_384, Math.floor(options.contextWindow / 4)),
    fixedTokens: 0,
    maxToolResultChars: HARD_MAX_TOOL_RESULT_CHARS,
    maxToolResultShare: MAX_TOOL_RESULT_CONTEXT_SHARE,
    maxAllToolResultsShare: 0.5,
    calibration: 1,
    keepImagesOfTurns: 3,
    pruning: DEFAULT_PRUNING,
    ...options,
  }
}

/** `min(400 000, 30 % of the window × 4)`, the original's dynamic limit for one result. */
export function maxCharsPerResult(budget: HistoryBudget): number {
  return Math.min(budget.maxToolResultChars, maxTokensPerResult(budget) * CHARS_PER_TOKEN)
}

/** The same share counted in tokens, which is what binds for Chinese. */
export function maxTokensPerResult(budget: HistoryBudget): number {
  return Math.floor(budget.contextWindow * budget.maxToolResultShare)
}

/** In estimated tokens; a history always gets enough room for one short exchange. */
export function maxHistoryTokens(budget: HistoryBudget): number {
  const free = (budget.contextWindow - budget.reservedTokens) / budget.calibration - budget.fixedTokens
  return Math.max(MIN_HISTORY_TOKENS, Math.floor(free))
}

export const MIN_HISTORY_TOKENS = 256

/** After a summary was taken back the next one is made only when the history does not fit without it. */
export function shouldCompact(
  tokens: HistoryTokens,
  { entries, budget }: Pick<HistoryInput, 'entries' | 'budget'>,
  settings: CompactionSettings,
): boolean {
  if (settings.mode === 'off') return false
  const { contextWindow, reservedTokens } = budget
  const roomBeside = (reserved: number): number => contextWindow - reserved - budget.fixedTokens * budget.calibration
  const latest = latestCompaction(entries)
  if (latest !== undefined && undoDetails(latest) !== undefined) return tokens.wanted > roomBeside(reservedTokens)
  // The default is more than small models have in all.
  const reserved = Math.min(settings.reserveTokens, Math.floor(contextWindow / 4))
  const room = roomBeside(Math.max(reservedTokens, reserved))
  return tokens.wanted > Math.min(Math.floor(contextWindow * settings.maxHistoryShare), room)
}

/** What is left when every message is gone. When this does not fit, no compaction can help and a person has to know. */
export function exceedsWindowWithoutHistory(budget: HistoryBudget): boolean {
  return budget.fixedTokens * budget.calibration + budget.reservedTokens >= budget.contextWindow
}
