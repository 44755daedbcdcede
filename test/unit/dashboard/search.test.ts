import { describe, expect, it } from 'vitest'
import type { Entry } from '../../../src/core/entry.ts'
import type { EntryId, SessionId, SessionKey } from '../../../src/core/ids.ts'
import { searchTranscripts, type SearchDeps } from '../../../src/dashboard/search.ts'
import { ManualClock } from '../../../src/testing/manual-clock.ts'

const CONVERSATIONS = 7
const MESSAGES = 9
const PAGE = 3

function entryOf(conversation: number, place: number): Entry {
  return {
    type: 'message',
    id: `${conversation}-${place}` as EntryId,
    parentId: null,
    timestamp: '',
    message: { role: 'user', content: 'a lamp', timestamp: 0 },
  }
}

/** Conversations that are read in pieces of two messages, each of which takes a while. */
function deps(pieceMs: number): SearchDeps {
  const clock = new ManualClock()
  const rows = Array.from({ length: CONVERSATIONS }, (_, at) => ({
    key: `key-${at}` as SessionKey,
    sessionId: `sess_${at}` as SessionId,
  }))
  return {
    clock,
    async sessions(cursor) {
      const from = cursor === undefined ? 0 : Number(cursor)
      const next = from + PAGE < rows.length ? String(from + PAGE) : undefined
      return { rows: rows.slice(from, from + PAGE), next, total: rows.length }
    },
    async find(sessionId, _wanted, before = MESSAGES + 1) {
      await clock.advance(pieceMs)
      const conversation = Number(sessionId.slice('sess_'.length))
      const offsets = [before - 1, before - 2].filter((offset) => offset > 0)
      return {
        found: offsets.map((offset) => ({ entry: entryOf(conversation, offset), offset })),
        rest: Math.max(0, before - 3) === 0 ? 0 : before - 2,
      }
    },
  }
}

interface Found {
  readonly hits: readonly { readonly entry: string }[]
  readonly searched: { readonly conversations: number; readonly of: number }
  readonly nextCursor?: string
}

async function all(
  limit: number,
  pieceMs: number,
): Promise<{ readonly entries: readonly string[]; readonly calls: number }> {
  const world = deps(pieceMs)
  const entries: string[] = []
  let cursor: string | undefined
  let [calls, before] = [0, -1]
  do {
    const query = { text: 'LAMP', limit, ...(cursor === undefined ? {} : { cursor }) }
    const found = (await searchTranscripts(query, world)) as unknown as Found
    expect(found.hits.length).toBeLessThanOrEqual(limit)
    expect(found.searched.of).toBe(CONVERSATIONS)
    expect(found.searched.conversations).toBeGreaterThanOrEqual(before)
    before = found.searched.conversations
    entries.push(...found.hits.map(({ entry }) => entry))
    cursor = found.nextCursor
    calls++
  } while (cursor !== undefined)
  expect(before).toBe(CONVERSATIONS)
  return { entries, calls }
}

const EXPECTED = Array.from({ length: CONVERSATIONS * MESSAGES }, (_, at) => {
  const place = MESSAGES - (at % MESSAGES)
  return `${Math.floor(at / MESSAGES)}-${place}`
})

describe('a search', () => {
  it.each([
    [1, 0],
    [4, 0],
    [1_000, 0],
    [1_000, 300],
    [1_000, 2_000],
    [5, 700],
  ])('finds everything once, newest first, %i hits and pieces of %i ms at a time', async (limit, pieceMs) => {
    expect((await all(limit, pieceMs)).entries).toEqual(EXPECTED)
  })

  it('ends a call in time, wherever it is', async () => {
    expect((await all(1_000, 2_000)).calls).toBe(CONVERSATIONS * Math.ceil(MESSAGES / 2))
  })

  it('refuses a cursor that is none', async () => {
    await expect(searchTranscripts({ text: 'x', limit: 1, cursor: 'nonsense' }, deps(0))).rejects.toThrow('no cursor')
  })
})
