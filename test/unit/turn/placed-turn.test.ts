import { describe, expect, it } from 'vitest'
import type { Entry } from '../../../src/core/entry.ts'
import type { EntryId } from '../../../src/core/ids.ts'
import { endsAt } from '../../../src/turn/placed-turn.ts'

const base = (id: string) => ({ id: id as EntryId, parentId: null, timestamp: '' })
const message = (id: string): Entry => ({
  ...base(id),
  type: 'message',
  message: { role: 'user', content: '', timestamp: 0 },
})
const record = (id: string): Entry => ({ ...base(id), type: 'custom', customType: 'clew.cleanup' })

const transcript = (entries: readonly Entry[]) => ({
  leafId: entries.at(-1)?.id ?? null,
  context: async () => ({ entries, messages: [], thinkingLevel: 'off', model: null }),
})

describe('a conversation ends at an entry', () => {
  it.each([
    ['that is its last', [message('a'), message('b')], 'b', true],
    ['that only records follow', [message('a'), message('b'), record('c'), record('d')], 'b', true],
    ['that a message follows: no', [message('a'), record('b'), message('c')], 'b', false],
    ['of another branch: no', [message('a'), message('b')], 'x', false],
    ['before everything: no', [message('a')], null, false],
  ] as const)('%s', async (_, entries, at, expected) => {
    expect(await endsAt(at as EntryId | null, transcript(entries))).toBe(expected)
  })
})
