import { isRecord } from '../base/json.ts'
import { takeHead } from '../base/text.ts'
import type { Entry, EntryDraft, MessageEntry } from '../core/entry.ts'
import type { EntryId } from '../core/ids.ts'
import { textOf, toolCallsOf, type AssistantMessage, type ToolResultMessage } from '../core/message.ts'
import type { Outcome } from '../core/outcome.ts'
import { readPath, type PathReader } from '../core/path-memory.ts'

/** Says how a step ended that has no final answer. */
const STEP_ENTRY_TYPE = 'clew.step'

/** How a step ended. */
export type StepOutcome = Outcome['kind']

/** One instruction worked to its end, read off the entries; nothing about it is stored twice. */
export interface TranscriptStep {
  readonly id: string
  /** The user message that started it; absent when it lies before what was read. */
  readonly instruction?: EntryId
  /** The first line of the instruction, cut to 80 characters. */
  readonly title?: string
  /** Unix ms. */
  readonly startTime: number
  /** Absent while the step may still run. */
  readonly endTime?: number
  readonly rounds: readonly Round[]
  /** Absent while the step may still run. */
  readonly outcome?: StepOutcome
  /** The answer that ended it: with text and without calls. Absent when the step was stopped, failed or still runs. */
  readonly finalResponse?: EntryId
  /** Every entry of the step in order, instruction and final answer included. */
  readonly entries: readonly Entry[]
}

/** One model answer with what it caused. */
export interface Round {
  readonly llmResponse: { readonly id: EntryId; readonly message: AssistantMessage }
  readonly toolCallResults: readonly { readonly id: EntryId; readonly message: ToolResultMessage }[]
  /** What else was said before the next answer. */
  readonly systemFeedback: readonly EntryId[]
}

/** One step, at the cost of its own entries. */
export function deriveStep(entries: readonly Entry[], id: string): TranscriptStep | undefined {
  const own = entriesFromStep(entries, id).filter((entry) => stepOf(entry) === id)
  return deriveSteps(own).find((step) => step.id === id)
}

/** From the first entry of a step on; nothing when it has none. */
export function entriesFromStep(entries: readonly Entry[], id: string): readonly Entry[] {
  return entries.slice(readPath(entries, STEP_STARTS).get(id) ?? entries.length)
}

const STEP_STARTS: PathReader<Map<string, number>> = {
  start: () => new Map(),
  add(starts, entry, at) {
    const id = stepOf(entry)
    if (id !== undefined && !starts.has(id)) starts.set(id, at)
  },
}

function stepOf(entry: Entry): string | undefined {
  return entry.type === 'custom' ? stepEndOf(entry)?.stepId : entry.stepId
}

/** Written when a step ends in another way than with an answer: the messages alone do not tell how. */
export function stepEndDraft(stepId: string, outcome: StepOutcome): EntryDraft {
  return { type: 'custom', customType: STEP_ENTRY_TYPE, data: { stepId, outcome } }
}

/**
 * Steps in order. Entries of ours carry the step's id; in a transcript of another program a step begins with each user
 * message and is named after it.
 */
export function deriveSteps(entries: readonly Entry[]): readonly TranscriptStep[] {
  const steps = new Map<string, Entry[]>()
  const ends = new Map<string, StepOutcome>()
  let implicit: string | undefined
  for (const entry of entries) {
    if (entry.type === 'custom') {
      const end = stepEndOf(entry)
      if (end !== undefined) ends.set(end.stepId, end.outcome)
      continue
    }
    if (entry.stepId === undefined && isUser(entry)) implicit = entry.id
    const stepId = entry.stepId ?? implicit
    if (stepId === undefined || !belongsToAStep(entry)) continue
    const own = steps.get(stepId)
    if (own === undefined) steps.set(stepId, [entry])
    else own.push(entry)
  }
  return [...steps].map(([id, own], at) => toStep(id, own, ends.get(id), at < steps.size - 1))
}

function stepEndOf(entry: Entry): { readonly stepId: string; readonly outcome: StepOutcome } | undefined {
  if (entry.type !== 'custom' || entry.customType !== STEP_ENTRY_TYPE || !isRecord(entry.data)) return undefined
  const { stepId, outcome } = entry.data
  return typeof stepId === 'string' && isOutcome(outcome) ? { stepId, outcome } : undefined
}

function isOutcome(value: unknown): value is StepOutcome {
  return typeof value === 'string' && OUTCOMES.includes(value)
}

const OUTCOMES: readonly string[] = [
  'completed',
  'failed',
  'cancelled',
  'round-limit',
  'interrupted',
] satisfies StepOutcome[]

function belongsToAStep(entry: Entry): boolean {
  return entry.type === 'message' || entry.type === 'custom_message'
}

const isUser = (entry: Entry): entry is MessageEntry => entry.type === 'message' && entry.message.role === 'user'

function toStep(
  id: string,
  entries: readonly Entry[],
  end: StepOutcome | undefined,
  isFollowed: boolean,
): TranscriptStep {
  const rounds = roundsOf(entries)
  const last = rounds.at(-1)?.llmResponse
  const instruction = entries.find(isUser)
  const title = instruction === undefined ? undefined : titleOf(instruction)
  const finalResponse = last !== undefined && isFinalAnswer(last.message) ? last.id : undefined
  const outcome = finalResponse === undefined ? (end ?? outcomeOf(last?.message, isFollowed)) : 'completed'
  return {
    id,
    startTime: timeOf(entries[0]),
    rounds,
    entries,
    ...(instruction === undefined ? {} : { instruction: instruction.id }),
    ...(title === undefined ? {} : { title }),
    ...(outcome === undefined ? {} : { outcome, endTime: timeOf(entries.at(-1)) }),
    ...(finalResponse === undefined ? {} : { finalResponse }),
  }
}

/** Of a step without a final answer whose end was not recorded. */
function outcomeOf(last: AssistantMessage | undefined, isFollowed: boolean): StepOutcome | undefined {
  if (last?.stopReason === 'aborted') return 'cancelled'
  if (last?.stopReason === 'error') return 'failed'
  return isFollowed ? 'interrupted' : undefined
}

const timeOf = (entry: Entry | undefined): number => Date.parse(entry?.timestamp ?? '') || 0

const MAX_TITLE_CHARS = 80

function titleOf({ message }: MessageEntry): string | undefined {
  if (message.role !== 'user') return undefined
  const line = textOf(message.content)
    .split('\n')
    .map((each) => each.trim())
    .find((each) => each !== '')
  if (line === undefined || line.length <= MAX_TITLE_CHARS) return line
  return `${takeHead(line, MAX_TITLE_CHARS - 1)}…`
}

function isFinalAnswer(message: AssistantMessage): boolean {
  if (message.stopReason === 'error' || message.stopReason === 'aborted') return false
  if (toolCallsOf(message).length > 0) return false
  return message.content.some((block) => block.type === 'text' && block.text.trim() !== '')
}

function roundsOf(entries: readonly Entry[]): readonly Round[] {
  const rounds: {
    llmResponse: Round['llmResponse']
    toolCallResults: Round['toolCallResults'][number][]
    systemFeedback: EntryId[]
  }[] = []
  for (const entry of entries) {
    const round = rounds.at(-1)
    if (entry.type === 'message' && entry.message.role === 'assistant') {
      const llmResponse = { id: entry.id, message: entry.message }
      rounds.push({ llmResponse, toolCallResults: [], systemFeedback: [] })
    } else if (round === undefined) {
      continue
    } else if (entry.type === 'message' && entry.message.role === 'toolResult') {
      round.toolCallResults.push({ id: entry.id, message: entry.message })
    } else {
      round.systemFeedback.push(entry.id)
    }
  }
  return rounds
}

/** Nothing of it worked: every call failed, or the answer itself did. */
export function isFailedRound({ llmResponse, toolCallResults }: Round): boolean {
  if (toolCallResults.length > 0) return toolCallResults.every((result) => result.message.isError)
  const { stopReason } = llmResponse.message
  return stopReason === 'error' || stopReason === 'aborted'
}
