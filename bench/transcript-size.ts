import type { Entry } from '../src/core/entry.ts'
import type { EntryId } from '../src/core/ids.ts'
import { NO_USAGE } from '../src/core/message.ts'
import { createBudget } from '../src/history/budget.ts'
import { prepareHistory } from '../src/history/prepare.ts'
import { createRequestState, REQUEST_ENTRY_TYPE, storedForm } from '../src/history/request-record.ts'

/**
 * How large a transcript gets beside its text: questions of 70 and answers of 200 characters, with the record of each
 * request as the turn stores it. Counts, no times.
 */
const TARGET = { provider: 'anthropic', api: 'anthropic-messages', model: 'claude-sonnet-4-5', acceptsImages: true }
const QUESTION = 'What does the parser do with a line that it cannot read at all, here? '
const ANSWER = 'It keeps the line as it is, says so in the report of the file, and goes on with the next one. '.repeat(
  3,
)

const entries: Entry[] = []
let text = 0
let bytes = 0
let records = 0
let wholes = 0

function push(part: object): number {
  const base = {
    id: entries.length.toString(16).padStart(8, '0') as EntryId,
    parentId: entries.at(-1)?.id ?? null,
    timestamp: '2026-01-01T00:00:00.000Z',
  }
  const line = JSON.stringify({ ...base, ...part })
  entries.push(JSON.parse(line) as Entry)
  bytes += line.length + 1
  return line.length + 1
}

function turn(n: number): void {
  const stepId = `run_${n.toString(16).padStart(20, '0')}`
  const [question, answer] = [QUESTION.slice(0, 70), ANSWER.slice(0, 200)]
  text += question.length + answer.length
  const provenance = { kind: 'external_user', sourceChannel: 'webhook', sourceSessionKey: 'terminal' }
  push({ type: 'message', message: { role: 'user', content: question, timestamp: n, provenance }, stepId })
  const budget = createBudget({ contextWindow: 1_000_000, calibration: 1 + (n % 5) / 97 })
  const input = { entries: [...entries], target: TARGET, budget, historyLimit: 0, now: n }
  const state = createRequestState({ n, input, prepared: prepareHistory(input), body: `${n}` })
  const stored = storedForm(entries, state)
  if (!('base' in stored)) wholes++
  const timing = { startedAt: 1_767_225_675_760, firstByteMs: 420, durationMs: 2_240 }
  records += push({ type: 'custom', customType: REQUEST_ENTRY_TYPE, data: { ...stored, ...timing } })
  const message = {
    role: 'assistant',
    content: [{ type: 'text', text: answer }],
    api: TARGET.api,
    provider: TARGET.provider,
    model: TARGET.model,
    usage: NO_USAGE,
    stopReason: 'stop',
    timestamp: n,
  }
  push({ type: 'message', message, stepId, round: 0 })
}

for (let n = 1; n <= 2_000; n++) {
  turn(n)
  if ([100, 500, 1_000, 2_000].includes(n))
    console.log(
      `${2 * n} messages: ${(bytes / 1e6).toFixed(2)} MB, ${Math.round(bytes / n)} bytes per turn, ${(bytes / text).toFixed(1)} × the text · request records ${Math.round(records / n)} bytes per turn, ${wholes} of ${n} whole`,
    )
}
