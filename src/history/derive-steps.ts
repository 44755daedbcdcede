import type { Entry, MessageEntry } from '../core/entry.ts'
import type { EntryId } from '../core/ids.ts'
import { toolCallsOf, type AssistantMessage, type ToolResultMessage } from '../core/message.ts'

/** One instruction worked to its end, read off the entries; nothing about it is stored twice. */
export interface TranscriptStep {
  readonly id: string
  /** The user message that started it; absent when it lies before what was read. */
  readonly instruction?: EntryId
  readonly rounds: readonly Round[]
  /** The answer that ended it: with text and without calls. Absent when the step was stopped, failed or still runs. */
  readonly finalResponse?: EntryId
  /** Every entry of the step in order, instruction and final answer included. */
  readonly entries: readonly Entry[]
}

/** One model answer with what it caused. */
export interface Round {
  readonly answer: EntryId
  readonly message: AssistantMessage
  readonly results: readonly { readonly id: EntryId; readonly message: ToolResultMessage }[]
  /** What else was said before the next answer. */
  readonly feedback: readonly EntryId[]
}

/**
 * Steps in order. Entries of ours carry the step's id; in a transcript of another program a step begins with each user
 * message and is named after it.
 */
export function deriveSteps(entries: readonly Entry[]): readonly TranscriptStep[] {
  const steps = new Map<string, Entry[]>()
  let implicit: string | undefined
  for (const entry of entries) {
    if (entry.stepId === undefined && isUser(entry)) implicit = entry.id
    const stepId = entry.stepId ?? implicit
    if (stepId === undefined || !belongsToAStep(entry)) continue
    const own = steps.get(stepId)
    if (own === undefined) steps.set(stepId, [entry])
    else own.push(entry)
  }
  return [...steps].map(([id, own]) => toStep(id, own))
}

function belongsToAStep(entry: Entry): boolean {
  return entry.type === 'message' || entry.type === 'custom_message'
}

const isUser = (entry: Entry): entry is MessageEntry => entry.type === 'message' && entry.message.role === 'user'

function toStep(id: string, entries: readonly Entry[]): TranscriptStep {
  const rounds = roundsOf(entries)
  const last = rounds.at(-1)
  const instruction = entries.find(isUser)?.id
  const finalResponse = last !== undefined && isFinalAnswer(last.message) ? last.answer : undefined
  return {
    id,
    rounds,
    entries,
    ...(instruction === undefined ? {} : { instruction }),
    ...(finalResponse === undefined ? {} : { finalResponse }),
  }
}

function isFinalAnswer(message: AssistantMessage): boolean {
  if (message.stopReason === 'error' || message.stopReason === 'aborted' || !Array.isArray(message.content))
    return false
  if (toolCallsOf(message).length > 0) return false
  return message.content.some((block) => block.type === 'text' && block.text.trim() !== '')
}

function roundsOf(entries: readonly Entry[]): readonly Round[] {
  const rounds: {
    answer: EntryId
    message: AssistantMessage
    results: Round['results'][number][]
    feedback: EntryId[]
  }[] = []
  for (const entry of entries) {
    const round = rounds.at(-1)
    if (entry.type === 'message' && entry.message.role === 'assistant') {
      rounds.push({ answer: entry.id, message: entry.message, results: [], feedback: [] })
    } else if (round === undefined) {
      continue
    } else if (entry.type === 'message' && entry.message.role === 'toolResult') {
      round.results.push({ id: entry.id, message: entry.message })
    } else {
      round.feedback.push(entry.id)
    }
  }
  return rounds
}

/** Nothing of it worked: every call failed, or the answer itself did. */
export function isFailedRound({ message, results }: Round): boolean {
  if (results.length > 0) return results.every((result) => result.message.isError)
  return message.stopReason === 'error' || message.stopReason === 'aborted'
}
