import type { Entry } from '../../src/core/entry.ts'
import { rememberPath } from '../../src/core/path-memory.ts'
import { createBudget } from '../../src/history/budget.ts'
import { prepareHistory, type HistoryInput } from '../../src/history/prepare.ts'
import { recordOfNext } from '../../src/history/request-delta.ts'
import {
  createRequestState,
  REQUEST_ENTRY_TYPE,
  storedForm,
  type RequestRecord,
} from '../../src/history/request-record.ts'
import { createRandom } from './fuzz/random.ts'
import { assistant, call, id, result, TARGETS, user } from './history.ts'

export interface RecordedConversation {
  readonly entries: Entry[]
  /** Every record as it would be stored whole, by its entry. */
  readonly whole: Map<string, RequestRecord>
}

/** A conversation of so many requests, as the turn stores it; `odd` makes models, limits and cleanups come and go. */
export function converse(requests: number, seed: number, odd: boolean, historyLimit = 0): RecordedConversation {
  const random = createRandom(seed)
  const entries: Entry[] = []
  let path: readonly Entry[] | undefined
  const now = (): readonly Entry[] => (path = rememberPath([...entries], path))
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
      entries: now(),
      target: odd && random.chance(0.2) ? TARGETS.mistral : TARGETS.anthropic,
      budget: createBudget({ contextWindow: 200_000, calibration: 1 + (n % 7) / 10 }),
      historyLimit: odd && random.chance(0.2) ? 3 : historyLimit,
      now: n,
      ...(odd && random.chance(0.1) ? { projection: 'safest' as const } : {}),
    }
    const windowLearned = odd && random.chance(0.1) ? { windowLearned: 'told' } : {}
    const state = createRequestState({ n, input, prepared: prepareHistory(input), body: `${n}`, ...windowLearned })
    const timing = { startedAt: n, durationMs: 2 * n }
    const stored = { ...storedForm(now(), state), ...timing }
    whole.set(push({ type: 'custom', customType: REQUEST_ENTRY_TYPE, data: stored }), {
      ...recordOfNext(state),
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
