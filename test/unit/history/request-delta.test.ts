import { describe, expect, it } from 'vitest'
import type { Entry } from '../../../src/core/entry.ts'
import { createBudget } from '../../../src/history/budget.ts'
import { prepareHistory, type HistoryInput } from '../../../src/history/prepare.ts'
import { recordOfState, stateOf } from '../../../src/history/request-delta.ts'
import {
  createRequestState,
  latestRecord,
  recordsByEntry,
  REQUEST_ENTRY_TYPE,
  sizeOfHistory,
  storedForm,
  type RequestRecord,
} from '../../../src/history/request-record.ts'
import { createRandom } from '../../support/fuzz/random.ts'
import { assistant, call, id, result, TARGETS, user } from '../../support/history.ts'

interface Conversation {
  readonly entries: Entry[]
  readonly whole: Map<string, RequestRecord>
}

/** A conversation of so many requests, as the turn stores it; `odd` makes models, limits and cleanups come and go. */
function converse(requests: number, seed: number, odd: boolean): Conversation {
  const random = createRandom(seed)
  const entries: Entry[] = []
  const whole = new Map<string, RequestRecord>()
  const push = (part: object): string => {
    const own = `e${entries.length}`
    const base = { id: id(own), parentId: null, timestamp: '2026-01-01T00:00:00.000Z' }
    entries.push(JSON.parse(JSON.stringify({ ...base, ...part })) as Entry)
    return own
  }
  for (let n = 1; n <= requests; n++) {
    push({ type: 'message', message: user(`message ${n}`), stepId: `s${n}` })
    const hidden: string[] = []
    if (odd && random.chance(0.3)) {
      hidden.push(push({ type: 'message', message: assistant([call(`c${n}`)]), stepId: `s${n}` }))
      hidden.push(push({ type: 'message', message: result(`c${n}`, 'x', { details: { a: 1 } }), stepId: `s${n}` }))
    }
    const input: HistoryInput = {
      entries: [...entries],
      target: odd && random.chance(0.2) ? TARGETS.mistral : TARGETS.anthropic,
      budget: createBudget({ contextWindow: 200_000, calibration: 1 + (n % 7) / 10 }),
      historyLimit: odd && random.chance(0.2) ? 3 : 0,
      now: n,
      ...(odd && random.chance(0.1) ? { projection: 'safest' as const } : {}),
    }
    const windowLearned = odd && random.chance(0.1) ? { windowLearned: 'told' } : {}
    const state = createRequestState({ n, input, prepared: prepareHistory(input), body: `${n}`, ...windowLearned })
    const timing = { startedAt: n, durationMs: 2 * n }
    const stored = { ...storedForm(entries, state), ...timing }
    whole.set(push({ type: 'custom', customType: REQUEST_ENTRY_TYPE, data: stored }), {
      ...recordOfState(state),
      ...timing,
    })
    push({ type: 'message', message: assistant(`answer ${n}`), stepId: `s${n}` })
    if (hidden.length > 0) {
      const data = { stepId: `s${n}`, hidden, note: '[n]', tokensBefore: 9, tokensAfter: 3, estimated: true }
      push({ type: 'custom', customType: 'clew.cleanup', data })
    }
  }
  return { entries, whole }
}

const asJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
const bytesOf = (entry: Entry | undefined): number => JSON.stringify(entry).length

describe('request records as differences', () => {
  const SEED = 20_261_117
  it.each([1, 2, 3])(`give back every whole record, whatever changes between requests (seed ${SEED} + %i)`, (more) => {
    const { entries, whole } = converse(90, SEED + more, true)
    const read = recordsByEntry(entries)
    expect(read.size).toBe(90)
    for (const [entry, record] of whole) expect(asJson(read.get(id(entry)))).toEqual(asJson(record))
    expect(asJson(latestRecord(entries))).toEqual(asJson([...whole.values()].at(-1)))
  })

  it('stay small however long a conversation gets, and whole ones are few', () => {
    const { entries } = converse(400, SEED, false)
    const records = entries.filter((entry) => entry.type === 'custom' && entry.customType === REQUEST_ENTRY_TYPE)
    const wholes = records.filter((entry) => entry.type === 'custom' && !JSON.stringify(entry.data).includes('"base"'))
    expect(wholes.length).toBeLessThan(8)
    expect(wholes.length).toBeGreaterThan(1)
    expect(bytesOf(records[398])).toBeLessThan(500)
    const text = entries.reduce((sum, entry) => sum + (entry.type === 'message' ? bytesOf(entry) : 0), 0)
    const all = records.reduce((sum, entry) => sum + bytesOf(entry), 0)
    console.info(`400 requests: ${all} bytes of records, ${wholes.length} whole, beside ${text} bytes of messages`)
    expect(all).toBeLessThan(2 * text)
  })

  it('are written whole when what they would differ from is not in view, and passed over when it is lost', () => {
    const { entries } = converse(5, SEED, false)
    const at = entries.findIndex((entry) => entry.type === 'custom')
    const cut = entries.slice(at + 1)
    expect(recordsByEntry(cut).size).toBe(0)
    expect(latestRecord(cut)).toBeUndefined()
    expect(sizeOfHistory(cut).messages).toBeGreaterThan(0)
    const [first] = recordsByEntry(entries).values()
    expect(first).toBeDefined()
    const state = first === undefined ? undefined : stateOf(first)
    if (state !== undefined) expect(storedForm(cut, state)).toEqual(first)
  })
})
