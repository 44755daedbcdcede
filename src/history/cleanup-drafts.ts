import type { CleanupNumbers } from '../core/event.ts'
import type { Entry } from '../core/entry.ts'
import { estimateMessageTokens } from '../core/tokens.ts'
import { cleanupNote } from './cleanup-note.ts'
import { deferredSteps, type CleanupRecord } from './view-records.ts'
import { chooseHidden, type CleanupChoice, type CleanupRules } from './cleanup-strategy.ts'
import type { TranscriptStep } from './derive-steps.ts'
import { normalizeMessage } from './normalize-message.ts'
import { isRecallable } from './recall-rounds.ts'

/** A cleanup of one step, before it is decided. */
export interface CleanupDraft {
  readonly step: TranscriptStep
  readonly record: CleanupRecord
  /** Of what it hides, estimated. */
  readonly hiddenTokens: number
}

/** Share of what is hidden that the note in its place may take. */
const NOTE_SHARE = 0.3

export function createDraft(step: TranscriptStep, choice: CleanupChoice, summary?: string): CleanupDraft {
  const { hidden, reason } = choice
  const ids = new Set(hidden)
  const entries = step.entries.filter((entry) => ids.has(entry.id))
  const hiddenTokens = entries.reduce((sum, entry) => sum + tokensOf(entry), 0)
  // None where there would be nothing to recall.
  const note = entries.some(isRecallable) ? noteFor(step, choice, hiddenTokens, summary) : ''
  const numbers = { tokensBefore: 0, tokensAfter: 0, estimated: true }
  const record = { stepId: step.id, hidden, note, ...numbers, ...(reason === undefined ? {} : { reason }) }
  return { step, record, hiddenTokens }
}

function noteFor(
  step: TranscriptStep,
  { rounds, reason }: CleanupChoice,
  hiddenTokens: number,
  summary?: string,
): string {
  return cleanupNote({
    stepId: step.id,
    rounds,
    maxTokens: Math.floor(NOTE_SHARE * hiddenTokens),
    ...(reason === undefined ? {} : { outcome: 'its last round is kept' }),
    ...(summary === undefined ? {} : { summary }),
  })
}

function tokensOf(entry: Entry): number {
  const message = entry.type === 'message' ? normalizeMessage(entry.message).message : undefined
  return message === undefined ? 0 : estimateMessageTokens(message)
}

/** Of the steps whose cleanup was put off, oldest first. */
export function deferredDrafts(
  entries: readonly Entry[],
  steps: readonly TranscriptStep[],
  rules: CleanupRules,
): readonly CleanupDraft[] {
  const deferred = new Set(deferredSteps(entries))
  return steps.flatMap((step) => {
    if (!deferred.has(step.id)) return []
    const choice = chooseHidden(step, step.outcome ?? 'interrupted', rules)
    return choice.hidden.length === 0 ? [] : [createDraft(step, choice)]
  })
}

/** The step alone, then with the latest one, two, four … of those put off, then with all of them. */
export function batches(deferred: readonly CleanupDraft[], own: CleanupDraft): readonly (readonly CleanupDraft[])[] {
  const others = deferred.filter(({ step }) => step.id !== own.step.id)
  const sizes = [0]
  for (let size = 1; size < others.length; size *= 2) sizes.push(size)
  if (others.length > 0) sizes.push(others.length)
  return sizes.map((size) => [...others.slice(others.length - size), own])
}

/** The numbers of each record of a batch: the last one carries what rounding leaves over, so that they add up. */
export function numbersOf(
  drafts: readonly CleanupDraft[],
  { tokensBefore, tokensSaved, tokensRemaining, estimated }: CleanupNumbers,
): readonly Pick<CleanupRecord, 'tokensBefore' | 'tokensAfter' | 'estimated'>[] {
  const total = Math.max(
    1,
    drafts.reduce((sum, { hiddenTokens }) => sum + hiddenTokens, 0),
  )
  let left = tokensBefore
  return drafts.map(({ hiddenTokens }, at) => {
    const isLast = at === drafts.length - 1
    const before = left
    left = isLast ? tokensRemaining : left - Math.floor((tokensSaved * hiddenTokens) / total)
    return { tokensBefore: before, tokensAfter: left, estimated }
  })
}
