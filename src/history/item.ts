import type { ModelIdentity, TranscriptPolicy } from '../core/history-rules.ts'
import type { EntryId } from '../core/ids.ts'
import type { PreparedMessage } from '../core/message.ts'
import type { HistoryBudget } from './budget.ts'
import type { Reason } from './reasons.ts'
import type { StickyDecision, StickyDecisions } from './view-records.ts'

/** A message on its way to the model, and where it came from. */
export interface Item {
  readonly message: PreparedMessage
  readonly kind: ItemKind
  /** The entries it stands for, first one first; empty for what the pipeline added. */
  readonly sources: readonly EntryId[]
}

/**
 * `user`: the message of a person, counted as a turn. `summary`: of a compaction or a branch; survives every limit.
 * `context`: text that no user wrote (custom messages, commands, results without a call). `filler`: put in so that a
 * provider's rules hold.
 */
export type ItemKind = 'user' | 'assistant' | 'result' | 'synthetic-result' | 'summary' | 'context' | 'filler'

/** A stored report names a step by its place here, so new ones go to the end. `prepare.ts` has the order they run in. */
export const STEP_NAMES = [
  'view',
  'annotate-inter-session',
  'limit-turns',
  'tool-call-inputs',
  'thinking',
  'openai-reasoning',
  'images',
  'prune',
  'truncate-results',
  'pair-results',
  'fit',
  'pair-again',
  'strip-details',
  'queued-messages',
  'turn-order',
  'validate-turns',
  'invariants',
  'tool-calls',
] as const

export type StepName = (typeof STEP_NAMES)[number]

/** One thing that makes the model's view differ from the transcript. Never holds text of a message. */
export interface Change {
  readonly step: StepName
  readonly action: 'dropped' | 'added' | 'moved' | 'rewritten' | 'merged'
  /** Of a step of this version a `Reason`; a stored report may hold others. */
  readonly reason: string
  /** The transcript entry it happened to; absent for what was added. */
  readonly entry?: EntryId
  /** How many blocks or characters, where that says more than the reason. */
  readonly count?: number
}

export interface StepResult {
  /** The array that came in when nothing changed. */
  readonly items: readonly Item[]
  readonly changes: readonly Change[]
  /** New decisions that have to be repeated in every later request. */
  readonly decisions?: readonly StickyDecision[]
}

export interface StepContext {
  readonly target: ModelIdentity & { readonly acceptsImages: boolean }
  readonly policy: TranscriptPolicy
  readonly budget: HistoryBudget
  readonly historyLimit: number
  readonly now: number
  /** What earlier requests decided, by entry. */
  readonly sticky: StickyDecisions
}

export type Step = (items: readonly Item[], context: StepContext) => StepResult

export const unchanged = (items: readonly Item[]): StepResult => ({ items, changes: [] })

/** Runs `edit` over every item; `undefined` drops it, the same object keeps it. */
export function editItems(items: readonly Item[], edit: (item: Item, at: number) => Item | undefined): readonly Item[] {
  let edited: Item[] | undefined
  items.forEach((item, at) => {
    const next = edit(item, at)
    if (edited === undefined && next !== item) edited = items.slice(0, at)
    if (edited !== undefined && next !== undefined) edited.push(next)
  })
  return edited ?? items
}

export function change(step: StepName, action: Change['action'], reason: Reason, item?: Item, count?: number): Change {
  const entry = item?.sources[0]
  return { step, action, reason, ...(entry === undefined ? {} : { entry }), ...(count === undefined ? {} : { count }) }
}
