import type { Entry } from '../../src/core/entry.ts'
import type { EntryId } from '../../src/core/ids.ts'
import { NO_USAGE } from '../../src/core/message.ts'
import { createBudget } from '../../src/history/budget.ts'
import { prepareHistory } from '../../src/history/prepare.ts'
import { recordOfNext } from '../../src/history/request-delta.ts'
import { createRequestState, REQUEST_ENTRY_TYPE, storedForm } from '../../src/history/request-record.ts'
import { stickyEntryData, VIEW_ENTRY_TYPE } from '../../src/history/view-records.ts'
import { rememberPath } from '../../src/core/path-memory.ts'

const TARGET = { provider: 'anthropic', api: 'anthropic-messages', model: 'claude-sonnet-4-5', acceptsImages: true }
const QUESTION = 'What does the parser do with a line that it cannot read at all, here? '
const ANSWER = 'It keeps the line as it is, says so in the report of the file, and goes on with the next one. '

export interface Turns {
  /** Characters of each. */
  readonly question: number
  readonly answer: number
  /** How many of them the model sees; 0 for all that fit its window of a million tokens. */
  readonly historyLimit: number
}

export const SHORT_TURNS: Turns = { question: 70, answer: 200, historyLimit: 0 }
export const LONG_TURNS: Turns = { question: 1_000, answer: 4_000, historyLimit: 0 }

const textOf = (sentence: string, length: number): string =>
  sentence.repeat(Math.ceil(length / sentence.length)).slice(0, length)

/** What one turn of a conversation adds to its transcript. */
export interface TurnLines {
  readonly lines: readonly string[]
  /** Characters of question and answer. */
  readonly text: number
  /** Bytes of the record of its request. */
  readonly record: number
  readonly isWhole: boolean
}

/**
 * A conversation without tools that is never compacted, as the turn stores it, with the record of each request.
 * `whole`: as it was before records were differences (decision 0024).
 */
export function* conversation(
  turns: number,
  records: 'whole' | 'as now',
  { question: asks, answer: answers, historyLimit }: Turns = SHORT_TURNS,
): Generator<TurnLines> {
  const [asked, answered] = [textOf(QUESTION, asks), textOf(ANSWER, answers)]
  let path: readonly Entry[] | undefined
  const entries: Entry[] = []
  const push = ({ type, ...fields }: { readonly type: string; readonly [field: string]: unknown }): string => {
    const id = entries.length.toString(16).padStart(8, '0') as EntryId
    const parentId = entries.at(-1)?.id ?? null
    const line = JSON.stringify({ type, id, parentId, timestamp: '2026-01-01T00:00:00.000Z', ...fields })
    entries.push(JSON.parse(line) as Entry)
    return `${line}\n`
  }
  for (let n = 1; n <= turns; n++) {
    const stepId = `run_${n.toString(16).padStart(20, '0')}`
    const provenance = { kind: 'external_user', sourceChannel: 'webhook', sourceSessionKey: 'terminal' }
    const question = push({
      type: 'message',
      message: { role: 'user', content: asked, timestamp: n, provenance },
      stepId,
    })
    const budget = createBudget({ contextWindow: 1_000_000, calibration: 1 + (n % 5) / 97 })
    path = rememberPath([...entries], path)
    const input = { entries: path, target: TARGET, budget, historyLimit, now: n }
    const prepared = prepareHistory(input)
    const state = createRequestState({ n, input, prepared, body: `${n}` })
    const stored = records === 'whole' ? recordOfNext(state) : storedForm(path, state)
    const decided = { type: 'custom', customType: VIEW_ENTRY_TYPE, data: stickyEntryData(prepared.decisions) }
    const view = prepared.decisions.length === 0 ? '' : push(decided)
    const timing = { startedAt: 1_767_225_675_760, firstByteMs: 420, durationMs: 2_240 }
    const record = push({ type: 'custom', customType: REQUEST_ENTRY_TYPE, data: { ...stored, ...timing } })
    const message = {
      role: 'assistant',
      content: [{ type: 'text', text: answered }],
      api: TARGET.api,
      provider: TARGET.provider,
      model: TARGET.model,
      usage: NO_USAGE,
      stopReason: 'stop',
      timestamp: n,
    }
    const answer = push({ type: 'message', message, stepId, round: 0 })
    const text = asked.length + answered.length
    yield { lines: [question, view, record, answer], text, record: record.length, isWhole: !('base' in stored) }
  }
}
