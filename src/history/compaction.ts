import type { Entry, EntryDraft } from '../core/entry.ts'
import { TRANSCRIPT_POLICIES } from '../core/history-rules.ts'
import type { EntryId } from '../core/ids.ts'
import { estimateMessageTokens, estimateTokens } from '../core/tokens.ts'
import type { Item } from './item.ts'
import { sanitizeToolUseResultPairing } from './pair-results.ts'
import { prepareHistory, type HistoryInput } from './prepare.ts'
import { activeEntries, viewOf } from './view.ts'
import { splitIntoChunks, type Chunk } from './compaction-chunks.ts'
import { collectFacts, summarySections, type SummaryFacts } from './compaction-facts.ts'
import { summaryPrompt, type SummaryPrompt } from './summary-prompt.ts'
import { estimateMessages, tokensInView, type CountMessages } from './view-tokens.ts'

/** `compaction` of the configuration. */
export interface CompactionSettings {
  readonly mode: 'safeguard' | 'off'
  /** Of the window, for the history; above it the oldest part is summarised. */
  readonly maxHistoryShare: number
  /** Of the window, kept free for the answer; at most a quarter of it. */
  readonly reserveTokens: number
  /** Kept word for word, at most; never less than the latest exchange. */
  readonly keepRecentTokens: number
}

export const DEFAULT_COMPACTION: CompactionSettings = {
  mode: 'safeguard',
  maxHistoryShare: 0.5,
  reserveTokens: 20_000,
  keepRecentTokens: 20_000,
}

export interface CompactionPlan {
  readonly firstKeptEntryId: EntryId
  /** To be summarised one after the other; each fits the model with its prompt. */
  readonly chunks: readonly Chunk[]
  readonly facts: SummaryFacts
  /** Of what the model sees now, as `count` counts it; `/compact undo` counts the same. */
  readonly tokensBefore: number
  readonly count: CountMessages
  /** Of what the summary replaces. */
  readonly tokensSummarized: number
}

/**
 * Which entries a summary replaces. The cut never separates a call from its results and prefers the start of a turn;
 * the latest request always survives, in the summary if it lies before the cut. Undefined when there is nothing to
 * summarise.
 */
export function planCompaction(
  input: HistoryInput,
  settings: CompactionSettings,
  count: CountMessages = estimateMessages,
): CompactionPlan | undefined {
  const items = sanitizeToolUseResultPairing(
    viewOf(activeEntries(input.entries)).items,
    TRANSCRIPT_POLICIES.default,
  ).items
  const cut = cutPoint(
    items,
    Math.min(settings.keepRecentTokens, Math.floor((input.budget.contextWindow * settings.maxHistoryShare) / 2)),
  )
  const firstKept = items.slice(cut).find((item) => item.sources.length > 0)?.sources[0]
  const summarized = items.slice(0, cut)
  if (firstKept === undefined || !summarized.some((item) => item.kind !== 'summary')) return undefined
  return {
    firstKeptEntryId: firstKept,
    chunks: splitIntoChunks(summarized, input.budget),
    facts: collectFacts(items, cut),
    tokensBefore: tokensInView(input.entries, count).count,
    count,
    tokensSummarized: summarized.reduce((sum, item) => sum + estimateMessageTokens(item.message), 0),
  }
}

/** The oldest group start from which everything fits into `keepTokens`; the latest group is kept whatever its size. */
function cutPoint(items: readonly Item[], keepTokens: number): number {
  let tokens = 0
  let cut = items.length
  for (let at = items.length - 1; at >= 0; at--) {
    const item = items[at]
    if (item === undefined || item.kind === 'summary') break
    tokens += estimateMessageTokens(item.message)
    if (tokens > keepTokens && cut < items.length) break
    if (isGroupStart(items, at)) cut = at
  }
  return startOfTurnNear(items, cut)
}

const isGroupStart = (items: readonly Item[], at: number): boolean => items[at]?.message.role !== 'toolResult'

/** Forward to the next user message when one follows, so that a turn is kept whole. */
function startOfTurnNear(items: readonly Item[], cut: number): number {
  const turn = items.findIndex((item, at) => at >= cut && item.kind === 'user')
  return turn < 0 ? cut : turn
}

export type Summarize = (prompt: SummaryPrompt, signal: AbortSignal) => Promise<string>

export type CompactionResult =
  /** Append this; the boundary moves with it and not before. */
  | {
      readonly kind: 'compacted'
      readonly draft: EntryDraft
      readonly tokensBefore: number
      readonly tokensAfter: number
      readonly estimated: boolean
    }
  /** Nothing has changed. */
  | { readonly kind: 'cancelled'; readonly reason: string; readonly cause?: unknown }

/**
 * Summarises chunk by chunk, each summary feeding the next, and checks the outcome: a summary that failed, is empty or
 * saves nothing cancels the compaction. Aborting throws the signal's reason.
 */
export async function runCompaction(
  plan: CompactionPlan,
  input: HistoryInput,
  summarize: Summarize,
  signal: AbortSignal,
): Promise<CompactionResult> {
  let summary = ''
  for (const chunk of plan.chunks) {
    signal.throwIfAborted()
    try {
      summary = (await summarize(summaryPrompt(chunk, summary), signal)).trim()
    } catch (cause) {
      signal.throwIfAborted()
      return { kind: 'cancelled', reason: 'the summary failed', cause }
    }
    if (summary === '') return { kind: 'cancelled', reason: 'the summary is empty' }
  }
  return judge(plan, input, `${summary}\n\n${summarySections(plan.facts)}`.trim())
}

function judge(plan: CompactionPlan, input: HistoryInput, summary: string): CompactionResult {
  if (estimateTokens(summary) >= plan.tokensSummarized)
    return { kind: 'cancelled', reason: 'the summary is larger than what it replaces' }
  const draft = {
    type: 'compaction',
    summary,
    firstKeptEntryId: plan.firstKeptEntryId,
    tokensBefore: plan.tokensBefore,
    details: { readFiles: plan.facts.readFiles, modifiedFiles: plan.facts.modifiedFiles },
  } as const satisfies EntryDraft
  const entries = [...input.entries, asEntry(draft, plan)]
  const after = tokensInView(entries, plan.count)
  const isSmaller =
    after.count < plan.tokensBefore &&
    prepareHistory({ ...input, entries }).tokens.wanted < prepareHistory(input).tokens.wanted
  if (!isSmaller) return { kind: 'cancelled', reason: 'the history would not get smaller' }
  return {
    kind: 'compacted',
    draft,
    tokensBefore: plan.tokensBefore,
    tokensAfter: after.count,
    estimated: after.estimated,
  }
}

function asEntry(draft: Extract<EntryDraft, { readonly type: 'compaction' }>, plan: CompactionPlan): Entry {
  return { ...draft, id: plan.firstKeptEntryId, parentId: null, timestamp: '1970-01-01T00:00:00.000Z' }
}
