import { isRecord } from '../base/json.ts'
import type { AnswerFile } from '../core/outcome.ts'
import type { Entry, EntryDraft, MessageEntry } from '../core/entry.ts'
import type { RunId } from '../core/ids.ts'
import { readPath, type PathReader } from '../core/path-memory.ts'
import { CUT_NOTICE, textOf, toolCallsOf, type AssistantMessage, type ToolCallBlock } from '../core/message.ts'
import { entriesFromStep } from '../history/derive-steps.ts'
import { addSpent, NOTHING_SPENT, spentOn, storedUsd, type Spent } from '../core/spent.ts'

/** How far a step has come, read from the transcript: the same after a crash as before it. */
export type StepState =
  | { readonly kind: 'new' }
  | { readonly kind: 'next-round'; readonly round: number }
  /** The answer of this round asked for tools, and these calls have no result yet. */
  | { readonly kind: 'open-calls'; readonly round: number; readonly calls: readonly ToolCallBlock[] }
  | { readonly kind: 'answered'; readonly text: string; readonly rounds: number; readonly isCut?: boolean }

export function stepState(entries: readonly Entry[], run: RunId): StepState {
  const messages = entriesFromStep(entries, run).filter(
    (entry): entry is MessageEntry => entry.type === 'message' && entry.stepId === run,
  )
  if (messages.length === 0) return { kind: 'new' }
  const at = messages.findLastIndex(({ message }) => message.role === 'assistant')
  const last = messages[at]
  if (last?.message.role !== 'assistant') return { kind: 'next-round', round: 0 }
  const round = last.round ?? 0
  const answer = last.message
  if (isCutShort(answer)) return { kind: 'next-round', round: round + 1 }
  const calls = toolCallsOf(answer)
  if (calls.length === 0) return answeredWith(answer, round)
  const open = withoutResult(calls, messages.slice(at + 1))
  return open.length === 0 ? { kind: 'next-round', round: round + 1 } : { kind: 'open-calls', round, calls: open }
}

/** The step ended with this answer. */
export function answeredWith(answer: AssistantMessage, round: number): Extract<StepState, { kind: 'answered' }> {
  const cut = answer.stopReason === 'length' ? { isCut: true } : {}
  return { kind: 'answered', text: finalText(answer), rounds: round + 1, ...cut }
}

function isCutShort({ stopReason }: AssistantMessage): boolean {
  return stopReason === 'error' || stopReason === 'aborted'
}

function withoutResult(calls: readonly ToolCallBlock[], later: readonly MessageEntry[]): readonly ToolCallBlock[] {
  const answered = later.flatMap(({ message }) => (message.role === 'toolResult' ? [message.toolCallId] : []))
  return calls.filter(({ id }) => {
    const place = answered.indexOf(id)
    if (place < 0) return true
    answered.splice(place, 1)
    return false
  })
}

/** What the user reads: an answer that the output limit cut short says so. */
function finalText({ content, stopReason }: AssistantMessage): string {
  const text = textOf(content)
  return stopReason === 'length' ? `${text}${CUT_NOTICE}` : text
}

/** How many rounds a step took; a compaction in the middle does not make them fewer. */
export function stepRounds(entries: readonly Entry[], run: RunId): number {
  const rounds = entriesFromStep(entries, run).flatMap((entry) =>
    entry.type === 'message' && entry.stepId === run && entry.message.role === 'assistant' ? [entry.round ?? 0] : [],
  )
  return rounds.reduce((most, round) => Math.max(most, round + 1), 0)
}

/** What the stored answers of a step cost. */
export function stepSpent(entries: readonly Entry[], run: RunId): Spent {
  return answersOf(entries, run)
    .map(({ usage }) => spentOn(usage, storedUsd(usage) !== null))
    .reduce(addSpent, NOTHING_SPENT)
}

/** `provider/model` of the latest answer; undefined before there is one. */
export function modelOfStep(entries: readonly Entry[], run: RunId): string | undefined {
  const last = answersOf(entries, run).at(-1)
  return last === undefined ? undefined : `${last.provider}/${last.model}`
}

/** Of one answer; what a tool sends beyond it stays behind. */
const MAX_ANSWER_FILES = 20

/** Files that the step's tools sent along, each once, in the order they were sent. */
export function filesOfStep(entries: readonly Entry[], run: RunId): readonly AnswerFile[] {
  const files = new Map<string, AnswerFile>()
  for (const entry of entriesFromStep(entries, run)) {
    if (entry.type !== 'message' || entry.stepId !== run || entry.message.role !== 'toolResult') continue
    const { details, isError } = entry.message
    if (!isError && isRecord(details)) for (const file of attachedIn(details['attached'])) files.set(file.id, file)
  }
  return [...files.values()].slice(0, MAX_ANSWER_FILES)
}

/** Details are a tool's own and may come from any version or plugin. */
function attachedIn(value: unknown): readonly AnswerFile[] {
  const items: readonly unknown[] = Array.isArray(value) ? value : []
  return items.flatMap((item) => {
    if (!isRecord(item)) return []
    const { id, name, mimeType, bytes } = item
    const isFile = [id, name, mimeType].every((one) => typeof one === 'string') && typeof bytes === 'number'
    return isFile ? [{ id, name, mimeType, bytes } as AnswerFile] : []
  })
}

function answersOf(entries: readonly Entry[], run: RunId): readonly AssistantMessage[] {
  return entriesFromStep(entries, run).flatMap((entry) =>
    entry.type === 'message' && entry.stepId === run && entry.message.role === 'assistant' ? [entry.message] : [],
  )
}

const JOINED_ENTRY_TYPE = 'clew.joined'

/** Says that a message joined a step that was already running; written together with the message's text. */
export function joinedDraft(run: RunId, stepId: string): EntryDraft {
  return { type: 'custom', customType: JOINED_ENTRY_TYPE, data: { run, stepId } }
}

/** The step a message joined before a crash: its text is in the transcript, its answer is that step's answer. */
export function stepJoinedBy(entries: readonly Entry[], run: RunId): RunId | undefined {
  return joinsIn(entries).findLast((join) => join.run === run)?.stepId
}

/** To be written again behind a summary that takes them out of view while their step still runs. */
export function joinsOfLatestStep(entries: readonly Entry[]): readonly EntryDraft[] {
  const latest = entries.findLast((entry) => entry.type === 'message' && entry.stepId !== undefined)?.stepId
  return joinsIn(entries).flatMap(({ run, stepId }) => (stepId === latest ? [joinedDraft(run, stepId)] : []))
}

interface Join {
  readonly run: RunId
  readonly stepId: RunId
}

const joinsIn = (entries: readonly Entry[]): readonly Join[] => readPath(entries, JOINS)

const JOINS: PathReader<Join[]> = {
  start: () => [],
  add(joins, entry) {
    if (entry.type !== 'custom' || entry.customType !== JOINED_ENTRY_TYPE || !isRecord(entry.data)) return
    const { run, stepId } = entry.data
    if (typeof run === 'string' && typeof stepId === 'string')
      joins.push({ run: run as RunId, stepId: stepId as RunId })
  },
}
