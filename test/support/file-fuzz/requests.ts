import type { Entry } from '../../../src/core/entry.ts'
import { createBudget } from '../../../src/history/budget.ts'
import { prepareHistory, type HistoryInput } from '../../../src/history/prepare.ts'
import { createRequestState, REQUEST_ENTRY_TYPE, storedForm } from '../../../src/history/request-record.ts'
import { createSetup, setupDrafts } from '../../../src/turn/setup.ts'
import { WRITERS } from '../fuzz/generate.ts'
import type { Random } from '../fuzz/random.ts'
import { id } from '../history.ts'

const TOOLS = [{ name: 'read', description: 'reads a file', parameters: { type: 'object', properties: {} } }]

/** The entries with a record of the request before each answer, whole or as a difference, and of the setup when it is new. */
export function withRequests(entries: readonly Entry[], random: Random): readonly Entry[] {
  const all: Entry[] = []
  let made = 0
  let requests = 0
  const push = (entry: object): void => {
    const own = { ...entry, parentId: all.at(-1)?.id ?? null } as Entry
    all.push(own)
  }
  const record = (data: object, customType: string): void =>
    push({ type: 'custom', customType, data, id: id(`e${entries.length + ++made}`), timestamp: TIME })
  for (const entry of entries) {
    if (entry.type === 'message' && entry.message.role === 'assistant' && random.chance(0.8)) {
      const before = [...all]
      for (const draft of setupDrafts(all, setupOf(random))) {
        if (draft.type === 'custom') record(draft.data as object, draft.customType)
      }
      record(storedForm(all, recordOf(before, ++requests, random)), REQUEST_ENTRY_TYPE)
    }
    push(entry)
  }
  return all
}

const TIME = '2026-01-01T00:00:00.000Z'

function setupOf(random: Random) {
  const system = random.chance(0.9) ? 'You are helpful.' : 'You are brief.'
  return createSetup({ system, tools: TOOLS, maxOutputTokens: 8_192, thinkingLevel: 'off' })
}

function recordOf(entries: readonly Entry[], n: number, random: Random) {
  const { provider, api, model } = random.pick(WRITERS)
  const target = { provider, api, model, acceptsImages: true }
  const budget = createBudget({ contextWindow: 200_000 })
  const input: HistoryInput = { entries, target, budget, historyLimit: 0, now: 1_000, projection: 'normal' }
  const timing = random.chance(0.5) ? { startedAt: 1_000, firstByteMs: 5, durationMs: 9 } : {}
  const state = createRequestState({ n, input, prepared: prepareHistory(input), body: String(n) })
  return { ...state, record: { ...state.record, ...timing } }
}
